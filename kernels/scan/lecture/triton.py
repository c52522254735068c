# scan: c[i] = a[0] + ... + a[i] for a vector of n elements.
# Model: a kernel in Python, written for a tile: one program of the GPU computes the sums of 1024 elements. Programs
#   cannot wait for each other. So a second kernel computes what comes before each tile, and a third one adds that.
# Memory: reads and writes neighbours. How threads compute the sums of a tile is the compiler's matter.
# Edges: elements past the last one are masked, and count as 0.
# ---
# Work items of scan_tiles: ceil(n / 1024), in groups of 1
# Work items of scan_sums: 1, in groups of 1
# Work items: ceil(n / 1024), in groups of 1
# Scratch: ceil(n / 1024) elements of Sum

import triton
import triton.language as tl

from py_backends.backend.formats.triton import widen

TILE = tl.constexpr(1024)


@triton.jit
def scan_tiles(a, c, scratch, n):
    tile = tl.program_id(0).to(tl.int64)
    i = tile * TILE + tl.arange(0, TILE)
    own = widen(tl.load(a + i, i < n, 0))
    tl.store(c + i, tl.cumsum(own, 0), i < n)
    tl.store(scratch + tile, tl.sum(own), tile * TILE < n)


@triton.jit
def scan_sums(a, c, scratch, n):
    before = tl.sum(tl.zeros([TILE], c.dtype.element_ty))
    for first in range(0, tl.cdiv(n, TILE), TILE):
        i = first + tl.arange(0, TILE)
        own = tl.load(scratch + i, i < tl.cdiv(n, TILE), 0)
        tl.store(scratch + i, before + tl.cumsum(own, 0), i < tl.cdiv(n, TILE))
        before += tl.sum(own)


@triton.jit
def scan(a, c, scratch, n):
    tile = tl.program_id(0).to(tl.int64)
    i = tile * TILE + tl.arange(0, TILE)
    before = tl.load(scratch + tile - 1, tile > 0, 0)
    tl.store(c + i, tl.load(c + i, i < n) + before, i < n)
