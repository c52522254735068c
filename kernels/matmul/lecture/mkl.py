# matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
# Model: one call into Intel's MKL, a tuned library, for c = 1 a b + 0 c; it chooses code for the CPU at hand.
# Memory: MKL copies blocks of a and b into the cache and reads them many times from there.
#   The sums of both 16-bit formats are in float32, as c is.
# Edges: a row of nothing counts as one element long, as BLAS demands of the distances between rows.

import numpy as np

from py_backends.backend._mkl import NOT_TRANSPOSED, ROW_MAJOR, library

mkl = library()
GEMM = {
    np.dtype("float32"): mkl.cblas_sgemm_64,
    np.dtype("float64"): mkl.cblas_dgemm_64,
    np.dtype("float16"): mkl.cblas_gemm_f16f16f32_64,
    np.dtype("bfloat16"): mkl.cblas_gemm_bf16bf16f32_64,
}


def matmul(a, b, c, m, n, k):
    gemm = GEMM[a.dtype]
    row_a, row_b = max(1, k), max(1, n)
    gemm(ROW_MAJOR, NOT_TRANSPOSED, NOT_TRANSPOSED, m, n, k, 1, a, row_a, b, row_b, 0, c, row_b)
