# scan: c[i] = a[0] + ... + a[i] for a vector of n elements.
# Model: a decorator compiles the Python loops, and prange divides parts, one for each thread, among threads. Each adds
#   up its own part. Then each adds once more, from what comes before its part on.
# Memory: every thread reads its own part of a twice and writes its part of c once, in order.
# Edges: some parts have one element more than others, or none.

import numpy as np
from numba import get_num_threads, njit, prange

from py_backends.backend.formats.numba_cpu import widen


@njit(parallel=True, nogil=True)
def scan(a, c, n):
    parts = get_num_threads()
    sums = np.zeros(parts + 1, c.dtype)
    for part in prange(parts):
        # A zero of c's type: 0.0 would make the sum a float64, even for float32.
        sum = c.dtype.type(0)
        for i in range(n * part // parts, n * (part + 1) // parts):
            sum += widen(a[i])
        sums[part + 1] = sum
    for part in range(parts):
        sums[part + 1] += sums[part]
    for part in prange(parts):
        sum = sums[part]
        for i in range(n * part // parts, n * (part + 1) // parts):
            sum += widen(a[i])
            c[i] = sum
