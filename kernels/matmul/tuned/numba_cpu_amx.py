# matmul in bfloat16, float16 and int8 by Intel's AMX: the source of numba_cpu for CPUs that have it. A core has eight
# tiles, each of up to 16 rows of 64 bytes. One instruction multiplies two of them and adds the product to a third.
# c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
#
# Idea: 2 x 2 tiles of c stay in registers. Two tiles of a and two of b at a time are multiplied into them. A row of a
#   tile of a is 64 bytes of a row of a. A row of a tile of b has 16 columns and several rows of b. Elements that fill
#   32 bits together stand beside each other. Both are packed so.
# Model: intrinsics emit the instructions of tiles, and of vectors that are packed, in LLVM's own language. Compiled
#   Python has the loops around them. prange gives each thread a part of c. A thread has its own tiles, and configures
#   them.
# Memory: a panel is 32 rows of a, or 32 columns of b, over the depth of a pass. A panel of a stays in the first-level
#   cache while the panels of b pass by. Those stay in the second-level cache while the panels of a do. Tiles of c are
#   stored to a buffer. Vector instructions add that to c while the next tiles are multiplied.
# Edges: panels are filled up with zeros on both sides, since zero times infinity would be no zero.
# Numbers: products of bfloat16 are exact, and subnormal numbers count as zeros. A float16 is exactly the sum of two
#   bfloat16, so four products make one of float16. Tiles know no infinity that is such a sum, nor its product with a
#   subnormal number. Where sums are not finite, rows and columns with such elements are computed anew, in float64.

import math

import numpy as np
from numba import get_num_threads, njit, prange

from py_backends.backend.formats.numba_cpu import widen
from py_backends.system.caches import second_level_cache

from .numba_cpu import aligned, even_parts
from .numba_cpu_tiles import (
    BYTES,
    ROWS,
    SIDE,
    configure_tiles,
    multiply_step,
    pack_row,
    pack_words,
    release_tiles,
    store_tiles,
    words_of_step,
    write_row,
    write_sum,
    zero_tiles,
)

PANEL = 36 * 2**10
"""Most bytes of a panel. The first-level cache has 48 KiB where there are tiles.

A little more than a power of two: k = 513 then needs no more passes than k = 512.
"""
BLOCK = second_level_cache() // 2
"""Bytes of the panels of b in a pass, about."""
FEW = 256.0**3
"""Up to so many multiplications in all, threads cost more than they save."""


@njit(nogil=True)
def pack_a(a, i, rows, p0, depth, end, panel):
    """Pack up to 32 rows of a from row i on, over `depth` columns from p0 on. `end`: memory for what is filled up."""
    deep = BYTES // a.itemsize
    step = words_of_step(a) * 4 // a.itemsize
    for p in range(0, depth, deep):
        there = min(deep, depth - p)
        for r in range(SIDE):
            to = p // deep * step + r * deep
            if r < rows and there == deep:
                pack_row(a, (i + r) * a.shape[1] + p0 + p, panel, to)
                continue
            end[:] = 0
            if r < rows:
                end[:there] = a[i + r, p0 + p : p0 + p + there]
            pack_row(end, 0, panel, to)


@njit(nogil=True)
def pack_step_of_b(b, at, stride, panel, to):
    """Pack a step of a panel of b, all of whose elements exist."""
    together = 4 // b.itemsize
    for row in range(ROWS):
        pack_words(b, at + row * together * stride, stride, panel, to + row * ROWS)


@njit(nogil=True)
def pack_b(b, p0, depth, j, columns, end, panel, to):
    """Pack up to 32 columns of b from column j on, over `depth` rows from p0 on, to the word `to` of a panel."""
    deep = BYTES // b.itemsize
    for p in range(0, depth, deep):
        there = min(deep, depth - p)
        if there == deep and columns == SIDE:
            pack_step_of_b(b, (p0 + p) * b.shape[1] + j, b.shape[1], panel, to)
        else:
            end[:] = 0
            for q in range(there):
                end[q * SIDE : q * SIDE + columns] = b[p0 + p + q, j : j + columns]
            pack_step_of_b(end, 0, SIDE, panel, to)
        to += words_of_step(b)


@njit(nogil=True, forceinline=True)
def write_rows(buffer, c, block, first, last, add):
    """Write rows of the block of c that waits in the buffer. Returns whether any of its sums is not finite."""
    begin, rows, columns = block
    infinite = False
    for r in range(first, min(last, rows)):
        if columns == SIDE:
            infinite |= write_row(buffer, r * SIDE, c, begin + r * c.shape[1], add)
        else:
            for j in range(columns):
                infinite |= write_sum(buffer, r * SIDE + j, c, begin + r * c.shape[1] + j, add)
    return infinite


@njit(nogil=True)
def multiply_panels(a, b, at, steps, buffer, c, waiting, add):
    """Multiply a panel of a by one of b, into the buffer. By then all rows of the block that waited there are in c."""
    share = (SIDE + steps - 1) // steps
    infinite = False
    zero_tiles()
    for step in range(steps):
        multiply_step(a, b, at, step)
        infinite |= write_rows(buffer, c, waiting, step * share, (step + 1) * share, add)
    store_tiles(buffer)
    return infinite


