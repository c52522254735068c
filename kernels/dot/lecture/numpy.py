# dot: c = the sum of a[i] b[i] for vectors of n elements.
# Model: one call for both arrays. For float32 and float64 it is one of a tuned library (BLAS), which divides long vectors
#   among threads.
# Memory: reads a and b once, in order.
# Edges: none; the arrays know their lengths. Without a dtype, sums would be as narrow as the inputs.

import numpy as np


def dot(a, b, c, n):
    np.vecdot(a, b, out=c, dtype=c.dtype)
