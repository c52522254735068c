# histogram: c[k] = how many of a[i] lie in [k / 256, (k + 1) / 256), of n; of int8, how many are k - 128.
# Idea: the places of 512 elements are found first, which the compiler does by vector instructions. Then they are
#   counted in four tables by turns, and no update waits for the one before.
# Model: a decorator compiles the Python loops, and prange spreads parts over threads, each of which counts in tables of
#   its own. Short vectors stay on the calling thread, since waking others takes longer.
# Memory: every thread reads its own part of a, in order. Its tables and places are 6 KiB, and stay in its nearest
#   cache.
# Edges: parts may be empty. What lies outside of [0, 1), NaN too, has a place that is added to nothing.

import numpy as np
from numba import njit, prange, types

from py_backends.backend.formats.numba_cpu import widen

FEW_TO_SHARE = 1 << 16
"""Bytes of a vector up to which a second thread costs more than it saves."""
BLOCK = 512
get_num_threads = types.ExternalFunction("get_num_threads", types.intp())
"""Numba's own, by its name for the linker. By that of Python, it is an address, and no later run could use the code."""


@njit(nogil=True)
def find_places(a, place):
    """Both comparisons are made, so that there is no jump. Neither is true of NaN."""
    end = np.float32(256)
    for i in range(a.size):
        if a.itemsize == 1:
            place[i] = widen(a[i]) + 128
        else:
            at = widen(a[i]) * end
            place[i] = np.int32(at if (at >= 0) & (at < end) else end)


@njit(nogil=True)
def count(a, c):
    """Adds the counts of a to c."""
    table, place = np.zeros((4, 257), np.int32), np.empty(BLOCK, np.int32)
    for begin in range(0, a.size, BLOCK):
        part = a[begin : begin + BLOCK]
        find_places(part, place)
        whole = part.size // 4 * 4
        for i in range(0, whole, 4):
            table[0, place[i]] += 1
            table[1, place[i + 1]] += 1
            table[2, place[i + 2]] += 1
            table[3, place[i + 3]] += 1
        for i in range(whole, part.size):
            table[0, place[i]] += 1
    for k in range(256):
        c[k] += table[0, k] + table[1, k] + table[2, k] + table[3, k]


@njit(parallel=True, nogil=True)
def count_shared(a, c, n):
    counts = np.zeros((get_num_threads(), 256), np.int32)
    parts = len(counts)
    for part in prange(parts):
        count(a[n * part // parts : n * (part + 1) // parts], counts[part])
    for part in range(parts):
        for k in range(256):
            c[k] += counts[part, k]


@njit(nogil=True)
def histogram(a, c, n):
    c[:] = 0
    if n * a.itemsize <= FEW_TO_SHARE:
        count(a, c)
    else:
        count_shared(a, c, n)
