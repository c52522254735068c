# attention: c = softmax(q k^T / sqrt(d)) v, for m queries and n keys. q and c are m x d, k and v n x d, all by rows.
# Model: a kernel in Python, written for a tile: one program of the GPU has 32 queries and 32 columns of values, and
#   meets 32 keys at a time. The largest scores so far are taken off, so that no exponential overflows. Where larger
#   ones come, what was summed before is made smaller.
# Memory: every program reads all keys, and its columns of all values. Scores and sums lie in registers. Where d is more
#   than 32, several programs compute the same scores.
# Edges: elements past the last width count as 0. Keys past the last one, and scores of -infinity, weigh nothing. If all
#   are, 0 / 0 is NaN.
# ---
# Work items: ceil(m / 32) * ceil(d / 32), in groups of 1

import triton
import triton.language as tl

TILE = tl.constexpr(32)


@triton.jit
def attention(q, k, v, c, m, d, n):
    dtype = c.dtype.element_ty
    tile, across = tl.program_id(0).to(tl.int64), tl.cdiv(d, TILE)
    i = (tile // across * TILE + tl.arange(0, TILE))[:, None]
    column = (tile % across * TILE + tl.arange(0, TILE))[None, :]
    largest = tl.full([TILE], -float("inf"), dtype)
    sums, values = tl.zeros([TILE], dtype), tl.zeros([TILE, TILE], dtype)
    for first in range(0, n, TILE):
        j = first + tl.arange(0, TILE)
        score = tl.zeros([TILE, TILE], dtype)
        for begin in range(0, d, TILE):
            x = begin + tl.arange(0, TILE)
            query = tl.load(q + i * d + x[None, :], (i < m) & (x[None, :] < d), 0)
            key = tl.load(k + j[None, :] * d + x[:, None], (j[None, :] < n) & (x[:, None] < d), 0)
            score = tl.dot(query, key, score, input_precision="ieee", out_dtype=dtype)
        score = tl.where(j[None, :] < n, score / tl.sqrt(d.to(dtype)), -float("inf"))
        larger = tl.maximum(largest, tl.max(score, 1))
        off = tl.where(larger == -float("inf"), 0, larger)
        kept, weight = tl.exp(largest - off), tl.exp(score - off[:, None])
        value = tl.load(v + j[:, None] * d + column, (j[:, None] < n) & (column < d), 0)
        values = tl.dot(weight.to(value.dtype), value, values * kept[:, None], input_precision="ieee", out_dtype=dtype)
        sums = sums * kept + tl.sum(weight, 1)
        largest = larger
    tl.store(c + i * d + column, values / sums[:, None], (i < m) & (column < d))
