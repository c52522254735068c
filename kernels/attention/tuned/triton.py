# attention: c = softmax(q k^T / sqrt(d)) v, for m queries and n keys. q and c are m x d, k and v n x d, all by rows.
# Idea: tensor cores multiply queries by keys and weights by values; scores, weights and sums stay in registers, and the
#   next keys and values are copied to shared memory meanwhile (`num_stages`). Weights are powers of 2, which GPUs have
#   an instruction for: queries are not scaled, but scores are, by log2(e) / sqrt(d).
#   (Dao, FlashAttention-2: faster attention with better parallelism and work partitioning, ICLR 2024.)
# Model: a kernel in Python, written for a tile: one program of the GPU has 64 queries and 64 columns of values, and
#   meets 64 keys at a time, in 4 warps.
# Numbers: tiles of float64 would not fit into the shared memory of many GPUs.
# Memory: a program keeps the first 64 elements of its queries. It reads all keys, and its columns of all values. Where
#   d is more than 64, several programs compute the same scores, and read the rest of their queries again.
# Edges: elements past the last width count as 0. Keys past the last one, and scores of -infinity, weigh nothing. If all
#   are, 0 / 0 is NaN.
# ---
# Formats: float32, float16, bfloat16
# Work items: ceil(m / 64) * ceil(d / 64), in groups of 1

import triton
import triton.language as tl

TILE = tl.constexpr(64)
LOG2_E = tl.constexpr(1.4426950408889634)
OPTIONS = {"num_warps": 4, "num_stages": 3}


@triton.jit
def part(of, rows, columns, most_rows, width):
    """Elements of a matrix that is stored by rows, and 0 past its ends."""
    return tl.load(of + rows * width + columns, (rows < most_rows) & (columns < width), 0)


@triton.jit
def attention(q, k, v, c, m, d, n):
    dtype = c.dtype.element_ty
    tile, across = tl.program_id(0).to(tl.int64), tl.cdiv(d, TILE)
    i = (tile // across * TILE + tl.arange(0, TILE))[:, None]
    column = (tile % across * TILE + tl.arange(0, TILE))[None, :]
    x = tl.arange(0, TILE)
    query = part(q, i, x[None, :], m, d)
    scale = LOG2_E / tl.sqrt(d.to(dtype))
    largest = tl.full([TILE], -float("inf"), dtype)
    sums, values = tl.zeros([TILE], dtype), tl.zeros([TILE, TILE], dtype)
    for first in range(0, n, TILE):
        j = first + tl.arange(0, TILE)
        key = part(k, j[None, :], x[:, None], n, d)
        score = tl.dot(query, key, input_precision="ieee", out_dtype=dtype)
        for begin in range(TILE, d, TILE):
            more, of_key = part(q, i, begin + x[None, :], m, d), part(k, j[None, :], begin + x[:, None], n, d)
            score = tl.dot(more, of_key, score, input_precision="ieee", out_dtype=dtype)
        score = tl.where(j[None, :] < n, score, -float("inf"))
        larger = tl.maximum(largest, tl.max(score, 1))
        off = tl.where(larger == -float("inf"), 0, larger)
        kept, weight = tl.exp2((largest - off) * scale), tl.exp2((score - off[:, None]) * scale)
        value = part(v, j[:, None], column, n, d)
        values = tl.dot(weight.to(value.dtype), value, values * kept[:, None], input_precision="ieee", out_dtype=dtype)
        sums = sums * kept + tl.sum(weight, 1)
        largest = larger
    tl.store(c + i * d + column, values / sums[:, None], (i < m) & (column < d))
