# attention: c = softmax(q k^T / sqrt(d)) v, for m queries and n keys. q and c are m x d, k and v n x d, all by rows.
# Model: each operation of the formula is a call for some queries and all keys. A tuned library (BLAS) multiplies
#   matrices, on all cores.
# Memory: the scores are an array of queries x keys. Some queries at a time keep it in the cache.
# Edges: none; the arrays know their shapes. Without a dtype, sums would be as narrow as the inputs.

import numpy as np

PAIRS = 2**18  # of a query and a key, at a time


def attention(q, k, v, c, m, d, n):
    queries = max(1, PAIRS // n)
    for first in range(0, m, queries):
        some = slice(first, first + queries)
        weights = np.matmul(q[some], k.T, dtype=c.dtype)
        weights /= c.dtype.type(d) ** c.dtype.type(0.5)
        weights -= weights.max(axis=1, keepdims=True)
        np.exp(weights, out=weights)
        np.matmul(weights, v, out=c[some], dtype=c.dtype)
        c[some] /= weights.sum(axis=1, keepdims=True)
