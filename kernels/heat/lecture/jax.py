# heat: c[i, j] = u[i, j] / 2 + (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1]) / 8, `steps` times; the boundary stays.
# Model: an expression of whole arrays for a step, and a function that repeats it. A loop of Python would be compiled
#   step by step, and for one number of steps alone. Arrays never change: `at` and `set` make one that differs inside.
# Memory: XLA makes one loop of all operations of a step. It reads one array and writes another one.
# Edges: slices leave out the first and last row and column. Without an interior, there are no steps.

from jax import lax


def heat(u, c, m, n, steps):
    def step(_, u):
        neighbours = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        return u.at[1:-1, 1:-1].set(u[1:-1, 1:-1] / 2 + neighbours / 8)

    return lax.fori_loop(0, steps if min(m, n) > 2 else 0, step, u)
