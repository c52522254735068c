# nbody: c[i] = the sum over j of mass[j] d / (d.d + e)^(3/2), with d = position[j] - at[i] and e = 2^-10.
#   m points and n bodies: at and c are m x 3, position is n x 3, all stored by rows.
# Model: a kernel in Python, written for a tile: one program of the GPU has 64 points, and meets 64 bodies at a time.
# Memory: every program reads all bodies, in order. A tile of pairs lies in registers.
# Edges: points past the last one are masked. Bodies past the last one have no mass.
# ---
# Work items: ceil(m / 64), in groups of 1

import triton
import triton.language as tl

TILE = tl.constexpr(64)


@triton.jit
def nbody(at, position, mass, c, m, n):
    i = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    x, y, z = tl.load(at + 3 * i, i < m), tl.load(at + 3 * i + 1, i < m), tl.load(at + 3 * i + 2, i < m)
    along_x = tl.zeros([TILE], c.dtype.element_ty)
    along_y, along_z = along_x, along_x
    for first in range(0, n, TILE):
        j = first + tl.arange(0, TILE)
        dx = tl.load(position + 3 * j, j < n, 0)[None, :] - x[:, None]
        dy = tl.load(position + 3 * j + 1, j < n, 0)[None, :] - y[:, None]
        dz = tl.load(position + 3 * j + 2, j < n, 0)[None, :] - z[:, None]
        square = dx * dx + dy * dy + dz * dz + 2**-10
        weight = tl.load(mass + j, j < n, 0)[None, :] / (square * tl.sqrt(square))
        along_x += tl.sum(weight * dx, 1)
        along_y += tl.sum(weight * dy, 1)
        along_z += tl.sum(weight * dz, 1)
    tl.store(c + 3 * i, along_x, i < m)
    tl.store(c + 3 * i + 1, along_y, i < m)
    tl.store(c + 3 * i + 2, along_z, i < m)
