# matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
# Model: a kernel in Python, written for a tile: one block of the GPU computes 32 x 32 elements of c. `mma` multiplies
#   tiles, by tensor cores where the GPU has them for the format.
# Numbers: int8 is in tuned: the sums of tensor cores stop at the largest int32, where ours wrap around.
# Memory: a block reads 32 rows of a and 32 columns of b, 32 x 32 elements at a time. Which of them go through shared
#   memory is the compiler's matter.
# Edges: a tile that reaches past the end of an array has zeros there when it is read, and is cut when it is written.
# ---
# Formats: float32, float64, float16, bfloat16
# Work items: ceil(m / 32) * ceil(n / 32), in groups of 1

import cuda.tile as ct

TILE = 32
ZERO = ct.PaddingMode.ZERO


@ct.kernel
def matmul(a, b, c, m, n, k):
    tile, across = ct.bid(0), ct.num_tiles(c, 1, (TILE, TILE))
    i, j = tile // across, tile % across
    total = ct.full((TILE, TILE), 0, c.dtype)
    for p in range(ct.num_tiles(a, 1, (TILE, TILE))):
        left = ct.load(a, (i, p), (TILE, TILE), padding_mode=ZERO)
        right = ct.load(b, (p, j), (TILE, TILE), padding_mode=ZERO)
        total = ct.mma(left, right, total)
    ct.store(c, (i, j), total)
