# matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
# Model: a block of 64 threads computes a tile of c, of which each thread has 8 x 8 sums in registers. What a thread
#   reads once from shared memory it multiplies 8 times. Local arrays lie in registers where unrolled loops of constant
#   length index them.
# Memory: slices of a, by columns, and of b lie in shared memory twice. One is multiplied while the next is on its way.
#   They are in the format of the sums.
# Edges: beyond the last row or column, a tile computes with the last one again, and writes nothing. Beyond k it adds
#   zeros. Rows beyond the grid are computed afterwards, one grid height apart.
# ---
# Work items: ceil(n / 8) x ceil(m / 8), in groups of 8 x 8

from numba import config, cuda, int64
from numpy import uint64

from py_backends.backend.formats.numba_cuda import widen

GROUP = 8  # threads of a block, down and across
EACH = 8  # sums of a thread, down and across
TILE = GROUP * EACH
DEPTH = 8  # columns of a and rows of b in a slice
VECTOR = 4  # neighbours that a thread reads at once; the other half of its EACH is half a tile away
PADDED = TILE + VECTOR  # threads write neighbours of a row of a to different banks of shared memory
ALIGNMENT = None if config.ENABLE_CUDASIM else 16  # in bytes, for reading vectors; the simulator has no alignment


@cuda.jit(device=True)
def load(a, b, from_a, from_b, n, left, zero, next_a, next_b):
    """Load a thread's part of the next slices, of which k has `left`, and move on. Unsigned indices need no check."""
    for s in range(DEPTH):
        next_a[s] = widen(a[uint64(from_a[s])]) if cuda.threadIdx.x < left else zero
        from_a[s] += DEPTH
    for s in range(DEPTH):
        next_b[s] = widen(b[uint64(from_b[0])]) if s < left else zero
        from_b[0] += n


@cuda.jit(device=True)
def multiply(slice_a, slice_b, x, y, column, row, sums):
    """Add the product of two slices to a thread's sums."""
    for q in range(DEPTH):
        for e in range(VECTOR):
            column[e] = slice_a[uint64(q), y * VECTOR + e]
            column[VECTOR + e] = slice_a[uint64(q), TILE // 2 + y * VECTOR + e]
            row[e] = slice_b[uint64(q), x * VECTOR + e]
            row[VECTOR + e] = slice_b[uint64(q), TILE // 2 + x * VECTOR + e]
        for r in range(EACH):
            for s in range(EACH):
                sums[r, s] += column[r] * row[s]


@cuda.jit(device=True)
def write(sums, c, first_row, first_column, m, n):
    """Write a thread's sums."""
    for r in range(EACH):
        i = first_row + r // VECTOR * (TILE // 2) + r % VECTOR
        if i < m:
            for s in range(EACH):
                j = first_column + s // VECTOR * (TILE // 2) + s % VECTOR
                if j < n:
                    c[uint64(i * n + j)] = sums[r, s]


@cuda.jit
def matmul(a, b, c, m, n, k):
    slices_a = cuda.shared.array((2, DEPTH, PADDED), c.dtype, ALIGNMENT)
    slices_b = cuda.shared.array((2, DEPTH, TILE), c.dtype, ALIGNMENT)
    sums = cuda.local.array((EACH, EACH), c.dtype)
    column = cuda.local.array(EACH, c.dtype)
    row = cuda.local.array(EACH, c.dtype)
    next_a = cuda.local.array(DEPTH, c.dtype)
    next_b = cuda.local.array(DEPTH, c.dtype)
    from_a = cuda.local.array(DEPTH, int64)
    from_b = cuda.local.array(1, int64)
    # The mask tells the compiler that no index is negative, and so where vectors are aligned. It changes no value.
    x = cuda.threadIdx.x & (GROUP - 1)
    y = cuda.threadIdx.y & (GROUP - 1)
    thread = y * GROUP + x
    zero = c.dtype.type(0)
    j = cuda.blockIdx.x * TILE
    if j >= n:
        return
    for i in range(cuda.blockIdx.y * TILE, m, cuda.gridDim.y * TILE):
        for r in range(EACH):
            from_a[r] = min(i + y + r * GROUP, m - 1) * k + x
            for s in range(EACH):
                sums[r, s] = 0
        from_b[0] = min(j + thread, n - 1)
        load(a, b, from_a, from_b, n, k, zero, next_a, next_b)
        turn = 0
        for p in range(0, k, DEPTH):
            slice_a = slices_a[turn]
            slice_b = slices_b[turn]
            for s in range(DEPTH):
                slice_a[x, y + s * GROUP] = next_a[s]
                slice_b[s, thread] = next_b[s]
            cuda.syncthreads()  # all have written these slices, and none reads the others any longer
            load(a, b, from_a, from_b, n, k - p - DEPTH, zero, next_a, next_b)
            multiply(slice_a, slice_b, x, y, column, row, sums)
            turn = 1 - turn
        cuda.syncthreads()
        write(sums, c, i + y * VECTOR, j + x * VECTOR, m, n)
