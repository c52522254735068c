# nbody: c[i] = the sum over j of mass[j] d / (d.d + e)^(3/2), with d = position[j] - at[i] and e = 2^-10.
#   m points and n bodies: at and c are m x 3, position is n x 3, all stored by rows.
# Idea: a block brings a tile of bodies to memory that its threads share, a body a thread. A thread has two points, for
#   which it reads each body once.
# Model: a block has 128 threads and a tile of as many bodies in shared memory.
# Memory: all threads of a warp read the same number in shared memory, which is one access.
# Edges: every thread goes to every barrier, so none returns early. Points beyond the last one are not written.
# ---
# Work items: ceil(m / 2), in groups of 128

from math import sqrt

from numba import cuda
from numpy import uint64

THREADS, POINTS = 128, 2


@cuda.jit
def nbody(at, position, mass, c, m, n):
    # Numbers of c's type: 0.0 would make the sums float64, even for float32.
    zero, one, softening = c.dtype.type(0), c.dtype.type(1), c.dtype.type(2**-10)
    tile = cuda.shared.array((4, THREADS), at.dtype)
    own, sums = cuda.local.array((POINTS, 3), at.dtype), cuda.local.array((POINTS, 3), at.dtype)
    thread = cuda.threadIdx.x
    begin = cuda.blockIdx.x * THREADS * POINTS + thread
    for p in range(POINTS):
        for axis in range(3):
            sums[p, axis] = zero
            i = begin + p * THREADS
            # Numba does not check an unsigned index for counting from the end.
            own[p, axis] = at[uint64(3 * i + axis)] if i < m else zero
    for first in range(0, n, THREADS):
        if first + thread < n:
            for axis in range(3):
                tile[axis, thread] = position[uint64(3 * (first + thread) + axis)]
            tile[3, thread] = mass[uint64(first + thread)]
        cuda.syncthreads()  # the tile is complete
        for j in range(min(THREADS, n - first)):
            for p in range(POINTS):
                x, y, z = tile[0, j] - own[p, 0], tile[1, j] - own[p, 1], tile[2, j] - own[p, 2]
                r = one / sqrt(x * x + y * y + z * z + softening)
                weight = tile[3, j] * (r * (r * r))
                sums[p, 0] += weight * x
                sums[p, 1] += weight * y
                sums[p, 2] += weight * z
        cuda.syncthreads()  # nobody reads it any more
    for p in range(POINTS):
        i = begin + p * THREADS
        for axis in range(3 if i < m else 0):
            c[uint64(3 * i + axis)] = sums[p, axis]
