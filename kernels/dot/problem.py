"""dot: c = the sum of a[i] b[i] for vectors of n elements.

Each order of summation rounds differently, and each is right. What is right is judged in one of three ways, which the
reference chooses by the products themselves. u is the unit roundoff and s the smallest subnormal of the format of sums:
float32 for the 16-bit formats, whose products it holds exactly. Sums of int8 are exact, modulo 2^32.

1. Exact. All elements of a are multiples of one power of two, and all of b of another. So every partial sum, in any
   order, fused or not, is a multiple of their product, the step. It lies between the sum of the negative products and
   that of the positive ones. If neither exceeds 2^24 steps, or 2^53 in float64, it has few enough digits to be stored
   exactly. Then one result is right. A bound of 0 is what sees a missing element among millions: the bounds below
   exceed most single products.
2. Products of mean zero: |error| <= min(n, 6 sqrt(n)) u sum|a b| + n s. Rounding errors that are independent and have
   the mean zero add up to at most lambda sqrt(n) u sum|a b|, but for a probability that falls as exp(-lambda^2 / 2)
   (Higham and Mary, A new approach to probabilistic rounding error analysis, SIAM J. Sci. Comput. 41, 2019, theorem
   3.1). Their assumption fails where one product after another moves the sum the same way: there the same digits
   are cut off again and again. Hence the condition that up to 64 blocks of the products each have a sum within 8 times
   the root of the sum of their squares, of which random signs make it exceed 1 time in 10^14. In blocks of fewer
   than 65 products the sum is always within that, so blocks are longer.
3. All others, the worst case: |error| <= n u sum|a b| + n s. Higham, Accuracy and Stability of Numerical Algorithms
   (2nd edition, section 3.1) has n u / (1 - n u) in place of n u, for any order, fused or not. Jeannerod and Rump
   (Improved error bounds for inner products in floating-point arithmetic, SIAM J. Matrix Anal. Appl. 34, 2013) prove
   that n u itself is enough, however large n is. All that they need of an addition x + y is that its error is at most
   u |x + y|, |x| and |y|. A fused addition of a product y errs as little.

A product may lose one subnormal to underflow, which makes n s; sums lose none. The reference is computed in float64. A
float64 result is judged by a reference that may err as much, so its bound is doubled.

`draw` makes inputs of the first kind at every n.

- Whole numbers from 1 to v. Products are positive, so whatever is missing or counted twice changes the sum. v is as
  large as 2^24, or 2^53, allows. So sums need all digits of their format, and a narrower sum is wrong.
- Where that leaves only v = 1, and all elements would be alike: 1 and -1, with products of both signs. Neither sign
  has more than 2^24 of them, which is enough up to almost 2^25 elements. Signs come in runs of some thousand products:
  what is missing at one place mostly has one sign, and shows.
- Beyond, no inputs without zeros have a sum that is exact in any order: of more than 2^25 products that are not 0, one
  sign has more than 2^24. So elements are 0 but for a class of a hash of their places. The generator chooses the class,
  so another seed shows another one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from py_backends.contract import Array, Ladder, Problem, Reference, Rung

_BEYOND_CACHES = 16_000_057
"""Elements, more than the caches of most machines hold: on the edge of a cache, a time depends on who else uses it. A
prime, so that every vector width and work-group size leaves a ragged end."""

STEPS_ON_CPU = Ladder(
    rungs=(
        Rung("cpp", "lecture", "one sum"),
        Rung("cpp", "several_sums", "several sums"),
        Rung("avx", "vectors", "vectors"),
        Rung("avx", "tuned", "threads"),
    ),
    sizes=(_BEYOND_CACHES,),
    name="CPU",
)

_CHUNK = 2**16
"""Elements that the reference takes at a time. Their copies in float64 stay in the cache."""
_MOST_BLOCKS, _LEAST_BLOCK = 64, 256
"""Blocks of products that are judged for their mean, and the fewest products of one: many more than 64."""
_SMALL_SQUARE = 1e-250
"""Below, a sum of squares may have lost some of them."""
_RUN = 4099
"""About how many products of one sign stand in a row."""
_EXACT = {"bfloat16": 2**8, "float16": 2**11}
"""Up to which whole numbers are exact, in formats that do not hold all that sums allow."""
_HASH = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio: the upper bits of its multiples are spread evenly (Knuth, The Art of Computer
Programming, volume 3, section 6.4)."""


