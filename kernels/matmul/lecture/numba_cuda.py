# matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
# Model: a kernel in Python, written for one thread of the GPU; the grid of threads covers the data.
# Work items: n x m, in groups of 16 x 16
# Memory: every thread reads a row of a and a column of b from global memory, through the caches.
# Edges: threads past the last column do nothing; rows beyond the grid are taken in further strides.

from numba import cuda


@cuda.jit
def matmul(a, b, c, m, n, k):
    j, first = cuda.grid(2)
    if j < n:
        for i in range(first, m, cuda.gridsize(2)[1]):
            sum = c.dtype.type(0)
            for p in range(k):
                sum += a[i * k + p] * b[p * n + j]
            c[i * n + j] = sum
