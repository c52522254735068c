# matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
# Model: a kernel in Python, written for one thread of an NVIDIA GPU, which computes one element. The grid covers c.
# Memory: every thread reads a row of a and a column of b from global memory, through the caches. Neighbouring threads
#   read the same element of a, and neighbours of b. The GPU coalesces those reads into few transactions. The arrays are
#   flat, like pointers in CUDA C++: element (i, p) of a is a[i * k + p].
# Edges: threads past the last column or row do nothing. A grid has at most 65,535 blocks from top to bottom. With more
#   rows, each thread also computes rows further down, one grid height apart.
# ---
# Work items: n x m, in groups of 16 x 16

from numba import cuda

from py_backends.backend.formats.numba_cuda import widen


@cuda.jit
def matmul(a, b, c, m, n, k):
    j, first = cuda.grid(2)
    if j < n:
        for i in range(first, m, cuda.gridsize(2)[1]):
            # A zero of c's type: 0.0 would make the sum a float64, even for float32.
            sum = c.dtype.type(0)
            for p in range(k):
                sum += widen(a[i * k + p]) * widen(b[p * n + j])
            c[i * n + j] = sum
