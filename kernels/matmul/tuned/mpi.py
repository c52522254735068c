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

from py_backends.ranks.exchanges import Allgatherv, Reduce_scatter
from py_backends.ranks.ring import Shift

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


def exchanges(rank, ranks, widths, m, n, k):
    """The shares of a block are gathered along one dimension of the grid; sums are added up along k.

    In a line, shares go around: columns of b, rows of a, or the sums of rows, of which a rank begins with those of the
    rank before it.
    """
    grid = best_grid(ranks, widths, m, n, k)
    if in_line(grid) is not None:
        rows, times = shares(m, ranks), ranks - 1
        return (
            {"columns of b": Shift(shares(n, ranks, k), widths[1], times=times)},
            {"rows of a": Shift(rows, widths[0] * k, times=times)},
            {"sums of rows": Shift([rows[-1], *rows[:-1]], widths[2] * n, times=times)},
        )[in_line(grid)]
    rows, columns, depth = (each.stop - each.start for each in product_of(rank, grid, m, n, k))
    gathered = {
        "a": Allgatherv(shares(rows, grid[1], depth), widths[0], along=(grid, 1)),
        "b": Allgatherv(shares(depth, grid[0], columns), widths[1], along=(grid, 0)),
        "c": Reduce_scatter(shares(rows, grid[2], columns), widths[2], along=(grid, 2)),
    }
    return {name: each for name, each in gathered.items() if len(each.counts) > 1}


def shares(size, ranks, width=1):
    """How many elements are in each rank's share of so many rows or columns."""
    cuts = [part(size, rank, ranks) for rank in range(ranks)]
    return [(cut.stop - cut.start) * width for cut in cuts]


def matmul(ranks, multiply, a, b, c, m, n, k):
    for name, in_turn in (("rows of a", a_in_turn), ("columns of b", b_in_turn), ("sums of rows", sums_in_turn)):
        if name in ranks.stated:
            in_turn(ranks, name, multiply, a, b, c)
            return
    for name, block in (("a", a), ("b", b)):
        if name in ranks.stated:
            ranks.exchange(name, None, block)
    if "c" not in ranks.stated:
        multiply(a, b, c)
    else:
        with ranks.memory.lent((a.shape[0], b.shape[1]), c.dtype) as sums:
            multiply(a, b, sums)
            ranks.exchange("c", sums, c)


def a_in_turn(ranks, name, multiply, a, b, c):
    for owner, (rows_of_a,) in ranks.around({name: a}):
        multiply(rows_of_a, b, c[part(c.shape[0], owner, ranks.size)])


def b_in_turn(ranks, name, multiply, a, b, c):
    (m, k), (_, n) = a.shape, c.shape
    with ranks.memory.lent((m * max(shares(n, ranks.size)),), c.dtype) as memory:
        for owner, (elements,) in ranks.around({name: b.reshape(b.size)}):
            columns = part(n, owner, ranks.size)
            count = columns.stop - columns.start
            product = memory[: m * count].reshape(m, count)
            multiply(a, elements.reshape(k, count), product)
            c[:, columns] = product


def sums_in_turn(ranks, name, multiply, a, b, c):
    """Each rank begins the sums of the rank before it. They go around, and all others add what they have, it last."""
    m, n = a.shape[0], c.shape[1]
    room = max(shares(m, ranks.size)), n
    with (
        ranks.memory.lent(room, c.dtype) as one,
        ranks.memory.lent(room, c.dtype) as other,
        ranks.memory.lent(room, c.dtype) as memory,
    ):
        begun, came = one, other
        for turn in range(ranks.size):
            rows = part(m, (ranks.rank - 1 - turn) % ranks.size, ranks.size)
            if turn:
                ranks.exchange(name, begun, came)
                begun, came = came, begun
            sums, product = (each[: rows.stop - rows.start] for each in (begun, memory))
            multiply(a[rows], b, product if turn else sums)
            if turn:
                sums += product
        c[...] = sums
