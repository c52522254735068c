# matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
# Model: ranks (MPI) in a grid along m, n and k; each multiplies one block of a by one of b, in one call.
# Memory: distributed: each rank holds a share of its blocks' rows. It gathers a block of a from the ranks that differ
#     from it along n alone, one of b from those along m, and of the sums with those along k it keeps a share.
# Edges: shares differ by one row or column, and may have none.
#
# Cutting the product along one dimension alone moves the others as a whole; a grid whose blocks are near cubes moves
# the fewest bytes (Al Daas, Ballard, Grigori, Kumar and Rouse, SPAA 2022, section 5.2).

from functools import cache
from itertools import product

MULTIPLY_ADDS_PER_BYTE = 16  # what a core computes while it sends a byte, roughly: ranks without work cost more


def part(count, at, parts):
    return slice(count * at // parts, count * (at + 1) // parts)


def within(whole, at, parts):
    """Of a slice one of so many parts."""
    cut = part(whole.stop - whole.start, at, parts)
    return slice(whole.start + cut.start, whole.start + cut.stop)


@cache
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

    return min(grids, key=cost)


def blocks(rank, ranks, widths, m, n, k):
    along_m, along_n, along_k = best_grid(ranks, widths, m, n, k)
    i, j, p = rank // along_k // along_n, rank // along_k % along_n, rank % along_k
    of_m, of_n, of_k = part(m, i, along_m), part(n, j, along_n), part(k, p, along_k)
    a = within(of_m, j, along_n), of_k
    b = within(of_k, i, along_m), of_n
    c = within(of_m, p, along_k), of_n
    return a, b, c


def matmul(ranks, multiply, a, b, c, m, n, k):
    grid = best_grid(ranks.size, (a.itemsize, b.itemsize, c.itemsize), m, n, k)
    along_m, along_n, along_k = ranks.lines(grid)
    of_m, of_k = part(m, along_m.rank, along_m.size), part(k, along_k.rank, along_k.size)
    block_a = gathered(along_n, a, of_m.stop - of_m.start)
    block_b = gathered(along_m, b, of_k.stop - of_k.start)
    if along_k.size == 1:
        multiply(block_a, block_b, c)
    else:
        sums = along_k.room((block_a.shape[0], block_b.shape[1]), c.dtype)
        multiply(block_a, block_b, sums)
        along_k.Reduce_scatter(sums, c, counts(along_k, *sums.shape))


def gathered(line, share, rows):
    """A block of so many rows, of which each rank of a line has a share."""
    if line.size == 1:
        return share
    whole = line.room((rows, share.shape[1]), share.dtype)
    line.Allgatherv(share, [whole, counts(line, *whole.shape)])
    return whole


def counts(line, rows, columns):
    """Elements of each rank's share of a block."""
    cuts = [part(rows, rank, line.size) for rank in range(line.size)]
    return [(cut.stop - cut.start) * columns for cut in cuts]
