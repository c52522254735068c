# heat: c[i, j] = u[i, j] / 2 + (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1]) / 8, `steps` times; the boundary stays.
# Idea: several steps for each message. With as many rows of each neighbour as there are steps to come, a rank computes
#   these rows too, of which one fewer is right after every step. That takes fewer messages, and leaves several steps to
#   one call, which keeps rows in the cache for them.
# Model: ranks are processes that share no memory (MPI).
# Memory: distributed. Each rank holds its own rows of u and c, and some of each neighbour around them. Calls read one
#   array and write another one by turns, so that the last one writes to c.
# Edges: some ranks have one row more than others; the last ones may have none. No rank is given more rows of a
#   neighbour than each has. Those rows are the boundary of a call.

from py_backends.ranks.exchanges import Sendrecv

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


def exchanges(rank, ranks, widths, m, n, steps):
    having_rows, of_call = min(m, ranks), steps_of_call(ranks, m, steps)
    before = rank - 1 if 0 < rank < having_rows else None
    after = rank + 1 if rank + 1 < having_rows else None
    return {"rows of neighbours": Sendrecv(before, after, of_call * n, widths[0], times=-(-steps // of_call))}


def heat(ranks, local, u, c, m, n, steps):
    if steps == 0:
        c[...] = u
    calls = ranks.stated["rows of neighbours"].times
    with ranks.memory.lent(c.shape, c.dtype) as other:
        for left in reversed(range(calls)):
            ranks.exchange("rows of neighbours", u)
            after = other if left % 2 else c
            local(u, after, steps=steps * (calls - left) // calls - steps * (calls - left - 1) // calls)
            u = after
