# dot: c = the sum of a[i] b[i] for vectors of n elements.
# Model: one call for both arrays. For float32 and float64 it is one of a tuned library (BLAS), which divides long
#   vectors among threads. For narrower formats `einsum` widens the elements and adds in c's format, in one thread.
# Memory: reads a and b once, in order. Narrow elements are widened some thousands at a time.
# Edges: none; the arrays know their lengths, and an empty sum is 0.

import numpy as np


def dot(a, b, c, n):
    if a.dtype == c.dtype:
        np.dot(a, b, out=c)
    else:
        np.einsum("i,i", a, b, out=c, dtype=c.dtype)
