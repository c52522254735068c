# vecadd: c[i] = a[i] + b[i] for vectors of n elements.
# Model: processes of Python (concurrent.futures), a task for each. Each has an interpreter and a lock of its own. It
#   gets a task by a message, and finds the function by its name: so `add` stands outside.
# Memory: of their own, but for the vectors. These lie where all processes map them: a message says where, and its part.
# Edges: some parts have one element more than others, or none.

from functools import partial

import numpy as np


def add(a, b, c, part):
    np.add(a[part], b[part], out=c[part])


def vecadd(executor, workers, a, b, c, n):
    parts = [slice(n * task // workers, n * (task + 1) // workers) for task in range(workers)]
    list(executor.map(partial(add, a, b, c), parts))  # waits for all tasks, and raises their errors
