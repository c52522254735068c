# attention: c = softmax(q k^T / sqrt(d)) v, for m queries and n keys. q and c are m x d, k and v n x d, all by rows.
# Model: a decorator compiles the Python loops, and prange divides the queries among threads. The largest score so far
#   is taken off, so that no exponential overflows. Where a larger one comes, what was summed before is made smaller.
# Memory: every thread reads all keys and values for each of its queries, in order. No scores are stored: a row of c
#   holds the sums.
# Edges: a score of -infinity weighs nothing. If all are, 0 / 0 is NaN.

from math import exp, inf, sqrt

from numba import njit, prange

from py_backends.backend.formats.numba_cpu import widen


@njit(parallel=True, nogil=True, error_model="numpy")
def attention(q, k, v, c, m, d, n):
    # A zero of c's type: 0.0 would make the sums float64, even for float32.
    zero, root = c.dtype.type(0), sqrt(c.dtype.type(d))
    for i in prange(m):
        largest, sum = c.dtype.type(-inf), zero
        for x in range(d):
            c[i, x] = zero
        for j in range(n):
            score = zero
            for x in range(d):
                score += widen(q[i, x]) * widen(k[j, x])
            score /= root
            if score == -inf:
                continue
            larger = max(largest, score)
            kept, weight = exp(largest - larger), exp(score - larger)
            for x in range(d):
                c[i, x] = c[i, x] * kept + weight * widen(v[j, x])
            sum, largest = sum * kept + weight, larger
        for x in range(d):
            c[i, x] /= sum
