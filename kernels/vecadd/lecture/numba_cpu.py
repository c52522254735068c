# vecadd: c[i] = a[i] + b[i] for n elements.
# Model: a decorator compiles the Python loop, and prange spreads it over threads.
# Memory: each thread reads and writes one contiguous part of the arrays, in order.
# Edges: none; the parts end with the last element, also where they are not equal.

from numba import njit, prange


@njit(parallel=True, nogil=True)
def vecadd(a, b, c, n):
    for i in prange(n):
        c[i] = a[i] + b[i]
