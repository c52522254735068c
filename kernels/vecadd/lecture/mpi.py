# vecadd: c[i] = a[i] + b[i] for vectors of n elements.
# Model: ranks are processes that share no memory (MPI). Each adds its own part of the vectors.
# Memory: distributed. Each rank holds its part of a, b and c, and needs nothing from the others.
# Edges: some ranks have one element more than others, or none.


def blocks(rank, ranks, widths, n):
    part = slice(n * rank // ranks, n * (rank + 1) // ranks)
    return (part,), (part,), (part,)


def vecadd(ranks, add, a, b, c, n):
    add(a, b, c)
