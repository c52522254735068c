# vecadd: c[i] = a[i] + b[i] for vectors of n elements.
# Model: a kernel in Python, written for a tile: one program of the GPU adds 1024 elements, by operations on all of
#   them. The compiler divides a tile among threads.
# Memory: pointers and indices are tiles too. Neighbours lie beside each other, so that the GPU reads and writes them in
#   few transactions.
# Edges: elements past the last one are masked: neither read nor written.
# ---
# Work items: ceil(n / 1024), in groups of 1

import triton
import triton.language as tl

from py_backends.backend.formats.triton import widen

TILE = tl.constexpr(1024)


@triton.jit
def vecadd(a, b, c, n):
    i = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    there = i < n
    total = widen(tl.load(a + i, there)) + widen(tl.load(b + i, there))
    tl.store(c + i, total.to(c.dtype.element_ty), there)
