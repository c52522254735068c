# matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
# Idea: large tiles, of which the next ones are copied to shared memory while the present ones are multiplied
#   (`num_stages`). Programs that run at the same time have tiles of c in a band of 8 rows of tiles, so that they share
#   what they read in the GPU's cache.
# Model: a kernel in Python, written for a tile: one program of the GPU computes 128 x 128 elements of c, in 8 warps.
#   `dot` multiplies tiles, by tensor cores where the GPU has them for the format.
# Numbers: tiles of float64 would not fit into the shared memory of many GPUs.
# Memory: a program reads 128 rows of a and 128 columns of b, 32 elements deep at a time.
# Edges: reads past the last row or column begin again at the first, and so need no mask. What comes of them is not
#   stored. Elements past the last product are masked, and count as 0.
# Numbers: sums of int8 wrap around. Tensor cores would stop at the largest int32, and the compiler gives them any sum
#   that it finds behind a product. It does not find one that is written with complements.
# ---
# Formats: float32, float16, bfloat16, int8
# Work items: ceil(m / 128) * ceil(n / 128), in groups of 1

import triton
import triton.language as tl

TILE, DEPTH, BAND = tl.constexpr(128), tl.constexpr(32), tl.constexpr(8)
OPTIONS = {"num_warps": 8, "num_stages": 3}


@triton.jit
def place(m, n):
    """The row and the column of a program's tile: band by band, and down each column of a band."""
    tile, down, across = tl.program_id(0).to(tl.int64), tl.cdiv(m, TILE), tl.cdiv(n, TILE)
    first = tile // (BAND * across) * BAND
    rows = tl.minimum(down - first, BAND)
    of_band = tile % (BAND * across)
    return first + of_band % rows, of_band // rows


@triton.jit
def matmul(a, b, c, m, n, k):
    dtype = c.dtype.element_ty
    row, column = place(m, n)
    i, j = (row * TILE + tl.arange(0, TILE))[:, None], (column * TILE + tl.arange(0, TILE))[None, :]
    p = tl.arange(0, DEPTH)
    of_a, of_b = a + i % m * k + p[None, :], b + p[:, None] * n + j % n
    total = tl.zeros([TILE, TILE], dtype)
    depth = tl.where(m * n > 0, k, 0)  # else there is no first row or column to begin again at
    for first in range(0, depth, DEPTH):
        left = tl.load(of_a, p[None, :] < k - first, 0)
        right = tl.load(of_b, p[:, None] < k - first, 0)
        if dtype == tl.int32:
            total = ~(~total - tl.dot(left, right, out_dtype=dtype))
        else:
            total = tl.dot(left, right, total, input_precision="ieee", out_dtype=dtype)
        of_a += DEPTH
        of_b += DEPTH * n
    tl.store(c + i * n + j, total, (i < m) & (j < n))
