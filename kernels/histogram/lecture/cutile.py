# histogram: c[k] = how many of a[i] lie in [k / 256, (k + 1) / 256), of n; of int8, how many are k - 128.
# Model: a kernel in Python, written for a tile: one block of the GPU counts 1024 elements. Many may meet at a counter.
#   So the updates are atomic: each reads, adds and writes, and no other comes between. Blocks cannot wait for each
#   other, so a first kernel sets the counters to 0.
# Memory: reads a once, in order. Updates of one counter wait for one another.
# Edges: what lies outside of [0, 1), NaN too, gets the index 256, past the counters, where no update is done. So do
#   the elements past the last one. Where n is 0, there is no tile to count.
# ---
# Work items of clear: 1, in groups of 1
# Work items: ceil(n / 1024), in groups of 1

import cuda.tile as ct

from py_backends.backend.formats.cutile import widen

TILE = 1024


@ct.kernel
def clear(a, c, n):
    ct.store(c, (0,), ct.full((256,), 0, c.dtype))


@ct.kernel
def histogram(a, c, n):
    tile = ct.bid(0)
    if tile * TILE < n:
        x = widen(ct.load(a, (tile,), (TILE,), padding_mode=ct.PaddingMode.ZERO))
        at = x + 128 if a.dtype == ct.int8 else x * 256
        inside = (at >= 0) & (at < 256) & (ct.arange(TILE, dtype=ct.int64) < n - tile * TILE)
        ct.atomic_add(c, ct.astype(ct.where(inside, at, 256), ct.int32), 1)
