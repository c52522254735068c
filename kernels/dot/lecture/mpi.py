# dot: c = the sum of a[i] b[i] for vectors of n elements.
# Model: ranks are processes that share no memory (MPI). Each sums over its own part of the vectors, in one call. Then
#   the sums of all ranks are added up, and every rank gets the result.
# Memory: distributed. Each rank holds its part of a and b, and memory for one sum and for c.
# Edges: some ranks have one element more than others, or none. An empty sum is 0.

from py_backends.ranks.mpi import SUM


def blocks(rank, ranks, widths, n):
    part = slice(n * rank // ranks, n * (rank + 1) // ranks)
    return (part,), (part,), ()


def dot(ranks, multiply, a, b, c, n):
    sum_of_part = ranks.empty((), c.dtype)
    multiply(a, b, sum_of_part)
    ranks.Allreduce(sum_of_part, c, op=SUM)
