# attention: c = softmax(q k^T / sqrt(d)) v, for m queries and n keys. q and c are m x d, k and v n x d, all by rows.
# Model: threads of Python (concurrent.futures). A task is all keys and some queries, in calls of NumPy. Its library
#   (BLAS) has one thread for each call. NumPy gives Python's lock away within each call, so tasks run at the same time.
# Memory: shared. The scores are an array of queries x keys. Some queries at a time keep it in the cache of a core.
# Edges: none; the arrays know their shapes. Without a dtype, sums would be as narrow as the inputs.

import numpy as np

PAIRS = 2**17  # of a query and a key, at a time


def attention(executor, workers, q, k, v, c, m, d, n):
    def attend(first):
        some = slice(first, first + queries)
        weights = np.matmul(q[some], k.T, dtype=c.dtype)
        weights /= c.dtype.type(d) ** c.dtype.type(0.5)
        weights -= weights.max(axis=1, keepdims=True)
        np.exp(weights, out=weights)
        np.matmul(weights, v, out=c[some], dtype=c.dtype)
        c[some] /= weights.sum(axis=1, keepdims=True)

    queries = max(1, min(PAIRS // n, -(-m // workers)))
    list(executor.map(attend, range(0, m, queries)))
