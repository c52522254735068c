# vecadd: c[i] = a[i] + b[i] for n elements.
# Model: a kernel in Python, written for one thread of the GPU; the grid of threads covers the data.
# Work items: n, in groups of 256
# Memory: neighbouring threads read and write neighbouring elements of global memory.
# Edges: threads past the last element do nothing.

from numba import cuda


@cuda.jit
def vecadd(a, b, c, n):
    i = cuda.grid(1)
    if i < n:
        c[i] = a[i] + b[i]
