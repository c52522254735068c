# transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.
# Model: processes of Python (concurrent.futures), a task for each, which copies some rows of c by one call of NumPy.
# Memory: of their own, but for the matrices. These lie where all processes map them. Each task reads columns of a and
#   writes rows of c. Rows of c begin within a cache line of another task.
# Edges: some tasks have one row more than others, or none.

from functools import partial

import numpy as np


def copy(a, c, rows):
    np.copyto(c[rows], a.T[rows])


def transpose(executor, workers, a, c, m, n):
    parts = [slice(m * task // workers, m * (task + 1) // workers) for task in range(workers)]
    list(executor.map(partial(copy, a, c), parts))
