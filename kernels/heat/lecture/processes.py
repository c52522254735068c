# heat: c[i, j] = u[i, j] / 2 + (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1]) / 8, `steps` times; the boundary stays.
# Model: processes of Python (concurrent.futures). In each step every process has a task: some rows, in calls of NumPy.
#   A step begins when all tasks of the last one have ended, since it needs rows of its neighbours.
# Memory: of their own, but for three matrices, which all processes map: the executor here has memory for the third one.
#   Steps read one and write another one by turns, so that the last one writes to c.
# Edges: tasks share the rows between the first and the last one. Without an interior, their slices are empty.

from functools import partial


def step(old, new, first, last):
    around = old[first - 1 : last + 1]
    neighbours = around[:-2, 1:-1] + around[2:, 1:-1] + around[1:-1, :-2] + around[1:-1, 2:]
    new[first:last, 1:-1] = around[1:-1, 1:-1] / 2 + neighbours / 8


def heat(executor, workers, u, c, m, n, steps):
    ends = [1 + max(0, m - 2) * task // workers for task in range(workers + 1)]
    c[...] = u
    other = executor.empty(c.shape, c.dtype)
    other[...] = u
    for left in reversed(range(steps)):
        target = other if left % 2 else c
        list(executor.map(partial(step, u, target), ends[:-1], ends[1:]))
        u = target
