# nbody: c[i] = the sum over j of mass[j] d / (d.d + e)^(3/2), with d = position[j] - at[i] and e = 2^-10.
#   m points and n bodies: at and c are m x 3, position is n x 3, all stored by rows.
# Model: ranks are processes that share no memory (MPI). Each computes its own points, in one call for the bodies of
#   each rank: these go around.
# Memory: distributed. Each rank holds its own part of every array, and two more shares of the bodies.
# Edges: some ranks have one point or body more than others, or none.


def part(count, rank, ranks):
    return slice(count * rank // ranks, count * (rank + 1) // ranks)


def blocks(rank, ranks, widths, m, n):
    points, bodies, axes = part(m, rank, ranks), part(n, rank, ranks), slice(0, 3)
    return (points, axes), (bodies, axes), (bodies,), (points, axes)


def nbody(ranks, local, at, position, mass, c, m, n):
    before, after = (ranks.rank - 1) % ranks.size, (ranks.rank + 1) % ranks.size
    parts, most = [part(n, rank, ranks.size) for rank in range(ranks.size)], -(-n // ranks.size)
    room = [
        (ranks.empty((most, 3), position.dtype), ranks.empty((most,), mass.dtype))
        for _ in range(min(2, ranks.size - 1))
    ]
    of_some = ranks.empty(c.shape, c.dtype)
    c[...] = 0
    for turn in range(ranks.size):
        positions = masses = None
        if turn + 1 < ranks.size:
            bodies = parts[(ranks.rank - turn) % ranks.size - 1]
            positions, masses = (memory[: bodies.stop - bodies.start] for memory in room[turn % 2])
            ranks.Sendrecv(position, dest=after, recvbuf=positions, source=before)
            ranks.Sendrecv(mass, dest=after, recvbuf=masses, source=before)
        local(at, position, mass, of_some)
        c += of_some
        position, mass = positions, masses
