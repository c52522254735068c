# heat: c[i, j] = u[i, j] / 2 + (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1]) / 8, `steps` times; the boundary stays.
# Idea: several steps for each message. With as many rows of each neighbour as there are steps to come, a rank computes
#   these rows too, of which one fewer is right after every step. That takes fewer messages, and leaves several steps to
#   one call, which keeps rows in the cache for them.
# Model: ranks are processes that share no memory (MPI).
# Memory: distributed. Each rank holds its own rows of u and c, and some of each neighbour around them. Calls read one
#   array and write another one by turns, so that the last one writes to c.
# Edges: some ranks have one row more than others; the last ones may have none. No rank is given more rows of a
#   neighbour than each has. Those rows are the boundary of a call.

from py_backends.ranks.mpi import PROC_NULL

MOST_STEPS = 16  # of a call: more would compute too many rows twice


def rows(m, rank, ranks):
    first = rank * (m // ranks) + min(rank, m % ranks)
    return slice(first, first + m // ranks + (rank < m % ranks))


def steps_of_call(ranks, m, steps):
    return max(1, min(MOST_STEPS, m // ranks, steps))


def blocks(rank, ranks, widths, m, n, steps):
    own = rows(m, rank, ranks), slice(0, n)
    return own, own


def needs(rank, ranks, widths, m, n, steps):
    own, more = rows(m, rank, ranks), steps_of_call(ranks, m, steps)
    beyond = slice(max(0, own.start - more), min(m, own.stop + more)) if own.start < own.stop else own
    return (beyond, slice(0, n)), (beyond, slice(0, n))


def heat(ranks, local, u, c, m, n, steps):
    more = steps_of_call(ranks.size, m, steps)
    before = ranks.rank - 1 if 0 < ranks.rank < m else PROC_NULL
    after = ranks.rank + 1 if ranks.rank + 1 < min(m, ranks.size) else PROC_NULL
    other = ranks.empty(c.shape, c.dtype)
    if steps == 0:
        c[...] = u
    calls = -(-steps // more)
    for left in reversed(range(calls)):
        ranks.Sendrecv(u[more : 2 * more], dest=before, recvbuf=u[-more:], source=after)
        ranks.Sendrecv(u[-2 * more : -more], dest=after, recvbuf=u[:more], source=before)
        target = other if left % 2 else c
        local(u, target, steps=steps * (calls - left) // calls - steps * (calls - left - 1) // calls)
        u = target
