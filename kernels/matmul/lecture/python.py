# matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
# Model: plain Python in one thread: three loops, as in the definition. The interpreter adds one product after another.
# Memory: lists of boxed floats, read through pointers; a by rows, b by columns.
# Edges: none; the loops end with the last row, column and product.


def matmul(a, b, c, m, n, k):
    for i in range(m):
        for j in range(n):
            sum = 0.0
            for p in range(k):
                sum += a[i * k + p] * b[p * n + j]
            c[i * n + j] = sum
