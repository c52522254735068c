# heat: c[i, j] = u[i, j] / 2 + (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1]) / 8, `steps` times; the boundary stays.
# Model: ranks are processes that share no memory (MPI). Each computes a step of its own rows, in one call. Before each
#   step it gives its first and last row to the ranks that compute the neighbouring rows, and gets theirs.
# Memory: distributed. Each rank holds its own rows of u and c, and a row of each neighbour around them. Steps read one
#   array and write another one by turns, so that the last one writes to c.
# Edges: some ranks have one row more than others; the last ones may have none. The rows of neighbours are the boundary
#   of a call.

from py_backends.ranks.exchanges import Sendrecv


def rows(m, rank, ranks):
    first = rank * (m // ranks) + min(rank, m % ranks)
    return slice(first, first + m // ranks + (rank < m % ranks))


def blocks(rank, ranks, widths, m, n, steps):
    own = rows(m, rank, ranks), slice(0, n)
    return own, own


def needs(rank, ranks, widths, m, n, steps):
    own = rows(m, rank, ranks)
    beyond = slice(max(0, own.start - 1), min(m, own.stop + 1)) if own.start < own.stop else own
    return (beyond, slice(0, n)), (beyond, slice(0, n))


def exchanges(rank, ranks, widths, m, n, steps):
    having_rows = min(m, ranks)
    before = rank - 1 if 0 < rank < having_rows else None
    after = rank + 1 if rank + 1 < having_rows else None
    return {"rows of neighbours": Sendrecv(before, after, n, widths[0], times=steps)}


def heat(ranks, local, u, c, m, n, steps):
    if steps == 0:
        c[...] = u
    with ranks.memory.lent(c.shape, c.dtype) as other:
        for left in reversed(range(steps)):
            ranks.exchange("rows of neighbours", u)
            after = other if left % 2 else c
            local(u, after, steps=1)
            u = after
