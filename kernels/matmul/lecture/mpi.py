# matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
# Model: ranks are processes that share no memory (MPI). Each computes its own columns of c, in one call for the rows of
#   a of each rank: these go around.
# Memory: distributed. Each rank holds its own rows of a and its own columns of b and c, and two more shares of a.
# Edges: some ranks have one row or column more than others, or none.


def part(count, rank, ranks):
    return slice(count * rank // ranks, count * (rank + 1) // ranks)


def blocks(rank, ranks, widths, m, n, k):
    rows, columns = part(m, rank, ranks), part(n, rank, ranks)
    return (rows, slice(0, k)), (slice(0, k), columns), (slice(0, m), columns)


def matmul(ranks, multiply, a, b, c, m, n, k):
    before, after = (ranks.rank - 1) % ranks.size, (ranks.rank + 1) % ranks.size
    parts = [part(m, rank, ranks.size) for rank in range(ranks.size)]
    room = [ranks.empty((-(-m // ranks.size), k), a.dtype) for _ in range(min(2, ranks.size - 1))]
    for turn in range(ranks.size):
        owner, coming = (ranks.rank - turn) % ranks.size, None
        if turn + 1 < ranks.size:
            rows = parts[owner - 1]
            coming = room[turn % 2][: rows.stop - rows.start]
            ranks.Sendrecv(a, dest=after, recvbuf=coming, source=before)
        multiply(a, b, c[parts[owner]])
        a = coming
