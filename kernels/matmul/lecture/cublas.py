# matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
# Model: one call for the whole array; NVIDIA's library (BLAS) does the work, on the whole GPU.
# Memory: cuBLAS copies blocks of a and b to where many threads read them, and each many times from its registers.
# Edges: the library takes all shapes but empty ones; a sum of no products is 0.

from cupy import cublas


def matmul(a, b, c, m, n, k):
    if k == 0:
        c.fill(0)
    elif c.size:
        cublas.gemm("N", "N", a, b, out=c)
