# histogram: c[k] = how many of a[i] lie in [k / 256, (k + 1) / 256), of n; of int8, how many are k - 128.
# Model: a decorator compiles the Python loops, and prange divides parts of the elements among threads. Numba adds up
#   whole arrays too: `c += ` in such a loop gives every thread one of its own. Its single elements it does not protect,
#   so each part counts in a table of its own.
# Memory: every thread reads its own parts of a, in order. A table is one KiB, and stays in the nearest cache.
# Edges: what lies outside of [0, 1) is counted nowhere. NaN is not, either: no comparison with it is true.

import numpy as np
from numba import njit, prange

from py_backends.backend.formats.numba_cpu import widen


@njit(parallel=True, nogil=True)
def histogram(a, c, n):
    counts = np.zeros(256, np.int32)
    for part in prange(64):
        table = np.zeros(256, np.int32)
        for i in range(n * part // 64, n * (part + 1) // 64):
            at = widen(a[i]) + 128 if a.itemsize == 1 else 256 * widen(a[i])
            if at >= 0 and at < 256:
                table[int(at)] += 1
        counts += table
    c[:] = counts
