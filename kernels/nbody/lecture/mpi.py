# nbody: c[i] = the sum over j of mass[j] d / (d.d + e)^(3/2), with d = position[j] - at[i] and e = 2^-10.
#   m points and n bodies: at and c are m x 3, position is n x 3, all stored by rows.
# Model: ranks are processes that share no memory (MPI). Each computes its own points, in one call. For that it needs
#   all bodies, which all ranks gather.
# Memory: distributed. Each rank holds its own part of every array, and memory for all bodies.
# Edges: some ranks have one point or body more than others, or none.

from py_backends.ranks.exchanges import Allgatherv


def part(count, rank, ranks):
    return slice(count * rank // ranks, count * (rank + 1) // ranks)


def blocks(rank, ranks, widths, m, n):
    points, bodies, axes = part(m, rank, ranks), part(n, rank, ranks), slice(0, 3)
    return (points, axes), (bodies, axes), (bodies,), (points, axes)


def exchanges(rank, ranks, widths, m, n):
    bodies = [part(n, each, ranks) for each in range(ranks)]
    counts = [its.stop - its.start for its in bodies]
    positions = Allgatherv([3 * count for count in counts], widths[1])
    return {"positions": positions, "masses": Allgatherv(counts, widths[2])}


def nbody(ranks, local, at, position, mass, c, m, n):
    with ranks.memory.lent((n, 3), position.dtype) as positions, ranks.memory.lent((n,), mass.dtype) as masses:
        ranks.exchange("positions", position, positions)
        ranks.exchange("masses", mass, masses)
        local(at, positions, masses, c)
