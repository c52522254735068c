# nbody: c[i] = the sum over j of mass[j] d / (d.d + e)^(3/2), with d = position[j] - at[i] and e = 2^-10.
#   m points and n bodies: at and c are m x 3, position is n x 3, all stored by rows.
# Model: a kernel in Python, written for a tile: one block of the GPU has 64 points, and meets 64 bodies at a time.
# Memory: every block reads all bodies, in order. A tile of pairs lies in registers.
# Edges: what is gathered outside of an array is 0, so that bodies past the last one have no mass. What is stored there
#   is left out.
# ---
# Work items: ceil(m / 64), in groups of 1

import cuda.tile as ct

TILE = 64


@ct.kernel
def nbody(at, position, mass, c, m, n):
    i = ct.bid(0) * TILE + ct.arange(TILE, dtype=ct.int32)
    x, y, z = ct.gather(at, (i, 0))[:, None], ct.gather(at, (i, 1))[:, None], ct.gather(at, (i, 2))[:, None]
    along_x = ct.full((TILE,), 0, c.dtype)
    along_y, along_z = along_x, along_x
    for tile in range(ct.num_tiles(mass, 0, (TILE,))):
        j = tile * TILE + ct.arange(TILE, dtype=ct.int32)
        dx = ct.gather(position, (j, 0))[None, :] - x
        dy = ct.gather(position, (j, 1))[None, :] - y
        dz = ct.gather(position, (j, 2))[None, :] - z
        square = dx * dx + dy * dy + dz * dz + 2**-10
        weight = ct.gather(mass, j)[None, :] / (square * ct.sqrt(square))
        along_x = along_x + ct.sum(weight * dx, 1)
        along_y = along_y + ct.sum(weight * dy, 1)
        along_z = along_z + ct.sum(weight * dz, 1)
    ct.scatter(c, (i, 0), along_x)
    ct.scatter(c, (i, 1), along_y)
    ct.scatter(c, (i, 2), along_z)
