# heat: c[i, j] = u[i, j] / 2 + (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1]) / 8, `steps` times; the boundary stays.
# Idea: several steps in one pass over the rows. As soon as a step has computed three rows, the next step computes the
#   middle one. So a pass reads and writes memory once for all of its steps.
# Model: a decorator compiles the Python loops, and prange divides the parts of a pass among threads. At its end all of
#   them wait for one another. The calling thread computes small matrices by itself, since waking others takes longer.
# Memory: a pass reads one matrix and writes another one. Three rows of each step between stay in the second-level
#   cache.
# Edges: around a part, as many more rows and columns are computed as there are steps to come. The boundary is copied.

import numpy as np
from numba import njit, prange

MOST_STEPS, ROWS, COLUMNS, KEPT = 8, 256, 1024, 3
"""Steps of a pass; rows and columns of a part; the rows that are kept of each step."""
FEW_TO_SHARE = 1 << 16
"""Elements of all steps up to which a second thread costs more than it saves."""


@njit(nogil=True)
def compute(up, row, down, after):
    """Elements that have neighbours on all sides. The rows of the step before begin and end one element further out."""
    # Numbers of the rows' type: 0.5 would make the sum a float64, even for float32.
    half, eighth = row.dtype.type(0.5), row.dtype.type(0.125)
    for j in range(after.size):
        after[j] = half * row[j + 1] + eighth * (up[j + 1] + down[j + 1] + row[j] + row[j + 2])


@njit(nogil=True)
def sweep(u, c, m, n, steps, top, left):
    """All steps of the part that begins there."""
    bottom, right = min(m, top + ROWS), min(n, left + COLUMNS)
    kept = np.empty((MOST_STEPS - 1, KEPT, COLUMNS + 2 * MOST_STEPS), c.dtype)
    for of_first in range(top - steps + 1, bottom + steps - 1):
        for step in range(steps):
            i, more = of_first - step, steps - 1 - step
            if i < max(0, top - more) or i >= min(m, bottom + more):
                continue
            first, end = max(0, left - more), min(n, right + more)
            before, after = (u if step == 0 else kept[step - 1]), (c if step == steps - 1 else kept[step])
            # The rows that are kept begin so many columns before the part, and take each other's places.
            since, since_after = (
                (0 if step == 0 else left - MOST_STEPS),
                (0 if step == steps - 1 else left - MOST_STEPS),
            )
            up, row, down = (i - 1, i, i + 1) if step == 0 else ((i - 1) % KEPT, i % KEPT, (i + 1) % KEPT)
            to = i if step == steps - 1 else i % KEPT
            if i in (0, m - 1):
                after[to, first - since_after : end - since_after] = before[row, first - since : end - since]
                continue
            if first == 0:
                after[to, -since_after] = before[row, -since]
            if end == n:
                after[to, n - 1 - since_after] = before[row, n - 1 - since]
            begin, stop = max(first, 1), min(end, n - 1)
            beside = slice(begin - 1 - since, stop + 1 - since)
            compute(
                before[up, beside],
                before[row, beside],
                before[down, beside],
                after[to, begin - since_after : stop - since_after],
            )


@njit(parallel=True, nogil=True)
def sweep_shared(u, c, m, n, steps):
    strips = (n + COLUMNS - 1) // COLUMNS
    for part in prange((m + ROWS - 1) // ROWS * strips):
        sweep(u, c, m, n, steps, part // strips * ROWS, part % strips * COLUMNS)


@njit(nogil=True)
def run_pass(u, c, m, n, steps):
    if m * n * steps > FEW_TO_SHARE:
        sweep_shared(u, c, m, n, steps)
    else:
        for top in range(0, m, ROWS):
            for left in range(0, n, COLUMNS):
                sweep(u, c, m, n, steps, top, left)


@njit(nogil=True)
def heat(u, c, m, n, steps):
    if m < 3 or n < 3:  # nothing changes
        steps = 0
    if steps == 0:
        c[:] = u
    passes = (steps + MOST_STEPS - 1) // MOST_STEPS
    other = np.empty((m, n) if passes > 1 else (0, 0), c.dtype)
    for number in range(passes):
        after = c if (passes - number) % 2 == 1 else other
        run_pass(u, after, m, n, steps * (number + 1) // passes - steps * number // passes)
        u = after
