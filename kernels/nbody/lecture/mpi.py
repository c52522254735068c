# nbody: c[i] = the sum over j of mass[j] d / (d.d + e)^(3/2), with d = position[j] - at[i] and e = 2^-10.
#   m points and n bodies: at and c are m x 3, position is n x 3, all stored by rows.
# Model: ranks are processes that share no memory (MPI). Each computes its own points, in one call for the bodies of
#   each rank: these go around.
# Memory: distributed. Each rank holds its own part of every array, and two more shares of the bodies.
# Edges: some ranks have one point or body more than others, or none.

from py_backends.ranks.ring import Shift


def part(count, rank, ranks):
    return slice(count * rank // ranks, count * (rank + 1) // ranks)


def blocks(rank, ranks, widths, m, n):
    points, bodies, axes = part(m, rank, ranks), part(n, rank, ranks), slice(0, 3)
    return (points, axes), (bodies, axes), (bodies,), (points, axes)


def exchanges(rank, ranks, widths, m, n):
    bodies = [part(n, each, ranks) for each in range(ranks)]
    counts = [its.stop - its.start for its in bodies]
    positions = Shift(counts, 3 * widths[1], times=ranks - 1)
    return {"positions": positions, "masses": Shift(counts, widths[2], times=ranks - 1)}


def nbody(ranks, local, at, position, mass, c, m, n):
    c[...] = 0
    with ranks.memory.lent(c.shape, c.dtype) as of_some:
        for _, (positions, masses) in ranks.around({"positions": position, "masses": mass}):
            local(at, positions, masses, of_some)
            c += of_some
