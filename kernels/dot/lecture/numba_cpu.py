# dot: c = the sum of a[i] b[i] for vectors of n elements.
# Model: a decorator compiles the Python loop, and prange divides it, an iteration for each product, among threads.
#   Numba sees that iterations only add to sum. So every thread has one of its own, and in the end all are added up.
# Memory: every thread reads its own chunk of a and b, in order. An array of no dimensions has the index ().
# Edges: none; Numba gives the threads chunks of almost equal length, and an empty sum is 0.

from numba import njit, prange

from py_backends.backend.formats.numba_cpu import widen


@njit(parallel=True, nogil=True)
def dot(a, b, c, n):
    # A zero of c's type: 0.0 would make the sum a float64, even for float32.
    sum = c.dtype.type(0)
    for i in prange(n):
        sum += widen(a[i]) * widen(b[i])
    c[()] = sum
