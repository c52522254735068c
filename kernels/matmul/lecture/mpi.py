# matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
# Model: ranks are processes that share no memory (MPI). Each computes its own rows of c, by one call for all of them.
# Memory: distributed. Each rank holds its own rows of a, b and c, and gathers the other rows of b by messages.
# Edges: some ranks have one row more than others, or none.

import numpy as np


def rows(count, rank, ranks):
    return slice(count * rank // ranks, count * (rank + 1) // ranks)


def blocks(rank, ranks, widths, m, n, k):
    a = rows(m, rank, ranks), slice(0, k)
    b = rows(k, rank, ranks), slice(0, n)
    c = rows(m, rank, ranks), slice(0, n)
    return a, b, c


def matmul(ranks, multiply, a, b, c, m, n, k):
    whole_b = np.empty((k, n), b.dtype)
    each = [rows(k, rank, ranks.size) for rank in range(ranks.size)]
    ranks.Allgatherv(b, [whole_b, [(its.stop - its.start) * n for its in each]])
    multiply(a, whole_b, c)
