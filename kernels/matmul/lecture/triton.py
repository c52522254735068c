# matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
# Model: a kernel in Python, written for a tile: one program of the GPU computes 32 x 32 elements of c. `dot` multiplies
#   tiles, by tensor cores where the GPU has them for the format. `ieee` keeps it from rounding float32 before.
# Numbers: int8 is in tuned: the sums of tensor cores stop at the largest int32, where ours wrap around.
# Memory: a program reads 32 rows of a and 32 columns of b, 32 x 32 elements at a time. Which of them go through shared
#   memory is the compiler's matter.
# Edges: elements past the last row, column or product are masked, and count as 0.
# ---
# Formats: float32, float64, float16, bfloat16
# Work items: ceil(m / 32) * ceil(n / 32), in groups of 1

import triton
import triton.language as tl

TILE = tl.constexpr(32)


@triton.jit
def matmul(a, b, c, m, n, k):
    tile, across = tl.program_id(0).to(tl.int64), tl.cdiv(n, TILE)
    i = (tile // across * TILE + tl.arange(0, TILE))[:, None]
    j = (tile % across * TILE + tl.arange(0, TILE))[None, :]
    total = tl.zeros([TILE, TILE], c.dtype.element_ty)
    for first in range(0, k, TILE):
        p = first + tl.arange(0, TILE)
        of_a = tl.load(a + i * k + p[None, :], (i < m) & (p[None, :] < k), 0)
        of_b = tl.load(b + p[:, None] * n + j, (p[:, None] < k) & (j < n), 0)
        total = tl.dot(of_a, of_b, total, input_precision="ieee", out_dtype=c.dtype.element_ty)
    tl.store(c + i * n + j, total, (i < m) & (j < n))
