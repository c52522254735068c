# dot: c = the sum of a[i] b[i] for vectors of n elements.
# Model: processes of Python (concurrent.futures), a task for each, which multiplies its part by one call of NumPy. The
#   sums come back as messages, and the caller adds them up.
# Memory: of their own, but for the vectors. These lie where all processes map them.
# Edges: some parts have one element more than others, or none. An empty sum is 0.

from functools import partial

import numpy as np


def multiply(a, b, dtype, part):
    if a.dtype == dtype:
        return np.dot(a[part], b[part])
    return np.einsum("i,i", a[part], b[part], dtype=dtype)


def dot(executor, workers, a, b, c, n):
    parts = [slice(n * task // workers, n * (task + 1) // workers) for task in range(workers)]
    c[...] = np.sum(list(executor.map(partial(multiply, a, b, c.dtype), parts)), dtype=c.dtype)
