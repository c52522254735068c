# attention: c = softmax(q k^T / sqrt(d)) v, for m queries and n keys. q and c are m x d, k and v n x d, all by rows.
# Idea: both products by the tile of matmul, whose sums stay in registers, a block of keys at a time. Only the scores of
#   a tile and a block are stored. (Dao, Fu, Ermon, Rudra and Re, FlashAttention, NeurIPS 2022.)
# Model: a decorator compiles the Python loops, and prange divides tiles of queries among threads. LLVM makes vectors of
#   the loops over scores. It has none of math.exp, so powers of two are computed by a polynomial.
# Memory: keys are packed as columns, and values in columns as wide as the tile, once for all threads. Both are widened
#   to the format of sums. The scores of a tile lie as the tile reads them again, when they are weights.
# Edges: keys beyond the last have scores of -infinity, which weigh nothing. Queries beyond the last are not written. If
#   all scores of a query are -infinity, 0 / 0 is NaN.

from math import inf, sqrt

import numpy as np
from llvmlite import ir
from numba import njit, prange, types
from numba.extending import intrinsic, overload

from py_backends.backend.formats.numba_cpu import widen

from ...matmul.tuned.numba_cpu import (  # noqa: TID252  # kernels are a package only where they are installed
    DEPTH,
    HEIGHT,
    REGISTER,
    STRIDE,
    aligned,
    multiply_tile,
)

BLOCK = 1 << (DEPTH.bit_length() - 1)
"""Bytes of the scores of a query: a power of two, so that halves of them can be compared."""
FEW_TO_SHARE = 1 << 16
"""Operations up to which a second thread costs more than it saves."""
# 2^f = 1 + f p(f) for f of at most one half: the numbers of p, from the last term to the first.
FLOAT = (1.5453162945120455e-4, 1.3390863364671206e-3, 9.618082557277852e-3,
         5.550357114219078e-2, 2.4022650760568126e-1, 6.931471880262288e-1)  # fmt: skip
DOUBLE = (4.454945547842242e-10, 7.07258646795143e-9, 1.017806253298163e-7, 1.3215442585889058e-6,
          1.5252733829686257e-5, 1.5403530441737684e-4, 1.3333558146417e-3, 9.61812910760689e-3,
          5.55041086648216e-2, 2.4022650695910097e-1, 6.931471805599453e-1)  # fmt: skip


@intrinsic
def exponent(typing, x):
    """The lowest bits of a number moved to where its exponent stands."""
    bits, digits = (ir.IntType(32), 23) if x == types.float32 else (ir.IntType(64), 52)

    def emit(context, builder, signature, arguments):
        moved = builder.shl(builder.bitcast(arguments[0], bits), ir.Constant(bits, digits))
        return builder.bitcast(moved, arguments[0].type)

    return x(x), emit


def power_of_two(x):
    """2^x of a number that is 0 or less: exactly 1 of 0, and 0 where it is below the normal numbers."""


@overload(power_of_two)
def compiled_power_of_two(x):
    # A large number is added to x, and behind its last digit there is no place for f. So its lowest bits hold the whole
    # part of x, and are shifted to where an exponent stands.
    narrow = x == types.float32
    number, digits, least = (np.float32, 23, -127) if narrow else (np.float64, 52, -1023)
    one, least, large = number(1), number(least), number(1.5 * 2.0**digits - least)
    polynomial = tuple(map(number, FLOAT if narrow else DOUBLE))

    def power(x):
        limited = max(x, least)
        shifted = limited + large
        f = limited - (shifted - large)
        p = polynomial[0]
        for term in polynomial[1:]:
            p = p * f + term
        return exponent(shifted) * (p * f + one)

    return power


@njit(nogil=True)
def pack_keys(k, panel):
    """Some keys as columns. Those that are missing are zeros."""
    keys, d = k.shape
    width = panel.size // d
    for x in range(d):
        for j in range(width):
            panel[x * width + j] = widen(k[j, x]) if j < keys else 0


@njit(nogil=True)
def pack_values(v, x, panel, width):
    """The columns of some values from x on, filled up with zeros."""
    keys, d = v.shape
    for j in range(keys):
        for at in range(width):
            panel[j * width + at] = widen(v[j, x + at]) if x + at < d else 0


