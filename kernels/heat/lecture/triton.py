# heat: c[i, j] = u[i, j] / 2 + (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1]) / 8, `steps` times; the boundary stays.
# Model: a kernel in Python, written for a tile: one program of the GPU computes 8 x 128 elements of one step. Programs
#   cannot wait for each other, so each step is a launch of its own.
# Memory: each launch reads one array and writes another one, which the next launch reads. Neighbours are four more
#   tiles at shifted pointers, most of which come from a cache.
# Edges: elements past the last column or row are masked. Those of the boundary are copied, as all are after 0 steps.
# ---
# Work items: ceil(m / 8) * ceil(n / 128), in groups of 1
# Repeat: steps

import triton
import triton.language as tl

ROWS, COLUMNS = tl.constexpr(8), tl.constexpr(128)


@triton.jit
def heat(u, c, m, n, steps):
    tile, across = tl.program_id(0).to(tl.int64), tl.cdiv(n, COLUMNS)
    i = (tile // across * ROWS + tl.arange(0, ROWS))[:, None]
    j = (tile % across * COLUMNS + tl.arange(0, COLUMNS))[None, :]
    there, at = (i < m) & (j < n), i * n + j
    last = tl.where(steps > 0, n - 1, 0)  # no column is inside after 0 steps
    inside = (i > 0) & (i < m - 1) & (j > 0) & (j < last)
    own = tl.load(u + at, there)
    columns = tl.load(u + at - n, inside) + tl.load(u + at + n, inside)
    rows = tl.load(u + at - 1, inside) + tl.load(u + at + 1, inside)
    tl.store(c + at, tl.where(inside, own / 2 + (columns + rows) / 8, own), there)
