# dot: c = the sum of a[i] b[i] for vectors of n elements.
# Model: a kernel in Python, written for a tile: one block of the GPU adds up 1024 products. Blocks cannot wait for each
#   other. So one block of a second kernel adds up their sums.
# Memory: reads a and b once, in order. How threads add up a tile is the compiler's matter.
# Edges: a tile that reaches past the end of an array is padded with zeros. Where n is 0, there is none.
# ---
# Work items of add_products: ceil(n / 1024), in groups of 1
# Work items: 1, in groups of 1
# Scratch: ceil(n / 1024) elements of Sum

import cuda.tile as ct

from py_backends.backend.formats.cutile import widen

TILE = 1024
ZERO = ct.PaddingMode.ZERO


@ct.kernel
def add_products(a, b, c, scratch, n):
    i = ct.bid(0)
    if i * TILE < n:
        left = ct.load(a, (i,), (TILE,), padding_mode=ZERO)
        right = ct.load(b, (i,), (TILE,), padding_mode=ZERO)
        ct.store(scratch, (i,), ct.sum(widen(left) * widen(right), 0, keepdims=True))


@ct.kernel
def dot(a, b, c, scratch, n):
    sums = ct.full((TILE,), 0, c.dtype)
    for i in range(ct.num_tiles(scratch, 0, (TILE,))):
        sums = sums + ct.load(scratch, (i,), (TILE,), padding_mode=ZERO)
    ct.store(c, (0,), ct.sum(sums, 0, keepdims=True))
