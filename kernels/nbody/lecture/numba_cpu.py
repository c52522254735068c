# nbody: c[i] = the sum over j of mass[j] d / (d.d + e)^(3/2), with d = position[j] - at[i] and e = 2^-10.
#   m points and n bodies: at and c are m x 3, position is n x 3, all stored by rows.
# Model: a decorator compiles the Python loops, and prange divides the points among threads.
# Memory: every thread reads all bodies for each of its points, in order. They stay in a cache.
# Edges: none; the loops end with the last body and point, and an empty sum is 0.

from math import sqrt

from numba import njit, prange


@njit(parallel=True, nogil=True)
def nbody(at, position, mass, c, m, n):
    # A zero of c's type: 0.0 would make the sums float64, even for float32.
    zero, softening = c.dtype.type(0), c.dtype.type(2**-10)
    for i in prange(m):
        sum_x = sum_y = sum_z = zero
        for j in range(n):
            x, y, z = position[j, 0] - at[i, 0], position[j, 1] - at[i, 1], position[j, 2] - at[i, 2]
            square = x * x + y * y + z * z + softening
            weight = mass[j] / (square * sqrt(square))
            sum_x += weight * x
            sum_y += weight * y
            sum_z += weight * z
        c[i, 0], c[i, 1], c[i, 2] = sum_x, sum_y, sum_z
