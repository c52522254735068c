# vecadd: c[i] = a[i] + b[i] for vectors of n elements.
# Model: a kernel in Python, written for a tile: one block of the GPU adds 1024 elements, by operations on all of them.
#   The compiler divides a tile among threads.
# Memory: tiles are read and written as wholes. How, is the compiler's matter.
# Edges: a tile that reaches past the end of an array is padded where it is read, and cut where it is written.
# ---
# Work items: ceil(n / 1024), in groups of 1

import cuda.tile as ct

from py_backends.backend.formats.cutile import widen

TILE = 1024


@ct.kernel
def vecadd(a, b, c, n):
    i = ct.bid(0)
    total = widen(ct.load(a, (i,), (TILE,))) + widen(ct.load(b, (i,), (TILE,)))
    ct.store(c, (i,), ct.astype(total, c.dtype))
