# attention: c = softmax(q k^T / sqrt(d)) v, for m queries and n keys. q and c are m x d, k and v n x d, all by rows.
# Model: a kernel in Python, written for one thread of an NVIDIA GPU, which has one query. The largest score so far is
#   taken off, so that no exponential overflows. Where a larger one comes, what was summed before is made smaller.
# Memory: all threads read the same key and value at about the same time. The GPU coalesces such accesses of a warp into
#   one. No scores are stored: a row of c holds the sums. The arrays are flat, like pointers in CUDA C++.
# Edges: threads past the last query do nothing. A score of -infinity weighs nothing. If all are, 0 / 0 is NaN.
# ---
# Work items: m, in groups of 128

from math import exp, inf, sqrt

from numba import cuda

from py_backends.backend.formats.numba_cuda import widen


@cuda.jit
def attention(q, k, v, c, m, d, n):
    i = cuda.grid(1)
    if i >= m:
        return
    # A zero of c's type: 0.0 would make the sums float64, even for float32.
    zero = c.dtype.type(0)
    largest, sum, root = c.dtype.type(-inf), zero, sqrt(c.dtype.type(d))
    for x in range(d):
        c[i * d + x] = zero
    for j in range(n):
        score = zero
        for x in range(d):
            score += widen(q[i * d + x]) * widen(k[j * d + x])
        score /= root
        if score == -inf:
            continue
        larger = max(largest, score)
        kept, weight = exp(largest - larger), exp(score - larger)
        for x in range(d):
            c[i * d + x] = c[i * d + x] * kept + weight * widen(v[j * d + x])
        sum, largest = sum * kept + weight, larger
    for x in range(d):
        c[i * d + x] /= sum
