# attention: c = softmax(q k^T / sqrt(d)) v, for m queries and n keys. q and c are m x d, k and v n x d, all by rows.
# Model: ranks are processes that share no memory (MPI). Each computes its own queries, in one call. For that it needs
#   all keys and values, which all ranks gather.
# Memory: distributed. Each rank holds its own part of every array, and memory for all keys and values.
# Edges: some ranks have one query or key more than others, or none.

from py_backends.ranks.exchanges import Allgatherv


def part(count, rank, ranks):
    return slice(count * rank // ranks, count * (rank + 1) // ranks)


def blocks(rank, ranks, widths, m, d, n):
    queries, keys, width = part(m, rank, ranks), part(n, rank, ranks), slice(0, d)
    return (queries, width), (keys, width), (keys, width), (queries, width)


def exchanges(rank, ranks, widths, m, d, n):
    keys = [part(n, each, ranks) for each in range(ranks)]
    counts = [(its.stop - its.start) * d for its in keys]
    return {"keys": Allgatherv(counts, widths[1]), "values": Allgatherv(counts, widths[2])}


def attention(ranks, local, q, k, v, c, m, d, n):
    with ranks.memory.lent((n, d), k.dtype) as keys, ranks.memory.lent((n, d), v.dtype) as values:
        ranks.exchange("keys", k, keys)
        ranks.exchange("values", v, values)
        local(q, keys, values, c)
