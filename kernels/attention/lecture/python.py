# attention: c = softmax(q k^T / sqrt(d)) v, for m queries and n keys. q and c are m x d, k and v n x d, all by rows.
# Model: plain Python in one thread. The largest score keeps exponentials at most 1.
# Memory: lists of boxed floats, read through pointers. All scores of a query are stored.
# Edges: without a width there is nothing to compute, and its root would be divided by.

from math import exp


def attention(q, k, v, c, m, d, n):
    for i in range(m if d else 0):
        scores = [sum(q[i * d + x] * k[j * d + x] for x in range(d)) / d**0.5 for j in range(n)]
        largest = max(scores)
        weights = [exp(score - largest) for score in scores]
        total = sum(weights)
        for x in range(d):
            c[i * d + x] = sum(weights[j] * v[j * d + x] for j in range(n)) / total
