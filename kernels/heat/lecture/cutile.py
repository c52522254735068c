# heat: c[i, j] = u[i, j] / 2 + (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1]) / 8, `steps` times; the boundary stays.
# Model: a kernel in Python, written for a tile: one block of the GPU computes 8 x 128 elements of one step. Blocks
#   cannot wait for each other, so each step is a launch of its own.
# Memory: each launch reads one array and writes another one, which the next launch reads. Neighbours are no tile of the
#   array, which begin at multiples of their sides. So they are gathered, by tiles of rows and columns.
# Edges: what is gathered outside of an array is 0, and what is stored there is left out. Elements of the boundary are
#   copied, as all are after 0 steps.
# ---
# Work items: ceil(m / 8) * ceil(n / 128), in groups of 1
# Repeat: steps

import cuda.tile as ct

ROWS, COLUMNS = 8, 128


@ct.kernel
def heat(u, c, m, n, steps):
    tile, across = ct.bid(0), ct.num_tiles(c, 1, (ROWS, COLUMNS))
    i = (tile // across * ROWS + ct.arange(ROWS, dtype=ct.int32))[:, None]
    j = (tile % across * COLUMNS + ct.arange(COLUMNS, dtype=ct.int32))[None, :]
    inside = (steps > 0) & (i > 0) & (i < m - 1) & (j > 0) & (j < n - 1)
    own = ct.gather(u, (i, j))
    columns = ct.gather(u, (i - 1, j)) + ct.gather(u, (i + 1, j))
    rows = ct.gather(u, (i, j - 1)) + ct.gather(u, (i, j + 1))
    ct.scatter(c, (i, j), ct.where(inside, own / 2 + (columns + rows) / 8, own))
