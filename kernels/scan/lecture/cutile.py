# scan: c[i] = a[0] + ... + a[i] for a vector of n elements.
# Model: a kernel in Python, written for a tile: one block of the GPU computes the sums of 1024 elements. Blocks cannot
#   wait for each other. So a second kernel computes what comes before each tile, and a third one adds that.
# Memory: reads and writes tiles as wholes. How threads compute the sums of a tile is the compiler's matter.
# Edges: a tile that reaches past the end of an array is padded with zeros, and cut where it is written.
# ---
# Work items of scan_tiles: ceil(n / 1024), in groups of 1
# Work items of scan_sums: 1, in groups of 1
# Work items: ceil(n / 1024), in groups of 1
# Scratch: ceil(n / 1024) elements of Sum

import cuda.tile as ct

from py_backends.backend.formats.cutile import widen

TILE = 1024
ZERO = ct.PaddingMode.ZERO


@ct.kernel
def scan_tiles(a, c, scratch, n):
    i = ct.bid(0)
    own = widen(ct.load(a, (i,), (TILE,), padding_mode=ZERO))
    ct.store(c, (i,), ct.cumsum(own, 0))
    ct.store(scratch, (i,), ct.sum(own, 0, keepdims=True))


@ct.kernel
def scan_sums(a, c, scratch, n):
    before = ct.full((1,), 0, c.dtype)
    for i in range(ct.num_tiles(scratch, 0, (TILE,))):
        own = ct.load(scratch, (i,), (TILE,), padding_mode=ZERO)
        ct.store(scratch, (i,), before + ct.cumsum(own, 0))
        before = before + ct.sum(own, 0, keepdims=True)


@ct.kernel
def scan(a, c, scratch, n):
    i = ct.bid(0)
    if i > 0:
        before = ct.load(scratch, (i - 1,), (1,))
        ct.store(c, (i,), ct.load(c, (i,), (TILE,)) + before)
