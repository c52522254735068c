# matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
# Model: ranks (MPI) in a grid along m, n and k. Each multiplies one block of a by one of b, in one call.
# Memory: distributed. Each rank holds a share of the rows of its blocks, in their place in the block, and gathers the
#   others. Those of a come from the ranks that differ from it along n alone, those of b from ranks along m. Of the sums
#   it keeps a share. If all ranks stand in one line, a block would be a whole matrix: its shares go around instead.
# Edges: shares differ by one row or column, and may be empty.
#
# Cutting the product along one dimension alone moves one matrix as a whole. A grid of nearly cubic blocks moves the
# fewest bytes. (Al Daas, Ballard, Grigori, Kumar and Rouse, SPAA 2022, section 5.2.)

from functools import lru_cache
from itertools import product

from py_backends.ranks.mpi import IN_PLACE

MULTIPLY_ADDS_PER_BYTE = 16  # what a core computes, roughly, in the time to send a byte: idle ranks cost more


def part(count, at, parts):
    return slice(count * at // parts, count * (at + 1) // parts)


def within(whole, at, parts):
    """One of so many parts of a slice."""
    cut = part(whole.stop - whole.start, at, parts)
    return slice(whole.start + cut.start, whole.start + cut.stop)


@lru_cache
def best_grid(ranks, widths, m, n, k):
    """How many ranks stand along m, n and k. widths: bytes of an element of a, b and c."""
    divisors = [d for d in range(1, ranks + 1) if ranks % d == 0]
    grids = [grid for grid in product(divisors, repeat=3) if grid[0] * grid[1] * grid[2] == ranks]

    def cost(grid):
        along_m, along_n, along_k = grid
        rows, columns, depth = -(-m // along_m), -(-n // along_n), -(-k // along_k)
        of_a, of_b, of_c = widths
        a, b, c = of_a * rows * depth, of_b * depth * columns, of_c * rows * columns
        sent = a * (1 - 1 / along_n) + b * (1 - 1 / along_m) + c * (1 - 1 / along_k)
        return rows * columns * depth + MULTIPLY_ADDS_PER_BYTE * sent

    # Of those that send as much the one without sums to add up, then the one whose products are whole rows of blocks.
    return min(grids, key=lambda grid: (cost(grid), grid[2], grid[0]))


def lines(rank, grid):
    """For each dimension of the grid, which of the ranks along it this one is, and how many there are."""
    along_m, along_n, along_k = grid
    return (rank // along_k // along_n, along_m), (rank // along_k % along_n, along_n), (rank % along_k, along_k)


def in_line(grid):
    """The dimension along which all ranks stand: 0, 1 or 2. None if they stand along several, or there is one rank."""
    several = [dimension for dimension, along in enumerate(grid) if along > 1]
    return several[0] if len(several) == 1 else None


def product_of(rank, grid, m, n, k):
    """The rows, columns and depth of the block that a rank computes."""
    return [part(size, *along) for size, along in zip((m, n, k), lines(rank, grid), strict=True)]


def blocks(rank, ranks, widths, m, n, k):
    """The share that a rank has of each block: of its rows, or of its columns where b goes around."""
    grid = best_grid(ranks, widths, m, n, k)
    along_m, along_n, along_k = lines(rank, grid)
    rows, columns, depth = product_of(rank, grid, m, n, k)
    b = (depth, within(columns, *along_m)) if in_line(grid) == 0 else (within(depth, *along_m), columns)
    return (within(rows, *along_n), depth), b, (within(rows, *along_k), columns)


def needs(rank, ranks, widths, m, n, k):
    """The blocks that a rank computes with, and its share of c. In a line it needs no more than its shares."""
    grid = best_grid(ranks, widths, m, n, k)
    a, b, c = blocks(rank, ranks, widths, m, n, k)
    rows, columns, depth = product_of(rank, grid, m, n, k)
    return (a, b, c) if in_line(grid) is not None else ((rows, depth), (depth, columns), c)


def shares(size, ranks, width=1):
    """How many elements are in each rank's share of so many rows or columns."""
    cuts = [part(size, rank, ranks) for rank in range(ranks)]
    return [(cut.stop - cut.start) * width for cut in cuts]


def matmul(ranks, multiply, a, b, c, m, n, k):
    """In a grid, the shares of a block are gathered along one of its dimensions, and sums are added up along k.

    In a line, shares go around: rows of a, columns of b, or sums of rows.
    """
    grid = best_grid(ranks.size, (a.itemsize, b.itemsize, c.itemsize), m, n, k)
    if in_line(grid) is not None:
        (b_in_turn, a_in_turn, sums_in_turn)[in_line(grid)](ranks, multiply, a, b, c)
        return
    cartesian = ranks.Create_cart(grid)
    along_m, along_n, along_k = (cartesian.Sub([each == along for each in range(3)]) for along in range(3))
    if along_n.size > 1:
        along_n.Allgatherv(IN_PLACE, [a, shares(a.shape[0], along_n.size, a.shape[1])])
    if along_m.size > 1:
        along_m.Allgatherv(IN_PLACE, [b, shares(b.shape[0], along_m.size, b.shape[1])])
    if along_k.size == 1:
        multiply(a, b, c)
        return
    sums = ranks.empty((a.shape[0], b.shape[1]), c.dtype)
    multiply(a, b, sums)
    along_k.Reduce_scatter(sums, c, shares(a.shape[0], along_k.size, b.shape[1]))


def around(ranks, own, counts):
    """The shares of all ranks, one rank after the other, with its number: the own one, that of the rank before, ...

    own: this rank's share. counts: of the rows of each.
    """
    before, after = (ranks.rank - 1) % ranks.size, (ranks.rank + 1) % ranks.size
    room = [ranks.empty((max(counts), *own.shape[1:]), own.dtype) for _ in range(min(2, ranks.size - 1))]
    for turn in range(ranks.size):
        owner, coming = (ranks.rank - turn) % ranks.size, None
        if turn + 1 < ranks.size:
            coming = room[turn % 2][: counts[owner - 1]]
            ranks.Sendrecv(own, dest=after, recvbuf=coming, source=before)
        yield owner, own
        own = coming


def a_in_turn(ranks, multiply, a, b, c):
    m = c.shape[0]
    for owner, rows_of_a in around(ranks, a, shares(m, ranks.size)):
        multiply(rows_of_a, b, c[part(m, owner, ranks.size)])


def b_in_turn(ranks, multiply, a, b, c):
    (m, k), (_, n) = a.shape, c.shape
    counts = shares(n, ranks.size)
    memory = ranks.empty((m * max(counts),), c.dtype)
    for owner, elements in around(ranks, b.reshape(b.size), [count * k for count in counts]):
        product = memory[: m * counts[owner]].reshape(m, counts[owner])
        multiply(a, elements.reshape(k, counts[owner]), product)
        c[:, part(n, owner, ranks.size)] = product


def sums_in_turn(ranks, multiply, a, b, c):
    """Each rank begins the sums of the rank before it. They go around, and all others add what they have, it last."""
    m, n = a.shape[0], c.shape[1]
    before, after = (ranks.rank - 1) % ranks.size, (ranks.rank + 1) % ranks.size
    room = [ranks.empty((max(shares(m, ranks.size)), n), c.dtype) for _ in range(3)]
    sums = None
    for turn in range(ranks.size):
        rows = part(m, (ranks.rank - 1 - turn) % ranks.size, ranks.size)
        came, product = (memory[: rows.stop - rows.start] for memory in (room[turn % 2], room[2]))
        if turn:
            ranks.Sendrecv(sums, dest=after, recvbuf=came, source=before)
        multiply(a[rows], b, product if turn else came)
        if turn:
            came += product
        sums = came
    c[...] = sums
