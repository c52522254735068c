# scan: c[i] = a[0] + ... + a[i] for a vector of n elements.
# Model: ranks are processes that share no memory (MPI). Each computes the sums of its own part, in one call. Its last
#   one is the sum of the part. From an exchange of these, each rank gets the sum of the parts before its own (exscan).
# Memory: distributed. Each rank holds its part of a and c, and two numbers. It reads and writes its part of c twice.
# Edges: some ranks have one element more than others, or none. No part comes before that of the first rank.


def blocks(rank, ranks, widths, n):
    part = slice(n * rank // ranks, n * (rank + 1) // ranks)
    return (part,), (part,)


def scan(ranks, local, a, c, n):
    own, before = ranks.empty((1,), c.dtype), ranks.empty((1,), c.dtype)
    local(a, c)
    own[:] = c[-1:] if c.size else 0
    ranks.Exscan(own, before)
    if ranks.rank > 0:
        c += before
