# transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.
# Model: threads of Python (concurrent.futures), a task for each, which copies some rows of c by one call of NumPy. The
#   tasks copy at the same time, since NumPy gives Python's lock away meanwhile.
# Memory: shared. Each task reads columns of a and writes rows of c. Rows of c begin within a cache line of another
#   task.
# Edges: some tasks have one row more than others, or none.

import numpy as np


def transpose(executor, workers, a, c, m, n):
    def copy(rows):
        np.copyto(c[rows], a.T[rows])

    parts = [slice(m * task // workers, m * (task + 1) // workers) for task in range(workers)]
    list(executor.map(copy, parts))
