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


def matmul(ranks, multiply, a, b, c, m, n, k):
    grid = best_grid(ranks.size, (a.itemsize, b.itemsize, c.itemsize), m, n, k)
    along_m, along_n, along_k = ranks.lines(grid)
    gather(along_n, a)
    gather(along_m, b)
    if along_k.size == 1:
        multiply(a, b, c)
    else:
        with along_k.memory.lent((a.shape[0], b.shape[1]), c.dtype) as sums:
            multiply(a, b, sums)
            along_k.Reduce_scatter(sums, c, counts(along_k, *sums.shape))


def gather(line, block):
    """Gather the shares of all ranks of a line into a block, where each has put its own."""
    if line.size > 1:
        line.Allgatherv(None, [block, counts(line, *block.shape)])


def counts(line, rows, columns):
    """How many elements of a block are in each rank's share."""
    cuts = [part(rows, rank, line.size) for rank in range(line.size)]
    return [(cut.stop - cut.start) * columns for cut in cuts]
