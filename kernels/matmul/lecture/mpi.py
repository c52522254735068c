# matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
# Model: ranks are processes that share no memory (MPI). Each computes its own columns of c, in one call for the rows of
#   a of each rank: these go around.
# Memory: distributed. Each rank holds its own rows of a and its own columns of b and c, and two more shares of a.
# Edges: some ranks have one row or column more than others, or none.

from py_backends.ranks.ring import Shift


def part(count, rank, ranks):
    return slice(count * rank // ranks, count * (rank + 1) // ranks)


def blocks(rank, ranks, widths, m, n, k):
    rows, columns = part(m, rank, ranks), part(n, rank, ranks)
    return (rows, slice(0, k)), (slice(0, k), columns), (slice(0, m), columns)


def exchanges(rank, ranks, widths, m, n, k):
    each = [part(m, its, ranks) for its in range(ranks)]
    return {"rows of a": Shift([its.stop - its.start for its in each], widths[0] * k, times=ranks - 1)}


def matmul(ranks, multiply, a, b, c, m, n, k):
    for owner, (rows_of_a,) in ranks.around({"rows of a": a}):
        multiply(rows_of_a, b, c[part(m, owner, ranks.size)])
