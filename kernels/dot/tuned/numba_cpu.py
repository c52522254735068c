# dot: c = the sum of a[i] b[i] for vectors of n elements.
# Idea: the compiler may reorder a thread's additions, so it keeps several vector registers of sums. Otherwise each
#   addition would wait for the one before. It may do nothing else that fast arithmetic would allow: NaN, infinities and
#   subnormal numbers stay what they are.
# Model: a decorator compiles the Python loops, and prange spreads parts over threads. The calling thread adds up short
#   vectors by itself, since waking others takes longer. Each part has a sum of its own. These are added up in order, so
#   that as many threads give the same result every time.
# Memory: every thread reads its own part of a and b, in order.
# Edges: parts are of equal length, but for the last ones, which may be empty. Slices end with the vectors.

import numpy as np
from numba import njit, prange, types

from py_backends.backend.formats.numba_cpu import widen

FEW_TO_SHARE = 1 << 18
"""Bytes of a vector up to which a second thread costs more than it saves."""
get_num_threads = types.ExternalFunction("get_num_threads", types.intp())
"""Numba's own, by its name for the linker. By that of Python, it is an address, and no later run could use the code."""


@njit(nogil=True, fastmath={"reassoc", "contract"})
def sum_of(a, b, number):
    """The sum in the type of `number`. Numba adds integers in 64 bits, unless they are made 32 bits at once."""
    sum = number(0)
    for i in range(a.size):
        sum = number(sum + widen(a[i]) * widen(b[i]))
    return sum


@njit(parallel=True, nogil=True)
def sum_shared(a, b, c, n):
    sums = np.empty(get_num_threads(), c.dtype)
    length = (n + sums.size - 1) // sums.size
    for part in prange(sums.size):
        own = slice(part * length, (part + 1) * length)
        sums[part] = sum_of(a[own], b[own], c.dtype.type)
    sum = c.dtype.type(0)
    for each in sums:
        sum += each
    c[()] = sum


@njit(nogil=True)
def dot(a, b, c, n):
    if n * a.itemsize <= FEW_TO_SHARE:
        c[()] = sum_of(a, b, c.dtype.type)
    else:
        sum_shared(a, b, c, n)
