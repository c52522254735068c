# transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.
# Model: plain Python in one thread: two loops, as in the definition. The interpreter moves one element after another.
# Memory: lists of boxed floats, read through pointers; a by columns, c by rows.
# Edges: none; the loops end with the last row and column.


def transpose(a, c, m, n):
    for i in range(m):
        for j in range(n):
            c[i * n + j] = a[j * m + i]
