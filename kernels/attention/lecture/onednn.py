# attention: c = softmax(q k^T / sqrt(d)) v, for m queries and n keys. q and c are m x d, k and v n x d, all by rows.
# Model: three primitives of Intel's oneDNN, a tuned library, which generates code for this shape and CPU: a product of
#   matrices, exponentials and another product. NumPy takes off each query's largest score, and divides by the sum of
#   weights.
# Memory: the scores are an array of queries x keys. Some queries at a time keep it in the cache. Both 16-bit formats
#   have scores and sums in float32. Their weights are rounded to the inputs' format for the second product.
# Edges: oneDNN takes no empty matrices, and there is nothing to compute for them.
# ---
# Formats: float32, float16, bfloat16

import numpy as np

from py_backends.backend._onednn import Matrix, exponentiate, multiply

PAIRS = 2**18  # of a query and a key, at a time


def attention(q, k, v, c, m, d, n):
    queries = max(1, PAIRS // n)
    keys, values = Matrix(d, n, k.dtype, by_columns=True), Matrix(n, d, v.dtype)
    for first in range(0, m if d else 0, queries):
        count = min(queries, m - first)
        scores = np.empty((count, n), c.dtype)
        multiply(q[first * d :], k, scores, (Matrix(count, d, q.dtype), keys, Matrix(count, n, c.dtype)))
        scores *= c.dtype.type(1 / d**0.5)
        scores -= scores.max(axis=1, keepdims=True)
        exponentiate(scores)
        weights, sums = scores.astype(q.dtype, copy=False), c[first * d :]
        multiply(weights, v, sums, (Matrix(count, n, q.dtype), values, Matrix(count, d, c.dtype)))
        sums[: count * d].reshape(count, d)[...] /= scores.sum(axis=1, keepdims=True)
