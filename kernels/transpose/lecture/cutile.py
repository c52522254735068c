# transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.
# Model: a kernel in Python, written for a tile: one block of the GPU moves 64 x 64 elements.
# Memory: `transpose` changes the order of a tile, so that it is read and written by rows. On its way it changes
#   threads, which is the compiler's matter.
# Edges: a tile that reaches past the end of an array is padded where it is read, and cut where it is written.
# ---
# Work items: ceil(m / 64) * ceil(n / 64), in groups of 1

import cuda.tile as ct

TILE = 64


@ct.kernel
def transpose(a, c, m, n):
    tile, across = ct.bid(0), ct.num_tiles(c, 1, (TILE, TILE))
    i, j = tile // across, tile % across
    ct.store(c, (i, j), ct.transpose(ct.load(a, (j, i), (TILE, TILE))))
