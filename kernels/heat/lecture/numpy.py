# heat: c[i, j] = u[i, j] / 2 + (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1]) / 8, `steps` times; the boundary stays.
# Model: each operation of the formula is a call for all elements, in one thread. Slices name the neighbours.
# Memory: each call reads whole arrays and writes a new one. So a step moves several times the bytes of u and c.
# Edges: slices leave out the first and last row and column. Without an interior, they are empty.


def heat(u, c, m, n, steps):
    c[:] = u
    for _ in range(steps):
        neighbours = c[:-2, 1:-1] + c[2:, 1:-1] + c[1:-1, :-2] + c[1:-1, 2:]
        c[1:-1, 1:-1] = c[1:-1, 1:-1] / 2 + neighbours / 8
