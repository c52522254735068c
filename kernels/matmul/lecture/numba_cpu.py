# matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
# Model: a decorator compiles the Python loops, and prange spreads the rows over threads.
# Memory: a is read by rows, b down its columns, both from cache where they fit.
# Edges: none; the loops end with the last row, column and product.

from numba import njit, prange


@njit(parallel=True, nogil=True)
def matmul(a, b, c, m, n, k):
    for i in prange(m):
        for j in range(n):
            sum = c.dtype.type(0)
            for p in range(k):
                sum += a[i, p] * b[p, j]
            c[i, j] = sum
