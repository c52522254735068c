# scan: c[i] = a[0] + ... + a[i] for a vector of n elements.
# Model: one call for the whole array, in one thread. NumPy adds one element after the other, and stores each sum.
# Memory: reads a once and writes c once, in order. Narrow elements are widened some thousands at a time.
# Edges: none; the array knows its length.

import numpy as np


def scan(a, c, n):
    np.cumsum(a, dtype=c.dtype, out=c)