class DotProduct(Problem):
    name = "dot"
    signature = "(n),(n)->()"
    rule = "componentwise"
    rate = "gbytes_per_second"
    dtypes = ("float32", "float64", "float16", "bfloat16", "int8")
    results = Problem.sums
    in_place = False
    steps = (STEPS_ON_CPU,)
    in_numpy = "np.dot(a, b, out=c)"
    default_sizes = (_BEYOND_CACHES,)

    def reference(self, inputs: Sequence[Array]) -> Reference:
        a, b = inputs
        if a.dtype == np.int8:
            return _of_integers(a, b)
        n, double = len(a), a.dtype == np.float64
        precision = np.finfo(self.result_dtype(a.dtype))
        unit_roundoff, largest = float(precision.eps) / 2, float(precision.max)
        least = float(precision.smallest_subnormal)
        with np.errstate(all="ignore"):
            found = _summed(a, b)
            if found.exact(2.0**53 - 1 if double else 2.0**24, least, largest):  # float64 may round 2^53 + 1 to 2^53
                return _judged(found.positive + found.negative, 0.0)
            magnitude = found.positive - found.negative
            terms = min(n, 6 * math.sqrt(n)) if found.mean_is_zero else float(n)
            bound = (2 if double else 1) * (terms * unit_roundoff * magnitude + n * least)
            # Where finite products overflow, the order of summation decides whether an infinite one meets its opposite.
            overflow = not math.isnan(found.infinite) and not (1 + n * unit_roundoff) * magnitude <= largest
            return _judged(found.value + found.infinite, bound, overflow)

    def draw(self, sizes: Sequence[int], dtype: np.dtype[Any], generator: np.random.Generator) -> list[Array]:
        """Inputs whose sum is exact in any order, and shows what is missing."""
        (n,) = sizes
        if dtype.kind == "i":
            ends = np.iinfo(dtype)
            return [generator.integers(ends.min, ends.max, n, dtype, endpoint=True) for _ in range(2)]
        limit = 2.0**53 if self.result_dtype(dtype) == np.float64 else 2.0**24
        most = min(_largest_factor(n, limit), _EXACT.get(dtype.name, 2**53))
        if most >= 2:
            return [generator.integers(1, most, n, "int32", endpoint=True).astype(dtype) for _ in range(2)]
        return _of_both_signs(n, limit, dtype, generator)

    def flops(self, sizes: Sequence[int]) -> int:
        (n,) = sizes
        return 2 * n

    def least_communication(self, sizes: Sequence[int], dtype: np.dtype[Any], ranks: int) -> float:
        """The owner of the result receives what makes it depend on elements of others.

        That is a number of the result's format, or these elements themselves, where they are fewer bytes. No algorithm
        needs more: in a chain or a tree of messages each rank receives one number at a time, and some only one. The
        same is the lower bound of a reduction of one number, but for its latency, in Chan, Heimlich, Purkayastha and
        van de Geijn, Collective communication: theory, practice, and experience, Concurrency and Computation 19, 2007.
        """
        (n,) = sizes
        of_others = n - math.ceil(n / ranks)
        return float(min(self.result_dtype(dtype).itemsize, 2 * of_others * dtype.itemsize))


@dataclass
class _Sums:
    """What the reference has to know of the products of a and b, which it sees chunk by chunk.

    positive, negative: the sums of finite products of each sign.
    value: the sum of finite products, rounded less often.
    infinite: the sum of the others: infinity, NaN, or 0 where there are none.
    steps: powers of two, of which all finite elements of a, and of b, are multiples; infinity for zeros.
    """

    positive: float
    negative: float
    value: float
    infinite: float
    steps: tuple[float, float]
    mean_is_zero: bool

    def exact(self, limit: float, least: float, largest: float) -> bool:
        """Whether every partial sum of finite products is exact in a format, and every product is finite.

        limit: up to which whole numbers are exact.
        least, largest: the smallest and the largest positive number of the format.
        """
        step = 1.0 if math.inf in self.steps else self.steps[0] * self.steps[1]
        most = max(self.positive, -self.negative)
        return self.infinite == 0 and step >= least and most <= largest and most <= limit * step


