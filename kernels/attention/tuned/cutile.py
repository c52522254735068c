# attention: c = softmax(q k^T / sqrt(d)) v, for m queries and n keys. q and c are m x d, k and v n x d, all by rows.
# Idea: tensor cores multiply queries by keys and weights by values; scores, weights and sums stay in registers. Weights
#   are powers of 2, which GPUs have an instruction for: scores are scaled by log2(e) / sqrt(d).
#   (Dao, FlashAttention-2: faster attention with better parallelism and work partitioning, ICLR 2024.)
# Model: a kernel in Python, written for a tile: one block of the GPU has 64 queries and 64 columns of values, and meets
#   64 keys at a time.
# Numbers: of the others, tiles of this size do not fit into registers: float32 is multiplied without tensor cores.
# Memory: a block keeps the first 64 elements of its queries. It reads all keys, and its columns of all values. Where d
#   is more than 64, several blocks compute the same scores, and read the rest of their queries again.
# Edges: a tile that reaches past the end of an array has zeros there when it is read, and is cut when it is written.
#   Keys past the last one, and scores of -infinity, weigh nothing. If all are, 0 / 0 is NaN.
# ---
# Formats: float16, bfloat16
# Work items: ceil(m / 64) * ceil(d / 64), in groups of 1

import cuda.tile as ct

TILE = 64
ZERO = ct.PaddingMode.ZERO
INFINITY = float("inf")
LOG2_E = 1.4426950408889634


@ct.kernel
def attention(q, k, v, c, m, d, n):
    tile, across, square = ct.bid(0), ct.num_tiles(c, 1, (TILE, TILE)), (TILE, TILE)
    i, column = tile // across, tile % across
    query = ct.load(q, (i, 0), square, padding_mode=ZERO)
    scale = LOG2_E / ct.sqrt(ct.full((1, 1), d, c.dtype))
    largest = ct.full((TILE, 1), -INFINITY, c.dtype)
    sums, values = ct.full((TILE, 1), 0, c.dtype), ct.full(square, 0, c.dtype)
    for j in range(ct.num_tiles(k, 0, square)):
        key = ct.load(k, (j, 0), square, padding_mode=ZERO)
        score = ct.mma(query, ct.transpose(key), ct.full(square, 0, c.dtype))
        for x in range(1, ct.num_tiles(q, 1, square)):
            more = ct.load(q, (i, x), square, padding_mode=ZERO)
            of_key = ct.load(k, (j, x), square, padding_mode=ZERO)
            score = ct.mma(more, ct.transpose(of_key), score)
        there = (j * TILE + ct.arange(TILE, dtype=ct.int32) < n)[None, :]
        score = ct.where(there, score, -INFINITY)
        larger = ct.maximum(largest, ct.max(score, 1, keepdims=True))
        off = ct.where(larger == -INFINITY, 0, larger)
        kept, weight = ct.exp2((largest - off) * scale), ct.exp2((score - off) * scale)
        value = ct.load(v, (j, column), square, padding_mode=ZERO)
        values = ct.mma(ct.astype(weight, v.dtype), value, values * kept)
        sums = sums * kept + ct.sum(weight, 1, keepdims=True)
        largest = larger
    ct.store(c, (i, column), values / sums)
