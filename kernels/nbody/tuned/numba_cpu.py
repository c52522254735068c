# nbody: c[i] = the sum over j of mass[j] d / (d.d + e)^(3/2), with d = position[j] - at[i] and e = 2^-10.
#   m points and n bodies: at and c are m x 3, position is n x 3, all stored by rows.
# Idea: the loop over some points is the inner one, so that the compiler fills vector registers with them.
# Model: a decorator compiles the Python loops, and prange divides the points among threads. The calling thread computes
#   few pairs by itself, since waking others takes longer.
# Memory: some points are first copied, so that all x, all y and all z lie side by side, and so do their sums. These
#   stay in the first-level cache, while all bodies are read once, in order.
# Edges: the last points are fewer. An empty sum is 0.

from math import sqrt

import numpy as np
from numba import njit, prange

POINTS = 256
"""So many that loads of one sum need not wait for the store before."""
FEW_TO_SHARE = 1 << 14
"""Pairs up to which a second thread costs more than it saves."""


@njit(nogil=True, error_model="numpy")  # without it, each division is checked for zero, and not one of a vector
def accelerate(at, position, mass, c):
    """What some points get of all bodies."""
    softening = c.dtype.type(2**-10)
    own, sums = np.empty((3, len(at)), at.dtype), np.zeros((3, len(at)), c.dtype)
    for i in range(len(at)):
        for axis in range(3):
            own[axis, i] = at[i, axis]
    own_x, own_y, own_z = own
    sum_x, sum_y, sum_z = sums
    for j in range(len(mass)):
        body_x, body_y, body_z, of_body = position[j, 0], position[j, 1], position[j, 2], mass[j]
        for i in range(len(at)):
            x, y, z = body_x - own_x[i], body_y - own_y[i], body_z - own_z[i]
            square = x * x + y * y + z * z + softening
            weight = of_body / (square * sqrt(square))
            sum_x[i] += weight * x
            sum_y[i] += weight * y
            sum_z[i] += weight * z
    for i in range(len(at)):
        for axis in range(3):
            c[i, axis] = sums[axis, i]


@njit(parallel=True, nogil=True)
def accelerate_shared(at, position, mass, c, m):
    for part in prange((m + POINTS - 1) // POINTS):
        some = slice(part * POINTS, (part + 1) * POINTS)
        accelerate(at[some], position, mass, c[some])


@njit(nogil=True)
def nbody(at, position, mass, c, m, n):
    if m * n > FEW_TO_SHARE:
        accelerate_shared(at, position, mass, c, m)
    else:
        accelerate(at, position, mass, c)
