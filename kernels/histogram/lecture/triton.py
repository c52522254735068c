# histogram: c[k] = how many of a[i] lie in [k / 256, (k + 1) / 256), of n; of int8, how many are k - 128.
# Model: a kernel in Python, written for a tile: one program of the GPU counts 1024 elements, by the language's own
#   `histogram`. Then it adds its counters to those of all. Programs meet there, so the additions are atomic. They
#   cannot wait for each other, so a first kernel sets the counters to 0.
# Memory: reads a once, in order. How threads count a tile is the compiler's matter.
# Edges: what lies outside of [0, 1), NaN too, goes to bin 256. So do the elements past the last one, which are masked.
#   That bin is added to nothing. A tile has as many bins as a power of two.
# ---
# Work items of clear: 1, in groups of 1
# Work items: ceil(n / 1024), in groups of 1

import triton
import triton.language as tl

from py_backends.backend.formats.triton import widen

TILE = tl.constexpr(1024)


@triton.jit
def clear(a, c, n):
    tl.store(c + tl.arange(0, 256), tl.zeros([256], c.dtype.element_ty))


@triton.jit
def histogram(a, c, n):
    i = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    x = widen(tl.load(a + i, i < n, 0))
    at = x + 128 if a.dtype.element_ty == tl.int8 else 256 * x
    inside = (i < n) & (at >= 0) & (at < 256)
    counts = tl.histogram(tl.where(inside, at, 256).to(tl.int32), 512)
    k = tl.arange(0, 512)
    tl.atomic_add(c + k, counts, k < 256)
