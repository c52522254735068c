# attention: c = softmax(q k^T / sqrt(d)) v, for m queries and n keys. q and c are m x d, k and v n x d, all by rows.
# Model: processes of Python (concurrent.futures). A task is all keys and some queries, in calls of NumPy. Its library
#   (BLAS) has one thread in each process.
# Memory: of their own, but for the arrays here, which all processes map. The scores are an array of queries x keys.
# Edges: none; the arrays know their shapes. Without a dtype, sums would be as narrow as the inputs.

from functools import partial

import numpy as np

PAIRS = 2**17  # of a query and a key, at a time


def attend(q, k, v, c, queries, first):
    some = slice(first, first + queries)
    weights = np.matmul(q[some], k.T, dtype=c.dtype)
    weights /= c.dtype.type(q.shape[1]) ** c.dtype.type(0.5)
    weights -= weights.max(axis=1, keepdims=True)
    np.exp(weights, out=weights)
    np.matmul(weights, v, out=c[some], dtype=c.dtype)
    c[some] /= weights.sum(axis=1, keepdims=True)


def attention(executor, workers, q, k, v, c, m, d, n):
    queries = max(1, min(PAIRS // n, -(-m // workers)))
    list(executor.map(partial(attend, q, k, v, c, queries), range(0, m, queries)))
