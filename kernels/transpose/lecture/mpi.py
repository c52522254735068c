# transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.
# Model: ranks are processes that share no memory (MPI). Each transposes its own rows of a, in one call. That makes
#   columns of c. Then every rank sends each other one the part that belongs there: all to all.
# Memory: distributed. Each rank holds its own rows of a and of c, and memory for its columns of c.
# Edges: some ranks have one row more than others, or none. One rank alone writes to c at once.

from py_backends.ranks.mpi import Create_subarray


def rows(count, rank, ranks):
    return slice(count * rank // ranks, count * (rank + 1) // ranks)


def blocks(rank, ranks, widths, m, n):
    return (rows(n, rank, ranks), slice(0, m)), (rows(m, rank, ranks), slice(0, n))


def transpose(ranks, move, a, c, m, n):
    if ranks.size == 1:
        move(a, c)
        return
    columns = ranks.empty(a.shape[::-1], a.dtype)
    move(a, columns)
    sent, received = [], []
    for rank in range(ranks.size):
        its_c, its_a = rows(m, rank, ranks.size), rows(n, rank, ranks.size)
        sent.append(Create_subarray(columns.shape, (its_c.stop - its_c.start, a.shape[0]), (its_c.start, 0)))
        received.append(Create_subarray(c.shape, (c.shape[0], its_a.stop - its_a.start), (0, its_a.start)))
    ranks.Alltoallw([columns, sent], [c, received])
