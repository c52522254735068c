# heat: c[i, j] = u[i, j] / 2 + (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1]) / 8, `steps` times; the boundary stays.
# Model: threads of Python (concurrent.futures). In each step every thread has a task: some rows, in calls of NumPy. A
#   step begins when all tasks of the last one have ended, since it needs rows of its neighbours.
# Memory: shared. Steps read one array and write another one by turns, so that the last one writes to c. Each call
#   of NumPy writes a new array of the task's rows.
# Edges: tasks share the rows between the first and the last one. Without an interior, their slices are empty.


def heat(executor, workers, u, c, m, n, steps):
    def step(first, last):
        around = old[first - 1 : last + 1]
        neighbours = around[:-2, 1:-1] + around[2:, 1:-1] + around[1:-1, :-2] + around[1:-1, 2:]
        new[first:last, 1:-1] = around[1:-1, 1:-1] / 2 + neighbours / 8

    ends = [1 + max(0, m - 2) * task // workers for task in range(workers + 1)]
    c[...] = u
    new = u
    other = c.copy() if steps > 1 else c
    for left in reversed(range(steps)):
        old, new = new, other if left % 2 else c
        list(executor.map(step, ends[:-1], ends[1:]))
