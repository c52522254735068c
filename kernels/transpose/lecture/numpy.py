# transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.
# Model: one call for the whole array, in one thread. a.T is a view, which moves nothing: rows and columns change places
#   in its description. NumPy's compiled loop copies it element by element.
# Memory: reads a in order of c or writes c in order of a, whichever NumPy chooses; the other array by columns.
# Edges: none; the arrays know their shapes.

import numpy as np


def transpose(a, c, m, n):
    np.copyto(c, a.T)
