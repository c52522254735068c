# matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
# Model: ranks (MPI) in a grid along m, n and k. Each multiplies one block of a by one of b, in one call.
# Memory: distributed. Each rank holds a share of the rows of its blocks, in their place in the block, and gathers the
#   others. Those of a come from the ranks that differ from it along n alone, those of b from ranks along m. Of the sums
#   it keeps a share.
# Edges: shares differ by one row or column, and may be empty.
#
# Cutting the product along one dimension alone moves the others as a whole. A grid of nearly cubic blocks moves the
# fewest bytes. (Al Daas, Ballard, Grigori, Kumar and Rouse, SPAA 2022, section 5.2.)

from functools import lru_cache
from itertools import product

from py_backends.ranks.exchanges import Allgatherv, Reduce_scatter

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

    # Of those that send as much the one without sums to add up, then the one whose blocks are whole rows.
    return min(grids, key=lambda grid: (cost(grid), grid[2], grid[1]))


def lines(rank, grid):
    """For each dimension of the grid, which of the ranks along it this one is, and how many there are."""
    along_m, along_n, along_k = grid
    return (rank // along_k // along_n, along_m), (rank // along_k % along_n, along_n), (rank % along_k, along_k)


def needs(rank, ranks, widths, m, n, k):
    """The blocks that a rank computes with, and its share of c."""
    along_m, along_n, along_k = lines(rank, best_grid(ranks, widths, m, n, k))
    of_m, of_n, of_k = part(m, *along_m), part(n, *along_n), part(k, *along_k)
    return (of_m, of_k), (of_k, of_n), (within(of_m, *along_k), of_n)


def blocks(rank, ranks, widths, m, n, k):
    """The share of rows that a rank brings to each block that several ranks need."""
    along_m, along_n, _ = lines(rank, best_grid(ranks, widths, m, n, k))
    (of_m, of_k), (_, of_n), c = needs(rank, ranks, widths, m, n, k)
    return (within(of_m, *along_n), of_k), (within(of_k, *along_m), of_n), c


def exchanges(rank, ranks, widths, m, n, k):
    """The shares of a block are gathered along one dimension of the grid; sums are added up along k."""
    grid = best_grid(ranks, widths, m, n, k)
    (a, depth), (_, b), _ = needs(rank, ranks, widths, m, n, k)
    rows, columns, deep = (each.stop - each.start for each in (a, b, depth))
    blocks = {
        "a": Allgatherv(shares(rows, grid[1], deep), widths[0], along=(grid, 1)),
        "b": Allgatherv(shares(deep, grid[0], columns), widths[1], along=(grid, 0)),
        "c": Reduce_scatter(shares(rows, grid[2], columns), widths[2], along=(grid, 2)),
    }
    return {name: each for name, each in blocks.items() if len(each.counts) > 1}


def shares(rows, ranks, columns):
    """How many elements of a block are in each rank's share of its rows."""
    cuts = [part(rows, rank, ranks) for rank in range(ranks)]
    return [(cut.stop - cut.start) * columns for cut in cuts]


def matmul(ranks, multiply, a, b, c, m, n, k):
    for name, block in (("a", a), ("b", b)):
        if name in ranks.stated:
            ranks.exchange(name, None, block)
    if "c" not in ranks.stated:
        multiply(a, b, c)
    else:
        with ranks.memory.lent((a.shape[0], b.shape[1]), c.dtype) as sums:
            multiply(a, b, sums)
            ranks.exchange("c", sums, c)
