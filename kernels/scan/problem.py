"""scan: c[i] = a[0] + ... + a[i] for a vector of n elements, the inclusive prefix sum.

Each order of additions rounds differently, and each is right. What is right is judged for each prefix by itself, in one
of three ways. u is the unit roundoff and s the smallest
subnormal of the format of sums: float32 for the 16-bit formats, whose elements it holds exactly. Sums of int8 are
exact, modulo 2^32. Element i is a sum of i + 1 terms, so it takes i additions.

1. Exact. All elements are multiples of one power of two, the step. So is every sum of some of them, in any order. It
   lies between the sum of the negative elements and that of the positive ones. If neither exceeds 2^24 steps, or 2^53
   in float64, it has few enough digits to be stored exactly. Then one result is right, and the bound is 0.
2. Elements of mean zero: |error| <= min(i, 8 sqrt(i)) u sum|a| + i s. Rounding errors that are independent and have the
   mean zero add up to at most lambda sqrt(i) u sum|a|, but for a probability that falls as exp(-lambda^2 / 2) (Higham
   and Mary, A new approach to probabilistic rounding error analysis, SIAM J. Sci. Comput. 41, 2019, theorem 3.1). A
   vector has as many results as elements: with lambda = 6, one would expect two misses in 2^26. Their assumption fails
   where one element after another moves a sum the same way. There the same digits are cut off again and again. Hence
   two conditions. This prefix and all before it have a sum within 8 times the root of the sum of their squares. And so
   has every column, if the vector is written by rows of a power of two: these are what lanes and work items add up.
3. All others, the worst case: |error| <= i u sum|a| + i s. Higham, Accuracy and Stability of Numerical Algorithms
   (2nd edition, section 4.2) has i u / (1 - i u) in place of i u, for any order. Jeannerod and Rump (Improved error
   bounds for inner products in floating-point arithmetic, SIAM J. Matrix Anal. Appl. 34, 2013) prove that i u itself is
   enough, however large i is.

NaN and infinity reach all elements behind them, and none before. From where finite sums may overflow, infinity passes,
and NaN, where two of them meet. The reference is computed in float64. A float64 result is judged by a reference that
may err as much, so its bound is doubled.

`draw` makes inputs of the first kind at every n. They are whole numbers from 1 to v of random signs. v is as large as
2^24, or 2^53, allows. So whatever is missing, doubled or late changes all elements behind it, and sums need most digits
of their format. From some 2^25 elements on, no vector without zeros has sums that are exact in any order. So there some
elements are 0, and the generator chooses which.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from py_backends.contract import Array, Ladder, Problem, Reference, Rung

_BEYOND_CACHES = 16_000_057
"""Elements, more than the caches of most machines hold: on the edge of a cache, a time depends on who else uses it. A
prime, so that every vector width and work-group size leaves a ragged end."""

STEPS_ON_CPU = Ladder(
    rungs=(
        Rung("cpp", "lecture", "one chain"),
        Rung("openmp", "two_passes", "two passes"),
        Rung("openmp", "tuned", "tiles"),
        Rung("avx", "tuned", "vector registers"),
    ),
    sizes=(_BEYOND_CACHES,),
    name="CPU",
)

STEPS_ON_GPU = Ladder(
    rungs=(
        Rung("cuda", "lecture", "log steps"),
        Rung("cuda", "work_efficient", "a tree"),
        Rung("cuda", "chained", "one pass in a chain"),
        Rung("cuda", "register_sums", "sums in registers"),
        Rung("cuda", "tuned", "one pass with look-back"),
    ),
    # More than the caches of a large GPU hold.
    sizes=(2**28,),
    name="GPU",
)

_CHUNK = 2**16
"""Elements that the reference takes at a time. Their copies in float64 stay in the cache."""
_COLUMNS, _LEAST_ROWS = 1024, 65
"""The most columns of the second condition, and the fewest rows: of 64 elements, no sum exceeds 8 times their root."""
_LAMBDA = 8.0
_EXACT = {"bfloat16": 2**8, "float16": 2**11}
"""Up to which whole numbers are exact, in formats that do not hold all that sums allow."""


class Scan(Problem):
    name = "scan"
    signature = "(n)->(n)"
    rule = "componentwise"
    rate = "gbytes_per_second"
    dtypes = ("float32", "float64", "float16", "bfloat16", "int8")
    results = Problem.sums
    in_place = False
    steps = (STEPS_ON_CPU, STEPS_ON_GPU)
    in_numpy = "np.cumsum(a, out=b)"
    default_sizes = (_BEYOND_CACHES,)

    def reference(self, inputs: Sequence[Array]) -> Reference:
        (a,) = inputs
        if a.dtype == np.int8:
            return Reference(np.cumsum(a, dtype=np.int64).astype(np.int32))  # which keeps the lower 32 bits
        with np.errstate(all="ignore"):
            return _judged(a, np.finfo(self.result_dtype(a.dtype)), double=a.dtype == np.float64)

    def draw(self, sizes: Sequence[int], dtype: np.dtype[Any], generator: np.random.Generator) -> list[Array]:
        """Inputs whose sums are exact in any order, and show what is missing, doubled or late."""
        (n,) = sizes
        if dtype.kind == "i":
            ends = np.iinfo(dtype)
            return [generator.integers(ends.min, ends.max, n, dtype, endpoint=True)]
        limit = 2.0**53 if self.result_dtype(dtype) == np.float64 else 2.0**24
        largest = _largest(n, limit)
        most = max(1, min(int(largest), _EXACT.get(dtype.name, 2**53)))
        a = generator.integers(1, most, n, np.int64, endpoint=True).astype(dtype)
        a *= generator.choice(np.array([-1, 1], dtype), n)
        if largest < 1:
            a[generator.random(n, np.float32) >= largest] = 0
        return [a]

    def flops(self, sizes: Sequence[int]) -> int:
        (n,) = sizes
        return n

    def least_communication(self, sizes: Sequence[int], dtype: np.dtype[Any], ranks: int) -> float:
        """The last rank that has elements receives what makes its results depend on those of others.

        That is a number of the result's format, or these elements themselves, where they are fewer bytes.
        """
        (n,) = sizes
        of_others = n - math.ceil(n / ranks)
        return float(min(self.result_dtype(dtype).itemsize, of_others * dtype.itemsize))


def _largest(n: int, limit: float) -> float:
    """v, for which those of n random whole numbers up to v that have one sign add up to at most `limit`.

    Half of them have it, and are (v + 1) / 2 in the mean. The sum stays 5% below the limit, and is allowed 6 of its
    standard deviations, each of which is less than v sqrt(n) / 2. Below 1, it is how many of the numbers are not 0.
    """
    if n == 0:
        return limit
    found = (0.95 * limit - n / 4) / (n / 4 + 3 * math.sqrt(n))
    return found if found >= 1 else 0.95 * limit / (n / 2 + 3 * math.sqrt(n))


def _judged(a: Array, precision: Any, *, double: bool) -> Reference:
    """The right answer and its bound, chunk by chunk. Each begins with the sums of what is before it."""
    n = len(a)
    unit_roundoff, least = float(precision.eps) / 2, float(precision.smallest_subnormal)
    largest = float(precision.max)
    of_all = _found(a)
    limit = (2.0**53 - 1 if double else 2.0**24) * of_all.step  # float64 may round 2^53 + 1 to 2^53
    value, bound, overflow = np.empty(n), np.empty(n), np.empty(n, bool)
    before = _Before(looks_random=of_all.columns_look_random)
    for begin in range(0, n, _CHUNK):
        part = slice(begin, min(n, begin + _CHUNK))
        x = a[part].astype(np.float64)
        is_finite = np.isfinite(x)
        finite = np.where(is_finite, x, 0)
        total = before.total + np.cumsum(finite)
        infinite = before.infinite + np.cumsum(np.where(is_finite, 0, x))
        positive = before.positive + np.cumsum(np.maximum(finite, 0))
        negative = before.negative + np.cumsum(np.minimum(finite, 0))
        squares = before.squares + np.cumsum((finite / of_all.scale) ** 2)
        random = np.abs(total) <= _LAMBDA * of_all.scale * np.sqrt(squares)
        random = np.logical_and.accumulate(random) & before.looks_random
        i = np.arange(part.start, part.stop, dtype=np.float64)
        terms = np.where(random, np.minimum(i, _LAMBDA * np.sqrt(i)), i)
        most = np.maximum(positive, -negative)  # of a sum of any of these elements
        error = terms * unit_roundoff * (positive - negative) + i * least
        exact = (most <= min(limit, largest)) & (of_all.step >= least)
        value[part] = total + infinite
        bound[part] = np.where(exact, 0, 2 * error if double else error)
        # Where finite sums overflow, their order decides whether an infinite one meets its opposite.
        overflow[part] = ~np.isnan(infinite) & ~((1 + i * unit_roundoff) * most <= largest)
        before = _Before(*(each[-1] for each in (total, infinite, positive, negative, squares, random)))
    return Reference(value, bound, overflow)


class _Before(NamedTuple):
    """Sums of what is before a chunk: of finite elements, of others, of those of each sign, of scaled squares."""

    total: float = 0.0
    infinite: float = 0.0
    positive: float = 0.0
    negative: float = 0.0
    squares: float = 0.0
    looks_random: bool = True


class _Found(NamedTuple):
    """What the reference has to know of all finite elements.

    step: a power of two, of which all are multiples; infinity for zeros.
    scale: a power of two near the largest of them. Squares of numbers themselves may leave the format.
    columns_look_random: whether the sum of each column is within 8 times the root of the sum of its squares.
    """

    step: float
    scale: float
    columns_look_random: bool


def _found(a: Array) -> _Found:
    columns = _COLUMNS
    while columns > 1 and len(a) // columns < _LEAST_ROWS:
        columns //= 2
    largest = max((float(np.abs(x).max()) for x in _finite(a)), default=0.0)
    step, scale = math.inf, 2.0 ** max(-1000, math.frexp(largest)[1] - 1)
    sums, squares = np.zeros(columns), np.zeros(columns)
    for x in _finite(a):
        step = _step(x, step)
        rows = x[: len(x) // columns * columns].reshape(-1, columns) / scale
        sums += rows.sum(axis=0)
        squares += np.einsum("ij,ij->j", rows, rows)
    return _Found(step, scale, bool((np.abs(sums) <= _LAMBDA * np.sqrt(squares)).all()))


def _finite(a: Array) -> Iterator[Array]:
    """Chunks in float64, with zeros for what is not finite."""
    for begin in range(0, len(a), _CHUNK):
        x = a[begin : begin + _CHUNK].astype(np.float64)
        yield np.where(np.isfinite(x), x, 0)


def _step(x: Array, most: float) -> float:
    """The largest power of two, up to a given one, of which all elements are multiples."""
    if math.isfinite(most) and (np.rint(x / most) * most == x).all():
        return most
    digits, exponents = np.frexp(x[x != 0])
    whole = np.ldexp(digits, 53).astype(np.int64)
    return float(np.ldexp((whole & -whole).astype(np.float64), exponents - 53).min(initial=most))


PROBLEM = Scan()
