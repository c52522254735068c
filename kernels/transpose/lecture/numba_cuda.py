# transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.
# Model: a kernel in Python, written for one thread of an NVIDIA GPU, which moves one element. The grid covers c.
# Memory: neighbouring threads write neighbours of a row of c. The GPU coalesces these writes into few transactions.
#   They read elements of a column of a, which lie m apart. For each of those the GPU moves 32 bytes. The arrays are
#   flat, like pointers in CUDA C++: element (j, i) of a is a[j * m + i].
# Edges: threads past the last column or row do nothing. A grid has at most 65,535 blocks from top to bottom. With more
#   rows, each thread also moves elements further down, one grid height apart.
# ---
# Work items: n x m, in groups of 16 x 16

from numba import cuda


@cuda.jit
def transpose(a, c, m, n):
    j, first = cuda.grid(2)
    if j < n:
        for i in range(first, m, cuda.gridsize(2)[1]):
            c[i * n + j] = a[j * m + i]
