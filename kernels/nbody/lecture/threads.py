# nbody: c[i] = the sum over j of mass[j] d / (d.d + e)^(3/2), with d = position[j] - at[i] and e = 2^-10.
#   m points and n bodies: at and c are m x 3, position is n x 3, all stored by rows.
# Model: threads of Python (concurrent.futures). A task is all bodies and some points, in calls of NumPy. There are more
#   tasks than threads: whichever is done takes the next one. NumPy gives Python's lock away within each call.
# Memory: shared. Each call writes an array of bodies x points. Some points at a time keep these in the cache of a core.
# Edges: none; the arrays know their lengths, and an empty sum is 0.

import numpy as np

PAIRS = 32768  # of a body and a point, at a time


def nbody(executor, workers, at, position, mass, c, m, n):
    def sum_up(first):
        some = slice(first, first + points)
        d = position - at[some, np.newaxis]
        square = np.einsum("ijk,ijk->ij", d, d) + at.dtype.type(2**-10)
        weight = mass / (square * np.sqrt(square))
        np.einsum("ij,ijk->ik", weight, d, out=c[some])

    points = max(1, min(PAIRS // max(1, n), -(-m // workers)))
    list(executor.map(sum_up, range(0, m, points)))
