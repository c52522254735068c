# nbody: c[i] = the sum over j of mass[j] d / (d.d + e)^(3/2), with d = position[j] - at[i] and e = 2^-10.
#   m points and n bodies: at and c are m x 3, position is n x 3, all stored by rows.
# Model: processes of Python (concurrent.futures). A task is all bodies and some points, in calls of NumPy. There are
#   more tasks than processes: whichever is done takes the next one.
# Memory: of their own, but for the arrays here, which all processes map. Each call writes an array of bodies x points.
# Edges: none; the arrays know their lengths, and an empty sum is 0.

from functools import partial

import numpy as np

PAIRS = 32768  # of a body and a point, at a time


def sum_up(at, position, mass, c, points, first):
    some = slice(first, first + points)
    d = position - at[some, np.newaxis]
    square = np.einsum("ijk,ijk->ij", d, d) + at.dtype.type(2**-10)
    weight = mass / (square * np.sqrt(square))
    np.einsum("ij,ijk->ik", weight, d, out=c[some])


def nbody(executor, workers, at, position, mass, c, m, n):
    points = max(1, min(PAIRS // max(1, n), -(-m // workers)))
    list(executor.map(partial(sum_up, at, position, mass, c, points), range(0, m, points)))
