# vecadd: c[i] = a[i] + b[i] for n elements.
# Idea: a short vector is added by the calling thread, since waking the others takes longer; one core alone cannot fill
#   the memory's bandwidth, so a long one is shared.
# Model: a decorator compiles the Python loops, and prange spreads the long one over threads.
# Memory: each thread reads and writes one contiguous part of the arrays, in order. An ordinary store reads the line
#   that it is about to overwrite, a quarter of all traffic; nothing in the language asks for a store past the cache.
# Edges: none; the parts end with the last element, also where they are not equal.

from numba import njit, prange

FEW_TO_SHARE = 1 << 16


@njit(nogil=True)
def add(a, b, c, n):
    for i in range(n):
        c[i] = a[i] + b[i]


@njit(parallel=True, nogil=True)
def add_shared(a, b, c, n):
    for i in prange(n):
        c[i] = a[i] + b[i]


@njit(nogil=True)
def vecadd(a, b, c, n):
    if n <= FEW_TO_SHARE:
        add(a, b, c, n)
    else:
        add_shared(a, b, c, n)
