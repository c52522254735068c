# attention: c = softmax(q k^T / sqrt(d)) v, for m queries and n keys. q and c are m x d, k and v n x d, all by rows.
# Model: three calls into Intel's MKL, a tuned library: a product of matrices, exponentials and another product. NumPy
#   takes off each query's largest score, and divides by the sum of weights.
# Memory: the scores are an array of queries x keys. Some queries at a time keep it in the cache. Both 16-bit formats
#   have scores and sums in float32. Their weights are rounded to the inputs' format for the second product.
# Edges: the distance between rows is at least 1, even if rows are empty, as BLAS demands.
# ---
# Formats: float32, float64, float16, bfloat16

import numpy as np

from py_backends.backend._mkl import NOT_TRANSPOSED, ROW_MAJOR, TRANSPOSED, library

PAIRS = 2**18  # of a query and a key, at a time
mkl = library()
NAMES = {"float32": "sgemm", "float64": "dgemm", "float16": "gemm_f16f16f32", "bfloat16": "gemm_bf16bf16f32"}
GEMM = {np.dtype(dtype): getattr(mkl, f"cblas_{name}_64") for dtype, name in NAMES.items()}


def attention(q, k, v, c, m, d, n):
    gemm, width = GEMM[q.dtype], max(1, d)
    exponentials = mkl.vsExp_64 if c.dtype == "float32" else mkl.vdExp_64
    queries = max(1, PAIRS // n)
    for first in range(0, m if d else 0, queries):
        count = min(queries, m - first)
        scores = np.empty((count, n), c.dtype)
        some = q[first * d :]
        gemm(ROW_MAJOR, NOT_TRANSPOSED, TRANSPOSED, count, n, d, 1 / d**0.5, some, width, k, width, 0, scores, n)
        scores -= scores.max(axis=1, keepdims=True)
        exponentials(scores.size, scores, scores)
        weights, sums = scores.astype(q.dtype, copy=False), c[first * d :]
        gemm(ROW_MAJOR, NOT_TRANSPOSED, NOT_TRANSPOSED, count, d, n, 1, weights, n, v, width, 0, sums, width)
        sums[: count * d].reshape(count, d)[...] /= scores.sum(axis=1, keepdims=True)
