# heat: c[i, j] = u[i, j] / 2 + (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1]) / 8, `steps` times; the boundary stays.
# Model: ranks are processes that share no memory (MPI). Each computes a step of its own rows, in one call. Before each
#   step it gives its first and last row to the ranks that compute the neighbouring rows, and gets theirs.
# Memory: distributed. Each rank holds its own rows of u and c, and a row of each neighbour around them. Steps read one
#   array and write another one by turns, so that the last one writes to c.
# Edges: the last ranks may have no rows. The rows of neighbours are the boundary of a call.

from py_backends.ranks.mpi import PROC_NULL


def rows(m, rank, ranks):
    first = rank * (m // ranks) + min(rank, m % ranks)
    return slice(first, first + m // ranks + (rank < m % ranks))


def blocks(rank, ranks, widths, m, n, steps):
    return ((rows(m, rank, ranks), slice(0, n)),) * 2


def needs(rank, ranks, widths, m, n, steps):
    own = rows(m, rank, ranks)
    beyond = slice(max(0, own.start - 1), min(m, own.stop + 1)) if own.start < own.stop else own
    return ((beyond, slice(0, n)),) * 2


def heat(ranks, local, u, c, m, n, steps):
    before = ranks.rank - 1 if 0 < ranks.rank < m else PROC_NULL
    after = ranks.rank + 1 if ranks.rank + 1 < min(m, ranks.size) else PROC_NULL
    other = ranks.empty(c.shape, c.dtype)
    if steps == 0:
        c[...] = u
    for left in reversed(range(steps)):
        ranks.Sendrecv(u[1:2], dest=before, recvbuf=u[-1:], source=after)
        ranks.Sendrecv(u[-2:-1], dest=after, recvbuf=u[:1], source=before)
        target = other if left % 2 else c
        local(u, target, steps=1)
        u = target
