# matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
# Model: ranks are processes that share no memory (MPI). Each computes its own rows of c, by one call for all of them.
# Memory: distributed. Each rank holds its own rows of a, b and c, and gathers the other rows of b by messages.
# Edges: some ranks have one row more than others, or none.

from py_backends.ranks.exchanges import Allgatherv


def rows(count, rank, ranks):
    return slice(count * rank // ranks, count * (rank + 1) // ranks)


def blocks(rank, ranks, widths, m, n, k):
    a = rows(m, rank, ranks), slice(0, k)
    b = rows(k, rank, ranks), slice(0, n)
    c = rows(m, rank, ranks), slice(0, n)
    return a, b, c


def exchanges(rank, ranks, widths, m, n, k):
    each = [rows(k, its, ranks) for its in range(ranks)]
    return {"rows of b": Allgatherv([(its.stop - its.start) * n for its in each], widths[1])}


def matmul(ranks, multiply, a, b, c, m, n, k):
    with ranks.memory.lent((k, n), b.dtype) as whole_b:
        ranks.exchange("rows of b", b, whole_b)
        multiply(a, whole_b, c)
