# heat: c[i, j] = u[i, j] / 2 + (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1]) / 8, `steps` times; the boundary stays.
# Model: a kernel in Python, written for one thread of an NVIDIA GPU, which computes one element of one step. Blocks
#   cannot wait for each other, so each step is a launch of its own.
# Memory: each launch reads one array and writes another one, which the next launch reads. Neighbouring threads read and
#   write neighbours of a row. So the GPU coalesces the accesses of a warp into few transactions. The arrays are flat,
#   like pointers in CUDA C++, and element (i, j) of u is u[i * n + j].
# Edges: threads past the last column or row do nothing. Those of the boundary copy, as all do after 0 steps. A grid has
#   at most 65,535 blocks from top to bottom. With more rows, threads go on one grid height further down.
# ---
# Work items: n x m, in groups of 32 x 8
# Repeat: steps

from numba import cuda


@cuda.jit
def heat(u, c, m, n, steps):
    # Numbers of c's type: 0.5 would make the sum a float64, even for float32.
    half, eighth = c.dtype.type(0.5), c.dtype.type(0.125)
    j, first = cuda.grid(2)
    if j < n:
        for i in range(first, m, cuda.gridsize(2)[1]):
            at = i * n + j
            if steps == 0 or i == 0 or i == m - 1 or j == 0 or j == n - 1:
                c[at] = u[at]
            else:
                c[at] = half * u[at] + eighth * (u[at - n] + u[at + n] + u[at - 1] + u[at + 1])
