# transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.
# Model: ranks are processes that share no memory (MPI). Each transposes its own rows of a, in one call. That makes
#   columns of c. Then every rank sends each other one the part that belongs there: all to all.
# Memory: distributed. Each rank holds its own rows of a and of c, and memory for its columns of c.
# Edges: some ranks have one row more than others, or none. One rank alone writes to c at once.

from py_backends.ranks.exchanges import Alltoallw


def rows(count, rank, ranks):
    return slice(count * rank // ranks, count * (rank + 1) // ranks)


def blocks(rank, ranks, widths, m, n):
    return (rows(n, rank, ranks), slice(0, m)), (rows(m, rank, ranks), slice(0, n))


def exchanges(rank, ranks, widths, m, n):
    columns = tuple((slice(0, m), rows(n, each, ranks)) for each in range(ranks))
    whole_rows = tuple((rows(m, each, ranks), slice(0, n)) for each in range(ranks))
    return {"columns to rows": Alltoallw(columns, whole_rows, widths[1])}


def transpose(ranks, move, a, c, m, n):
    if ranks.size == 1:
        return move(a, c)
    with ranks.memory.lent(a.shape[::-1], a.dtype) as columns:
        move(a, columns)
        ranks.exchange("columns to rows", columns, c)
    return None
