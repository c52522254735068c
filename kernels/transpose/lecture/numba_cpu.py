# transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.
# Model: a decorator compiles the Python loops, and prange divides the rows of c among threads.
# Memory: every thread writes its rows of c in order, and reads its columns of a, whose elements lie m apart. NumPy's
#   arrays come with their shapes, so they are indexed by row and column.
# Edges: none; both loops end at their sizes.

from numba import njit, prange


@njit(parallel=True, nogil=True)
def transpose(a, c, m, n):
    for i in prange(m):
        for j in range(n):
            c[i, j] = a[j, i]
