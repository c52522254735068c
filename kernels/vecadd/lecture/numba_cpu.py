# vecadd: c[i] = a[i] + b[i] for vectors of n elements.
# Model: a decorator compiles the Python loop, and prange divides it, an iteration for each element, among threads.
# Memory: every thread reads and writes its own chunk of a, b and c, in order.
# Edges: none; Numba gives the threads chunks of almost equal length.

from numba import njit, prange

from py_backends.backend.formats.numba_cpu import narrow, widen


@njit(parallel=True, nogil=True)
def vecadd(a, b, c, n):
    for i in prange(n):
        c[i] = narrow(widen(a[i]) + widen(b[i]), c.dtype)
