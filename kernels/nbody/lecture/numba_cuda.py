# nbody: c[i] = the sum over j of mass[j] d / (d.d + e)^(3/2), with d = position[j] - at[i] and e = 2^-10.
#   m points and n bodies: at and c are m x 3, position is n x 3, all stored by rows.
# Model: a kernel in Python, written for one thread of an NVIDIA GPU, which has one point.
# Memory: all threads read the same body at about the same time. The GPU coalesces such accesses of a warp into one. The
#   arrays are flat, like pointers in CUDA C++: the y of body j is position[3 * j + 1].
# Edges: threads past the last point do nothing. An empty sum is 0.
# ---
# Work items: m, in groups of 128

from math import sqrt

from numba import cuda


@cuda.jit
def nbody(at, position, mass, c, m, n):
    i = cuda.grid(1)
    if i >= m:
        return
    # A zero of c's type: 0.0 would make the sums float64, even for float32.
    softening = c.dtype.type(2**-10)
    sum_x = sum_y = sum_z = c.dtype.type(0)
    for j in range(n):
        x, y, z = position[3 * j] - at[3 * i], position[3 * j + 1] - at[3 * i + 1], position[3 * j + 2] - at[3 * i + 2]
        square = x * x + y * y + z * z + softening
        weight = mass[j] / (square * sqrt(square))
        sum_x += weight * x
        sum_y += weight * y
        sum_z += weight * z
    c[3 * i], c[3 * i + 1], c[3 * i + 2] = sum_x, sum_y, sum_z
