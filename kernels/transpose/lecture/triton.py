# transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.
# Model: a kernel in Python, written for a tile: one program of the GPU moves 64 x 64 elements.
# Memory: `trans` changes the order of a tile, so that it is read and written by rows. On its way the compiler has it
#   change threads through shared memory.
# Edges: elements past the last row or column are masked: neither read nor written.
# ---
# Work items: ceil(m / 64) * ceil(n / 64), in groups of 1

import triton
import triton.language as tl

TILE = tl.constexpr(64)


@triton.jit
def transpose(a, c, m, n):
    tile, across = tl.program_id(0).to(tl.int64), tl.cdiv(n, TILE)
    i = tile // across * TILE + tl.arange(0, TILE)
    j = tile % across * TILE + tl.arange(0, TILE)
    moved = tl.load(a + j[:, None] * m + i[None, :], (j[:, None] < n) & (i[None, :] < m))
    tl.store(c + i[:, None] * n + j[None, :], tl.trans(moved), (i[:, None] < m) & (j[None, :] < n))
