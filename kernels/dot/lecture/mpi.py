# dot: c = the sum of a[i] b[i] for vectors of n elements.
# Model: ranks are processes that share no memory (MPI). Each sums over its own part of the vectors, in one call. Then
#   the sums of all ranks are added up, and every rank gets the result.
# Memory: distributed. Each rank holds its part of a and b, and memory for one sum and for c.
# Edges: some ranks have one element more than others, or none. An empty sum is 0.

from py_backends.ranks.exchanges import Allreduce


def blocks(rank, ranks, widths, n):
    part = slice(n * rank // ranks, n * (rank + 1) // ranks)
    return (part,), (part,), ()


def exchanges(rank, ranks, widths, n):
    return {"sum": Allreduce(ranks, 1, widths[2])}


def dot(ranks, multiply, a, b, c, n):
    with ranks.memory.lent((), c.dtype) as sum:
        multiply(a, b, sum)
        ranks.exchange("sum", sum, c)
