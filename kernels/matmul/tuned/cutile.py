# matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
# Idea: large tiles, of which the compiler copies the next ones to shared memory while the present ones are multiplied.
#   Blocks that run at the same time have tiles of c in a band of 8 rows of tiles, so that they share what they read in
#   the GPU's cache.
# Model: a kernel in Python, written for a tile: one block of the GPU computes 128 x 128 elements of c. `mma` multiplies
#   tiles, by tensor cores.
# Numbers: of the others, tiles of this size do not fit into registers: float32 is multiplied without tensor cores.
# Memory: a block reads 128 rows of a and 128 columns of b, 32 elements deep at a time.
# Edges: a tile that reaches past the end of an array has zeros there when it is read, and is cut when it is written.
# Numbers: sums of int8 wrap around. Tensor cores would stop at the largest int32. So they only multiply, and what they
#   leave is added by complements, which the compiler does not make theirs.
# ---
# Formats: float16, bfloat16, int8
# Work items: ceil(m / 128) * ceil(n / 128), in groups of 1

import cuda.tile as ct

TILE, DEPTH, BAND = 128, 32, 8
ZERO = ct.PaddingMode.ZERO


def place(tile, down, across):
    """The row and the column of a block's tile: band by band, and down each column of a band."""
    first = tile // (BAND * across) * BAND
    rows = ct.minimum(down - first, BAND)
    of_band = tile % (BAND * across)
    return first + of_band % rows, of_band // rows


@ct.kernel
def matmul(a, b, c, m, n, k):
    square = (TILE, TILE)
    i, j = place(ct.bid(0), ct.num_tiles(c, 0, square), ct.num_tiles(c, 1, square))
    total = ct.full(square, 0, c.dtype)
    for p in range(ct.num_tiles(a, 1, (TILE, DEPTH))):
        left = ct.load(a, (i, p), (TILE, DEPTH), padding_mode=ZERO)
        right = ct.load(b, (p, j), (DEPTH, TILE), padding_mode=ZERO)
        if c.dtype == ct.int32:
            total = ~(~total - ct.mma(left, right, ct.full(square, 0, c.dtype)))
        else:
            total = ct.mma(left, right, total)
    ct.store(c, (i, j), total)
