# vecadd: c[i] = a[i] + b[i] for n elements.
# Model: one call for the whole array; the loop is compiled, vectorised and out of sight.
# Memory: a and b are read and c is written once, in order, on one thread.
# Edges: none; the arrays know their lengths.

import numpy as np


def vecadd(a, b, c, n):
    np.add(a, b, out=c)
