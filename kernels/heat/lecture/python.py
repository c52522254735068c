# heat: c[i, j] = u[i, j] / 2 + (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1]) / 8, `steps` times; the boundary stays.
# Model: plain Python in one thread. The interpreter computes one element after the other.
# Memory: lists of boxed floats, read through pointers. Each step reads a copy of what the last one wrote.
# Edges: the first and last row and column are left as they are. Without an interior, the loops are empty.


def heat(u, c, m, n, steps):
    c[: m * n] = u[: m * n]
    for _ in range(steps):
        before = c[: m * n]
        for i in range(1, m - 1):
            for at in range(i * n + 1, i * n + n - 1):
                c[at] = before[at] / 2 + (before[at - n] + before[at + n] + before[at - 1] + before[at + 1]) / 8
