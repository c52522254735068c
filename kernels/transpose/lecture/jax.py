# transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.
# Model: an expression of whole arrays. XLA compiles it for their sizes, and divides it among threads.
# Memory: writes the result in order, and reads a by columns, whose elements lie m apart.
# Edges: none; the arrays know their shapes.


def transpose(a, c, m, n):
    return a.T
