# dot: c = the sum of a[i] b[i] for vectors of n elements.
# Model: a kernel in Python, written for a tile: one program of the GPU adds up 1024 products. Programs cannot wait for
#   each other. So one program of a second kernel adds up their sums.
# Memory: reads a and b once, in order. How threads add up a tile is the compiler's matter.
# Edges: elements past the last one are masked, and count as 0.
# ---
# Work items of add_products: ceil(n / 1024), in groups of 1
# Work items: 1, in groups of 1
# Scratch: ceil(n / 1024) elements of Sum

import triton
import triton.language as tl

from py_backends.backend.formats.triton import widen

TILE = tl.constexpr(1024)


@triton.jit
def add_products(a, b, c, scratch, n):
    tile = tl.program_id(0).to(tl.int64)
    i = tile * TILE + tl.arange(0, TILE)
    products = widen(tl.load(a + i, i < n, 0)) * widen(tl.load(b + i, i < n, 0))
    tl.store(scratch + tile, tl.sum(products), tile * TILE < n)


@triton.jit
def dot(a, b, c, scratch, n):
    sums = tl.zeros([TILE], c.dtype.element_ty)
    for first in range(0, tl.cdiv(n, TILE), TILE):
        i = first + tl.arange(0, TILE)
        sums += tl.load(scratch + i, i < tl.cdiv(n, TILE), 0)
    tl.store(c, tl.sum(sums))
