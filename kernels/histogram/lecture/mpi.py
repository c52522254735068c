# histogram: c[k] = how many of a[i] lie in [k / 256, (k + 1) / 256), of n; of int8, how many are k - 128.
# Model: ranks are processes that share no memory (MPI). Each counts its own part of the vector, in one call. Then the
#   tables of all ranks are added up, counter by counter, and every rank gets the result.
# Memory: distributed. Each rank holds its part of a, a table of this part, one of all, and its share of c.
# Edges: some ranks have one element more than others, or none, and so it is with counters. A part of none leaves zeros.

from py_backends.ranks.mpi import SUM


def blocks(rank, ranks, widths, n):
    part, share = (slice(length * rank // ranks, length * (rank + 1) // ranks) for length in (n, 256))
    return (part,), (share,)


def histogram(ranks, count, a, c, n):
    of_part, of_all = ranks.empty((256,), c.dtype), ranks.empty((256,), c.dtype)
    count(a, of_part)
    ranks.Allreduce(of_part, of_all, op=SUM)
    _, (share,) = blocks(ranks.rank, ranks.size, (), n)
    c[...] = of_all[share]