def _summed(a: Array, b: Array) -> _Sums:
    sums: list[tuple[float, float, float]] = []
    infinite, steps, mean_is_zero = 0.0, (math.inf, math.inf), len(a) >= _LEAST_BLOCK
    for block in _parts(0, len(a), max(1, min(len(a) // _LEAST_BLOCK, _MOST_BLOCKS))):
        total, roots = 0.0, [0.0]
        for part in _parts(block.start, block.stop, -(-(block.stop - block.start) // _CHUNK)):
            x, y = (each[part].astype(np.float64) for each in (a, b))
            products = x * y
            if not math.isfinite(products.sum()):
                finite = np.isfinite(x) & np.isfinite(y)
                infinite += float(products[~finite].sum())
                x, y, products = x[finite], y[finite], products[finite]
            steps = (_step(x, steps[0]), _step(y, steps[1]))
            value = float(products.sum())
            roots.append(_root_of_squares(products))
            np.maximum(products, 0, out=x)
            np.minimum(products, 0, out=y)
            sums.append((float(x.sum()), float(y.sum()), value))
            total += value
        mean_is_zero = mean_is_zero and abs(total) <= 8 * math.hypot(*roots)
    positive, negative, value = (_added([each[at] for each in sums]) for at in range(3))
    return _Sums(positive, negative, value, infinite, steps, mean_is_zero)


def _parts(begin: int, end: int, count: int) -> Iterator[slice]:
    """So many parts of almost equal length."""
    edges = [begin + (end - begin) * at // max(1, count) for at in range(count + 1)]
    return (slice(*each) for each in pairwise(edges))


def _step(x: Array, most: float) -> float:
    """The largest power of two, up to a given one, of which all elements are multiples."""
    if math.isfinite(most) and (np.rint(x / most) * most == x).all():
        return most
    digits, exponents = np.frexp(x[x != 0])
    whole = np.ldexp(digits, 53).astype(np.int64)
    return float(np.ldexp((whole & -whole).astype(np.float64), exponents - 53).min(initial=most))


def _root_of_squares(x: Array) -> float:
    """The square root of the sum of squares, which themselves may be too large or too small for a float64."""
    square = float(np.einsum("i,i", x, x))
    if _SMALL_SQUARE < square < math.inf:
        return math.sqrt(square)
    largest = float(np.abs(x).max(initial=0.0))
    if not 0 < largest < math.inf:
        return largest
    x = x / largest
    return largest * math.sqrt(float(np.einsum("i,i", x, x)))


def _added(parts: Sequence[float]) -> float:
    """Their sum, rounded once; infinite or NaN where it is too large for a float64."""
    try:
        return math.fsum(parts)
    except (OverflowError, ValueError):
        return float(np.sum(parts))


def _judged(value: float, bound: float, overflow: bool | None = None) -> Reference:
    return Reference(np.array(value), np.array(bound), None if overflow is None else np.array(overflow))


def _of_integers(a: Array, b: Array) -> Reference:
    parts = _parts(0, len(a), -(-len(a) // _CHUNK))
    # 128 x 128 fits into 16 bits, and the whole sum into 64.
    exact = sum(int(np.multiply(a[part], b[part], dtype=np.int16).sum(dtype=np.int64)) for part in parts)
    return _judged(float((exact + 2**31) % 2**32 - 2**31), 0.0)


def _largest_factor(n: int, limit: float) -> int:
    """The largest v for which n products of random whole numbers from 1 to v add up to at most `limit`.

    They are ((v + 1) / 2)^2 in the mean, and their standard deviation is less than that. The sum stays 5% below the
    limit, and is allowed 6 of its standard deviations.
    """
    return int(2 * math.sqrt(0.95 * limit / (n + 6 * math.sqrt(n) + 1)) - 1)


def _of_both_signs(n: int, limit: float, dtype: np.dtype[Any], generator: np.random.Generator) -> list[Array]:
    """Elements of 1 and -1, and where there are too many of these, of 0. No sign has more than `limit` products."""
    classes = math.ceil(n / (0.95 * 2 * limit))
    a, b = np.zeros(n, dtype), np.zeros(n, dtype)
    places = _places_of_class(n, int(generator.integers(classes)), classes) if classes > 1 else slice(None)
    signs = _signs(len(a[places]), limit, generator)
    factors = generator.choice(np.array([-1, 1], np.int8), len(signs))
    a[places], b[places] = factors, factors * signs
    return [a, b]


def _places_of_class(n: int, which: int, classes: int) -> Array:
    """Which places are of a class of their hash."""
    chosen = np.empty(n, bool)
    for part in _parts(0, n, -(-n // _CHUNK)):
        places = np.arange(part.start, part.stop, dtype=np.uint64)
        chosen[part] = (places * np.uint64(_HASH) >> np.uint64(32)) % np.uint64(classes) == which
    return chosen


def _signs(count: int, limit: float, generator: np.random.Generator) -> Array:
    """Signs of products in runs, which come in pairs, one of each sign, in a random order.

    60% are positive, or `limit` of them. So the sum is not 0, as that of a kernel that adds nothing would be.
    """
    pairs = max(1, count // (2 * _RUN))
    ends = np.arange(pairs + 1) * count // pairs
    positive = np.diff(np.floor(ends * min(0.6, limit / count)).astype(np.int64))
    lengths = np.stack([positive, np.diff(ends) - positive], axis=1)
    signs = np.tile(np.array([1, -1], np.int8), (pairs, 1))
    swapped = generator.random(pairs) < 0.5
    lengths[swapped], signs[swapped] = lengths[swapped, ::-1], signs[swapped, ::-1]
    return np.repeat(signs, lengths.reshape(-1))


PROBLEM = DotProduct()
