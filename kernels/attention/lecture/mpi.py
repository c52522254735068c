# attention: c = softmax(q k^T / sqrt(d)) v, for m queries and n keys. q and c are m x d, k and v n x d, all by rows.
# Model: ranks are processes that share no memory (MPI). Each computes its own queries, in one call. For that it needs
#   all keys and values, which all ranks gather.
# Memory: distributed. Each rank holds its own part of every array, and memory for all keys and values.
# Edges: some ranks have one query or key more than others, or none.


def part(count, rank, ranks):
    return slice(count * rank // ranks, count * (rank + 1) // ranks)


def blocks(rank, ranks, widths, m, d, n):
    queries, keys, width = part(m, rank, ranks), part(n, rank, ranks), slice(0, d)
    return (queries, width), (keys, width), (keys, width), (queries, width)


def attention(ranks, local, q, k, v, c, m, d, n):
    parts = [part(n, rank, ranks.size) for rank in range(ranks.size)]
    counts = [(each.stop - each.start) * d for each in parts]
    keys, values = ranks.empty((n, d), k.dtype), ranks.empty((n, d), v.dtype)
    ranks.Allgatherv(k, [keys, counts])
    ranks.Allgatherv(v, [values, counts])
    local(q, keys, values, c)
