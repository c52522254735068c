# vecadd: c[i] = a[i] + b[i] for vectors of n elements.
# Model: one call for the whole array, in one thread. NumPy's compiled loop adds the elements with vector instructions.
# Memory: reads a and b once and writes c once, in order.
# Edges: none; the arrays know their lengths.

import numpy as np


def vecadd(a, b, c, n):
    np.add(a, b, out=c)
