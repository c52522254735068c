# vecadd: c[i] = a[i] + b[i] for vectors of n elements.
# Model: threads of Python (concurrent.futures), a task for each. Python's lock lets one of them run at a time. But
#   NumPy gives the lock away for as long as its compiled loop runs. So the tasks add at the same time.
# Memory: shared. Each task reads its part of a and b once and writes its part of c once, in order.
# Edges: some parts have one element more than others, or none.

import numpy as np


def vecadd(executor, workers, a, b, c, n):
    def add(part):
        np.add(a[part], b[part], out=c[part])

    parts = [slice(n * task // workers, n * (task + 1) // workers) for task in range(workers)]
    list(executor.map(add, parts))  # waits for all tasks, and raises their errors
