# matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
# Model: threads of Python (concurrent.futures), a task for each, which computes some rows of c by one call of NumPy.
#   Its library (BLAS) has one thread for each call. The tasks compute at the same time, since NumPy gives Python's lock
#   away.
# Memory: shared. Each task reads its rows of a, and all of b. BLAS copies blocks of both into the cache of its core.
# Edges: some tasks have one row more than others, or none. Without a dtype, sums would be as narrow as the inputs.

import numpy as np


def matmul(executor, workers, a, b, c, m, n, k):
    def multiply(rows):
        np.matmul(a[rows], b, out=c[rows], dtype=c.dtype)

    parts = [slice(m * task // workers, m * (task + 1) // workers) for task in range(workers)]
    list(executor.map(multiply, parts))
