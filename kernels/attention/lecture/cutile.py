# attention: c = softmax(q k^T / sqrt(d)) v, for m queries and n keys. q and c are m x d, k and v n x d, all by rows.
# Model: a kernel in Python, written for a tile: one block of the GPU has 32 queries and 32 columns of values, and meets
#   32 keys at a time. The largest scores so far are taken off, so that no exponential overflows. Where larger ones
#   come, what was summed before is made smaller.
# Memory: every block reads all keys, and its columns of all values. Scores and sums lie in registers. Where d is more
#   than 32, several blocks compute the same scores.
# Edges: a tile that reaches past the end of an array has zeros there when it is read, and is cut when it is written.
#   Keys past the last one, and scores of -infinity, weigh nothing. If all are, 0 / 0 is NaN.
# ---
# Work items: ceil(m / 32) * ceil(d / 32), in groups of 1

import cuda.tile as ct

TILE = 32
ZERO = ct.PaddingMode.ZERO
INFINITY = float("inf")


@ct.kernel
def attention(q, k, v, c, m, d, n):
    tile, across, square = ct.bid(0), ct.num_tiles(c, 1, (TILE, TILE)), (TILE, TILE)
    i, column = tile // across, tile % across
    root = ct.sqrt(ct.full((1, 1), d, c.dtype))
    largest = ct.full((TILE, 1), -INFINITY, c.dtype)
    sums, values = ct.full((TILE, 1), 0, c.dtype), ct.full(square, 0, c.dtype)
    for j in range(ct.num_tiles(k, 0, square)):
        score = ct.full(square, 0, c.dtype)
        for x in range(ct.num_tiles(q, 1, square)):
            query = ct.load(q, (i, x), square, padding_mode=ZERO)
            key = ct.load(k, (j, x), square, padding_mode=ZERO)
            score = ct.mma(query, ct.transpose(key), score)
        there = (j * TILE + ct.arange(TILE, dtype=ct.int32) < n)[None, :]
        score = ct.where(there, score / root, -INFINITY)
        larger = ct.maximum(largest, ct.max(score, 1, keepdims=True))
        off = ct.where(larger == -INFINITY, 0, larger)
        kept, weight = ct.exp(largest - off), ct.exp(score - off)
        value = ct.load(v, (j, column), square, padding_mode=ZERO)
        values = ct.mma(ct.astype(weight, v.dtype), value, values * kept)
        sums = sums * kept + ct.sum(weight, 1, keepdims=True)
        largest = larger
    ct.store(c, (i, column), values / sums)
