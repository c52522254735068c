# matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
# Model: one call into Intel's MKL, a tuned library, for c = 1 a b + 0 c; it chooses code for the CPU at hand.
# Memory: MKL copies blocks of a and b into the cache and reads them many times from there.
# Edges: a row of nothing counts as one element long, as BLAS demands of the distances between rows.

from py_backends.backend._mkl import NOT_TRANSPOSED, ROW_MAJOR, library

mkl = library()


def matmul(a, b, c, m, n, k):
    gemm = mkl.cblas_sgemm_64 if c.dtype == "float32" else mkl.cblas_dgemm_64
    row_a, row_b = max(1, k), max(1, n)
    gemm(ROW_MAJOR, NOT_TRANSPOSED, NOT_TRANSPOSED, m, n, k, 1, a, row_a, b, row_b, 0, c, row_b)
