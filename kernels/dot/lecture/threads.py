# dot: c = the sum of a[i] b[i] for vectors of n elements.
# Model: threads of Python (concurrent.futures), a task for each, which multiplies its part by one call of NumPy. The
#   tasks compute at the same time, since NumPy gives Python's lock away meanwhile. The caller adds up what they return.
# Memory: shared. Each task reads its part of a and b once, in order, and writes nothing that another one reads.
# Edges: some parts have one element more than others, or none. An empty sum is 0.

import numpy as np


def dot(executor, workers, a, b, c, n):
    def multiply(part):
        if a.dtype == c.dtype:
            return np.dot(a[part], b[part])
        return np.einsum("i,i", a[part], b[part], dtype=c.dtype)

    parts = [slice(n * task // workers, n * (task + 1) // workers) for task in range(workers)]
    c[...] = np.sum(list(executor.map(multiply, parts)), dtype=c.dtype)
