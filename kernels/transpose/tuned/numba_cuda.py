# transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.
# Idea: a block turns a tile over in memory that its threads share, so that it reads and writes neighbours. Rows of the
#   tile are padded by an element. So at most two of those that a warp reads of a column lie in the same bank.
# Model: a block of 32 x 8 threads moves a tile of 64 x 64 elements. A thread loads its 16 before it stores the first.
# Memory: a warp reads 32 neighbours of a row of a, and writes 32 of a row of c. Then it moves the next 32.
# Edges: every thread goes to every barrier. Elements beyond the ends are neither read nor written. Where the grid would
#   be too high, blocks go on in strides of its height.
# ---
# Work items: ceil(n / 2) x ceil(m / 8), in groups of 32 x 8

from numba import cuda
from numpy import uint64

SIDE = 64  # of a tile
PADDED = SIDE + 1
WARP, ROWS = 32, 8  # threads of a block, across and down
EACH = SIDE // ROWS  # rows of a tile of which a thread has two elements


@cuda.jit
def transpose(a, c, m, n):
    tile = cuda.shared.array((SIDE, PADDED), a.dtype)
    own = cuda.local.array((EACH, 2), a.dtype)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    left = cuda.blockIdx.x * SIDE
    for top in range(cuda.blockIdx.y * SIDE, m, cuda.gridDim.y * SIDE):
        for r in range(EACH):
            j = left + y + r * ROWS
            for s in range(2):
                i = top + x + s * WARP
                if i < m and j < n:
                    own[r, s] = a[uint64(j * m + i)]  # Numba does not check an unsigned index for counting from the end
        for r in range(EACH):
            for s in range(2):
                tile[y + r * ROWS, x + s * WARP] = own[r, s]
        cuda.syncthreads()  # the tile is complete
        for r in range(EACH):
            i = top + y + r * ROWS
            for s in range(2):
                j = left + x + s * WARP
                if i < m and j < n:
                    c[uint64(i * n + j)] = tile[x + s * WARP, y + r * ROWS]
        cuda.syncthreads()  # nobody reads it any more
