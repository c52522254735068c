# matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
# Model: a decorator compiles the Python loops, and prange divides the rows of c among threads.
# Memory: every thread reads its rows of a, and all of b by columns, whose elements lie n apart. It writes its rows of
#   c. NumPy's arrays come with their shapes, so they are indexed by row and column.
# Edges: none; the loops end with the last row, column and product.

from numba import njit, prange

from py_backends.backend.formats.numba_cpu import widen


@njit(parallel=True, nogil=True)
def matmul(a, b, c, m, n, k):
    for i in prange(m):
        for j in range(n):
            # A zero of c's type: 0.0 would make the sum a float64, even for float32.
            sum = c.dtype.type(0)
            for p in range(k):
                sum += widen(a[i, p]) * widen(b[p, j])
            c[i, j] = sum
