# heat: c[i, j] = u[i, j] / 2 + (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1]) / 8, `steps` times; the boundary stays.
# Model: a decorator compiles the Python loops, and prange divides the rows of a step among threads. At its end all of
#   them wait for one another: the next step reads what others have written.
# Memory: each step reads one array and writes another one, row by row. They change places for the next step, so that
#   the last one writes to c. Both have the boundary from the beginning.
# Edges: the first and last row and column are left as they are. Without an interior, there are no steps.

from numba import njit, prange


@njit(parallel=True, nogil=True)
def heat(u, c, m, n, steps):
    # Numbers of c's type: 0.5 would make the sum a float64, even for float32.
    half, eighth = c.dtype.type(0.5), c.dtype.type(0.125)
    c[:] = u
    before, after = (c, u.copy()) if steps % 2 == 0 else (u.copy(), c)
    for _ in range(steps if min(m, n) > 2 else 0):
        for i in prange(1, m - 1):
            for j in range(1, n - 1):
                neighbours = before[i - 1, j] + before[i + 1, j] + before[i, j - 1] + before[i, j + 1]
                after[i, j] = half * before[i, j] + eighth * neighbours
        before, after = after, before
