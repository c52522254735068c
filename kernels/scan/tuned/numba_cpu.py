# scan: c[i] = a[0] + ... + a[i] for a vector of n elements.
# Idea: two passes over so much at a time that the second one finds it in the last-level cache. And within a pass, four
#   elements compute their sums by themselves. So one addition of the four waits for those before.
# Model: a decorator compiles the Python loops, and prange divides the tiles of a round, one for each thread, among
#   threads. Each adds up its tile. Then each computes its sums, from what comes before its tile on. The calling thread
#   computes short vectors by itself, since waking others takes longer. The order of all additions is fixed, so as many
#   threads give the same result every time.
# Memory: every thread reads its own tile of a twice, once from memory, and writes its tile of c once, in order.
# Edges: the last tiles may be shorter, or empty.

import numpy as np
from numba import njit, prange, types

from py_backends.backend.formats.numba_cpu import widen
from py_backends.system.caches import effective_cache

FEW_TO_SHARE = 1 << 20
"""Bytes of a vector up to which a second thread costs more than it saves."""
ROUND = effective_cache() // 4
"""Bytes that all threads read and write between two waits for each other."""
get_num_threads = types.ExternalFunction("get_num_threads", types.intp())
"""Numba's own, by its name for the linker. By that of Python, it is an address, and no later run could use the code."""


@njit(nogil=True, fastmath={"reassoc", "contract"})
def sum_of(a, number):
    """The sum in the type of `number`. Numba adds integers in 64 bits, unless they are made 32 bits at once.

    The compiler may reorder its additions, and do nothing else that fast arithmetic would allow.
    """
    sum = number(0)
    for i in range(a.size):
        sum = number(sum + widen(a[i]))
    return sum


@njit(nogil=True)
def scan_from(before, a, c):
    """The sums of a tile, each with what comes before the tile."""
    whole = a.size // 4 * 4
    for i in range(0, whole, 4):
        x, y, z, w = widen(a[i]), widen(a[i + 1]), widen(a[i + 2]), widen(a[i + 3])
        of_two = x + y
        of_four = of_two + (z + w)
        c[i] = before + x
        c[i + 1] = before + of_two
        c[i + 2] = before + (of_two + z)
        before += of_four
        c[i + 3] = before
    for i in range(whole, a.size):
        before += widen(a[i])
        c[i] = before
    return before


@njit(parallel=True, nogil=True)
def scan_shared(a, c, n):
    threads = get_num_threads()
    length = max(1, ROUND // (a.itemsize + c.itemsize) // threads)
    sums = np.zeros(threads + 1, c.dtype)
    for first in range(0, n, threads * length):
        for tile in prange(threads):
            begin = first + tile * length
            sums[tile + 1] = sum_of(a[begin : begin + length], c.dtype.type)
        for tile in range(threads):
            sums[tile + 1] += sums[tile]
        for tile in prange(threads):
            begin = first + tile * length
            scan_from(sums[tile], a[begin : begin + length], c[begin : begin + length])
        sums[0] = sums[threads]


@njit(nogil=True)
def scan(a, c, n):
    if n * a.itemsize <= FEW_TO_SHARE or get_num_threads() == 1:
        scan_from(c.dtype.type(0), a, c)
    else:
        scan_shared(a, c, n)