@njit(nogil=True)
def largest_of(scores, halves):
    """The largest score, by comparing halves with each other."""
    halves[:] = scores
    half = scores.size
    while half > 1:
        half //= 2
        for j in range(half):
            halves[j] = max(halves[j + half], halves[j])
    return halves[0]


@njit(nogil=True)
def weigh(scores, largest, sums, totals, halves):
    """Turn the scores of a query into weights, and return the largest score.

    Where it is larger than all before, what was summed is made smaller.
    """
    larger = largest_of(scores, halves)
    lowest = -np.finfo(scores.dtype).max
    limit = max(largest, lowest)  # so scores of -infinity weigh nothing, even if all are
    if larger > limit:
        kept = power_of_two(largest - larger)
        for x in range(sums.size):
            sums[x] *= kept
        for j in range(totals.size):
            totals[j] *= kept
        limit = largest = larger
    for j in range(scores.size):
        scores[j] = power_of_two(scores[j] - limit)
    for j in range(scores.size):
        totals[j] += scores[j]
    return largest


@njit(nogil=True, error_model="numpy")
def attend(q, keys, values, c, n):
    """Compute at most HEIGHT queries."""
    (rows, d), size = q.shape, c.itemsize
    stride, deepest, block, width = STRIDE // size, DEPTH // size, BLOCK // size, 2 * REGISTER // size
    passes, panels = (d + deepest - 1) // deepest, (d + width - 1) // width
    scale = c.dtype.type(1.4426950408889634) / sqrt(c.dtype.type(d))
    queries, scores = aligned(passes * HEIGHT * stride, c.dtype), aligned(HEIGHT * stride, c.dtype)
    for i in range(HEIGHT):
        for x in range(d):
            place = (x // deepest * HEIGHT + i) * stride + x % deepest
            queries[place] = widen(q[min(i, rows - 1), x]) * scale
    sums, totals = aligned(HEIGHT * panels * width, c.dtype), np.zeros((HEIGHT, block), c.dtype)
    sums[:] = 0
    largest, halves = np.full(HEIGHT, c.dtype.type(-inf)), np.empty(block, c.dtype)
    for j in range(0, n, block):
        count = min(block, n - j)
        for at in range(0, count, width):
            for p in range(passes):
                depth, panel = min(deepest, d - p * deepest), keys[(j + at) * d + p * deepest * width :]
                band = queries[p * HEIGHT * stride :]
                multiply_tile(band, panel, depth, scores.ctypes.data + at * size, STRIDE, p > 0)
        for i in range(HEIGHT):
            row = scores[i * stride : i * stride + block]
            row[count:] = c.dtype.type(-inf)
            of_query = sums[i * panels * width : (i + 1) * panels * width]
            largest[i] = weigh(row, largest[i], of_query, totals[i], halves)
        for p in range(panels):
            panel, to = values[(p * n + j) * width :], sums.ctypes.data + p * width * size
            multiply_tile(scores, panel, count, to, panels * width * size, True)
    for i in range(rows):
        total = totals[i].sum()
        for x in range(d):
            c[i, x] = sums[i * panels * width + x] / total


@njit(parallel=True, nogil=True)
def attend_shared(q, keys, values, c, m, n):
    for tile in prange((m + HEIGHT - 1) // HEIGHT):
        some = slice(tile * HEIGHT, min(m, (tile + 1) * HEIGHT))
        attend(q[some], keys, values, c[some], n)


@njit(parallel=True, nogil=True)
def pack(k, v, keys, values, d, n, width):
    for panel in prange((n + width - 1) // width):
        j, end = panel * width, min(n, (panel + 1) * width)
        pack_keys(k[j:end], keys[j * d : (j + width) * d])
        for x in range(0, d, width):
            pack_values(v[j:end], x, values[(x // width * n + j) * width :], width)


@njit(nogil=True)
def attention(q, k, v, c, m, d, n):
    if m == 0 or d == 0:
        return
    width = 2 * REGISTER // c.itemsize
    whole = (n + width - 1) // width * width
    keys, values = aligned(whole * d, c.dtype), aligned((d + width - 1) // width * width * n, c.dtype)
    pack(k, v, keys, values, d, n, width)
    attend_shared(q, keys, values, c, m, n)
