# nbody: c[i] = the sum over j of mass[j] d / (d.d + e)^(3/2), with d = position[j] - at[i] and e = 2^-10.
#   m points and n bodies: at and c are m x 3, position is n x 3, all stored by rows.
# Model: each operation of the formula is a call for all bodies and some points, by broadcasting, in one thread.
# Memory: each call writes an array of bodies x points. Some points at a time keep these in the cache.
# Edges: none; the arrays know their lengths, and an empty sum is 0.

import numpy as np

PAIRS = 16384  # of a body and a point, at a time


def nbody(at, position, mass, c, m, n):
    points = max(1, PAIRS // max(1, n))
    for first in range(0, m, points):
        some = slice(first, first + points)
        d = position - at[some, np.newaxis]
        square = np.einsum("ijk,ijk->ij", d, d) + at.dtype.type(2**-10)
        weight = mass / (square * np.sqrt(square))
        np.einsum("ij,ijk->ik", weight, d, out=c[some])
