# matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
# Model: processes of Python (concurrent.futures), a task for each, which computes some rows of c by one call of NumPy.
#   Its library (BLAS) has one thread in each process.
# Memory: of their own, but for the matrices. These lie where all processes map them. Each task reads its rows of a, and
#   all of b. BLAS copies blocks of both into the cache of its core.
# Edges: some tasks have one row more than others, or none. Without a dtype, sums would be as narrow as the inputs.

from functools import partial

import numpy as np


def multiply(a, b, c, rows):
    np.matmul(a[rows], b, out=c[rows], dtype=c.dtype)


def matmul(executor, workers, a, b, c, m, n, k):
    parts = [slice(m * task // workers, m * (task + 1) // workers) for task in range(workers)]
    list(executor.map(partial(multiply, a, b, c), parts))
