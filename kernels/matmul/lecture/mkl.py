# matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
# Model: one call into Intel's MKL, a tuned library, for c = 1 a b + 0 c. It chooses code for the CPU at hand.
# Memory: MKL copies blocks of a and b into the cache, and reads them many times from there. The sums of both 16-bit
#   formats are in float32, as c is. For int8, MKL wants a unsigned: it gets a copy with 128 added.
# Edges: the distance between rows is at least 1, even if rows are empty, as BLAS demands. MKL's sums of int8 saturate
#   at 2^31. So k is split over several calls, none of which reaches that.

import numpy as np

from py_backends.backend._mkl import FIXED_OFFSET, NOT_TRANSPOSED, ROW_MAJOR, library

MOST, BY_ROWS, NOTHING = 2**16, (ROW_MAJOR, NOT_TRANSPOSED, NOT_TRANSPOSED), np.zeros(1, "int32")
mkl = library()
NAMES = {"float32": "sgemm", "float64": "dgemm", "float16": "gemm_f16f16f32", "bfloat16": "gemm_bf16bf16f32"}
GEMM = {np.dtype(dtype): getattr(mkl, f"cblas_{name}_64") for dtype, name in NAMES.items()}


def matmul(a, b, c, m, n, k):
    row_a, row_b = max(1, k), max(1, n)
    if gemm := GEMM.get(a.dtype):
        return gemm(*BY_ROWS, m, n, k, 1, a, row_a, b, row_b, 0, c, row_b)
    raised = a[: m * k] ^ np.int8(-128)
    for p in range(0, row_a, MOST):
        sizes, part = (m, n, min(MOST, k - p)), c if p == 0 else np.empty_like(c)
        to_sum = raised[p:], row_a, -128, b[p * n :], row_b, 0
        mkl.cblas_gemm_s8u8s32_64(*BY_ROWS, FIXED_OFFSET, *sizes, 1, *to_sum, 0, part, row_b, NOTHING)
        if p:
            c[: m * n] += part[: m * n]
    return None