@njit(nogil=True)
def multiply_pass(a, b, c, rows, columns, depths, panel, block, end, buffer):
    """Multiply rows of a by a block of columns of b, over a pass. Returns whether any sum is not finite."""
    (i0, i1), (j0, j1), (p0, p1) = rows, columns, depths
    deep, add = BYTES // a.itemsize, p0 > 0
    steps = (p1 - p0 + deep - 1) // deep
    words = steps * words_of_step(a)
    for j in range(j0, j1, SIDE):
        pack_b(b, p0, p1 - p0, j, min(SIDE, j1 - j), end, block, (j - j0) // SIDE * words)
    waiting = (0, 0, 0)  # where the block begins in c, its rows and its columns
    infinite = False
    for i in range(i0, i1, SIDE):
        pack_a(a, i, min(SIDE, i1 - i), p0, p1 - p0, end, panel)
        for j in range(j0, j1, SIDE):
            infinite |= multiply_panels(panel, block, (j - j0) // SIDE * words, steps, buffer, c, waiting, add)
            waiting = (i * c.shape[1] + j, min(SIDE, i1 - i), min(SIDE, j1 - j))
    return infinite | write_rows(buffer, c, waiting, 0, SIDE, add)


@njit(nogil=True)
def multiply(a, b, c, rows, columns):
    """Compute one thread's part of c. Returns whether any sum is not finite."""
    deep, step, k = BYTES // a.itemsize, words_of_step(a), a.shape[1]
    steps = even_parts((k + deep - 1) // deep, PANEL // (4 * step))
    panels = even_parts((columns[1] - columns[0] + SIDE - 1) // SIDE, max(1, BLOCK // (4 * step * steps)))
    panel, block = aligned(steps * step, np.uint32).view(a.dtype), aligned(panels * steps * step, np.uint32)
    end, buffer = aligned(deep * SIDE // 2, np.uint32).view(a.dtype), aligned(SIDE * SIDE, c.dtype)
    infinite = False
    configure_tiles()
    for j in range(columns[0], columns[1], panels * SIDE):
        block_of_c = (j, min(j + panels * SIDE, columns[1]))
        for p in range(0, k, steps * deep):
            depths = (p, min(p + steps * deep, k))
            infinite |= multiply_pass(a, b, c, rows, block_of_c, depths, panel, block, end, buffer)
    release_tiles()
    return infinite


@njit(nogil=True)
def all_finite(row):
    finite = True
    for j in range(row.size):
        finite &= math.isfinite(widen(row[j]))
    return finite


@njit(nogil=True)
def multiply_in_float64(row, b, j, c):
    """Compute up to 32 elements of a row of c in float64, where no sum of such products overflows."""
    sums = np.zeros(c.size)
    for p in range(row.size):
        factor = np.float64(widen(row[p]))
        for each in range(c.size):
            sums[each] += factor * widen(b[p, j + each])
    for each in range(c.size):
        c[each] = sums[each]


@njit(parallel=True, nogil=True)
def multiply_infinite(a, b, c):
    """Compute anew rows of c that meet infinity or NaN in a, and blocks of columns that do in b."""
    n = b.shape[1]
    finite = np.ones((n + SIDE - 1) // SIDE, np.bool_)  # of a block of b
    for p in range(b.shape[0]):
        for block in range(finite.size):
            finite[block] &= all_finite(b[p, block * SIDE : (block + 1) * SIDE])
    for i in prange(a.shape[0]):
        finite_row = all_finite(a[i])
        for block in range(finite.size):
            j, end = block * SIDE, min(n, (block + 1) * SIDE)
            if not (finite_row and finite[block]):
                multiply_in_float64(a[i], b, j, c[i, j:end])


@njit(nogil=True)
def parts_of_columns(threads, m, n):
    """How many parts the columns of c are divided into for threads. The rows are divided into threads / that.

    Every part packs its own rows of a and columns of b, and this division packs the least.
    """
    best = 1
    for across in range(2, threads + 1):
        if threads % across == 0 and m * across + n * (threads // across) < m * best + n * (threads // best):
            best = across
    return best


@njit(nogil=True)
def part_of(whole, part, of):
    """Where a thread's part of so many rows or columns begins and ends. It is whole panels."""
    panels = (whole + SIDE - 1) // SIDE
    return panels * part // of * SIDE, min(panels * (part + 1) // of * SIDE, whole)


@njit(parallel=True, nogil=True)
def matmul(a, b, c, m, n, k):
    if k == 0:
        c[:] = 0
    work = float(m) * float(n) * float(k)
    threads = (get_num_threads() if work > FEW else 1) if work > 0 else 0
    across = parts_of_columns(threads, m, n)
    infinite = np.empty(threads, np.bool_)
    for part in prange(threads):
        rows, columns = part_of(m, part // across, threads // across), part_of(n, part % across, across)
        there = rows[0] < rows[1] and columns[0] < columns[1]
        infinite[part] = there and multiply(a, b, c, rows, columns)
    if infinite.any():
        multiply_infinite(a, b, c)
