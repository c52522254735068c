# transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.
# Model: threads of Python (concurrent.futures), a task for each, which copies some rows of c by calls of NumPy. The
#   tasks copy at the same time, since NumPy gives Python's lock away meanwhile.
# Memory: shared. A call copies a square that fits the first cache of a core, so that each cache line of a is used
#   whole.
# Edges: the last squares of a task are narrower, or there are none.

import numpy as np

SIDE = 64


def transpose(executor, workers, a, c, m, n):
    def copy(first, last):
        for i in range(first, last, SIDE):
            for j in range(0, n, SIDE):
                square = slice(i, min(i + SIDE, last)), slice(j, j + SIDE)
                np.copyto(c[square], a.T[square])

    ends = [m * task // workers for task in range(workers + 1)]
    list(executor.map(copy, ends[:-1], ends[1:]))
