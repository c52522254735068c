"""What scan is tried with beyond sizes: sums that are exact in any order, where every carry shows, and values."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from py_backends.conformance.formats import FLOATS, NARROW_FLOATS, limits
from py_backends.conformance.trials import (
    Draw,
    Inputs,
    Kind,
    OfKernel,
    Shapes,
    Trial,
    at_places,
    drawn_from,
    of_sizes,
    seeded,
)
from py_backends.contract import Problem
from py_backends.system import caches

from .problem import PROBLEM

_LENGTHS = (531, 1025, 19, 67)
_MORE_LENGTHS = (1, 2, 3, 4, 8, 16, 33, 64, 129, 257, 4097)
_LONG = (70_001, 140_009, 265_013, 530_021, 1_060_013)
"""Work items share the first one. Threads share the next ones: of 8 bytes an element, then of 4, 2 and 1."""
_MORE_LONG = (4095, 4096, 8191, 16_384, 16_385, 65_535, 65_536, 65_537, 131_072, 131_073, 262_145, 1_048_577)
"""Around what a work item, a group or a thread takes."""
_BLOCK = 4097
"""A full block of a GPU, and an element more. It is short enough for a simulator."""
_EDGES = (4096, 16_385, 65_537, 131_072)
"""Those that a quick run tries too: a last tile of one element, and full ones, behind which the sums of longer vectors
still lie."""
_OF_GROUPS = 65_537 + 255
"""More groups of 256 elements than one group of 256 work items has: their sums come in several turns."""


def _at_lengths(draws: dict[str, Draw], problem: Problem, *, exact: bool = False) -> Iterator[Trial]:
    """Ways to draw inputs, by names with a placeholder for the length."""
    lengths = [(n,) for n in (*_LENGTHS, *_MORE_LENGTHS)]
    yield from of_sizes(lengths, draws, exact=exact, thorough=[(n,) for n in _MORE_LENGTHS])


def _exact(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Inputs as `compare` has them: nothing may be missing, doubled or late."""
    return list(PROBLEM.draw(shapes[0], dtype, generator))


def _positive(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """The same without signs, and half as large: sums grow from element to element, and need all digits."""
    if dtype.kind == "i":
        return [generator.integers(1, 128, shapes[0], dtype)]
    (a,) = _exact(shapes, dtype, generator)
    return [np.floor((np.abs(a.astype(np.float64)) + 1) / 2).astype(dtype)]


def _carries(problem: Problem) -> Iterator[Trial]:
    draws: dict[str, Draw] = {"{}, of both signs": _exact, "{}, positive": _positive}
    more = [(n,) for n in (*_MORE_LENGTHS, *_MORE_LONG) if n != _BLOCK]
    first = [(n,) for n in (_BLOCK, *_LENGTHS, _OF_GROUPS, *_LONG)]
    yield from of_sizes(first, draws, exact=True, thorough=[(_LENGTHS[-1],), (_OF_GROUPS,), (_LONG[0],)])
    yield from of_sizes(more, draws, exact=True, thorough=[(n,) for (n,) in more if n not in _EDGES])


def _all_alike(of: int, shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    return [np.full(shapes[0], of, dtype)]


def _wrapping(problem: Problem) -> Iterator[Trial]:
    """Of 2^24 numbers -128, the sum is -2^31, and the next one is more than 32 bits with a sign hold."""
    for of, n in ((-128, 2**24 + 4099), (127, 2**24 + 2**18 + 1)):
        yield Trial(f"{n} of {of}", (n,), partial(_all_alike, of), exact=True, thorough=of > 0)


def _one_element(at: int, shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """All digits of one number are the result, from its place on. In a lower precision some would be missing."""
    half = 2 ** (limits(dtype).digits - 1)
    a = np.zeros(shapes[0], dtype)
    a[at] = 2 * generator.integers(half // 2, half) + 1
    return [a]


def _not_finite(value: float, at: int, shapes: Shapes, dtype: np.dtype[Any], generator: Any) -> Inputs:
    inputs = seeded(shapes, dtype, generator)
    inputs[0][at] = value
    return inputs


def _special(problem: Problem) -> Iterator[Trial]:
    """NaN and infinity at the first place, within and at the last ones: they reach all behind them, and none before."""
    values = {"inf": np.inf, "-inf": -np.inf, "nan": np.nan}
    for n in (531, 19, 1, 4097, 70_001):
        for at in dict.fromkeys((n // 2, n - 1, 0, n // 3)):
            for name, value in values.items():
                quick = (n == 531 and name != "-inf") or (n in (19, 4097) and at == n // 2)
                yield Trial(f"{n}, {name} at {at}", (n,), partial(_not_finite, value, at), thorough=not quick)
    yield from _at_lengths({"{}, infinities that meet": _meeting}, problem)


def _meeting(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Infinity from a third on, and NaN from where the opposite infinity comes, at two thirds."""
    (a,) = seeded(shapes, dtype, generator)
    a[len(a) // 3], a[2 * len(a) // 3] = np.inf, -np.inf
    return [a]


def _zeros(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    return drawn_from((0.0, -0.0), shapes, dtype, generator)


def _subnormal(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Multiples of the smallest number. In float32 and float64 their sums are subnormal too."""
    (a,) = drawn_from([each for each in range(-9, 10) if each], shapes, dtype, generator)
    return [a * dtype.type(limits(dtype).least)]


def _some_overflow(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    (a,) = seeded(shapes, dtype, generator)
    a[len(a) // 2 :: max(2, len(a) // 5)] = limits(dtype).largest
    return [a]


def _just_below_overflow(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Every sum stays below half of the largest number of its format, in any order."""
    (n,) = shapes[0]
    most = min(limits(dtype).largest, limits(PROBLEM.sum_dtype(dtype)).largest / (2 * n + 2))
    return [np.full(n, most, dtype)]


def _cancelling(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """The second half takes the first one away again, but for a 1 in the middle, which is what is left."""
    (a,) = _positive(shapes, dtype, generator)
    half = (len(a) - 1) // 2
    a[half] = 1
    a[half + 1 :] = 0
    a[half + 1 : 2 * half + 1] = -a[:half]
    return [a]


def _scaled(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Elements that grow from the smallest to the largest, so that each prefix is about as large as its last one."""
    (a,) = (np.sign(each) * (1 + np.abs(each)) for each in seeded(shapes, dtype, generator))
    reach = limits(dtype).reach
    exponents = np.linspace(-reach, reach, len(a)).astype(np.int32)
    return [np.ldexp(a, exponents).astype(dtype)]


def _exponents(problem: Problem) -> Iterator[Trial]:
    for dtype in NARROW_FLOATS:
        digits = limits(np.dtype(dtype)).digits - 1
        largest = 2 ** (15 - digits) - 2
        for exponent in range(largest + 1):
            quick = exponent in (0, 1, largest // 2, largest)
            draw, sizes = partial(_of_exponent, exponent, digits), (2 ** (digits + 1),)
            exact = dtype == "float16" or exponent <= largest - digits  # else sums overflow a float
            yield Trial(f"{dtype}, {exponent}", sizes, draw, exact, dtypes=(dtype,), thorough=not quick)


def _of_exponent(
    exponent: int, digits: int, shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator
) -> Inputs:
    """Every number that has an exponent. All are multiples of one power of two, and few times as large."""
    bits = np.add.outer([0, 2**15], (exponent << digits) + np.arange(2**digits)).reshape(-1)
    return [generator.permutation(bits.astype(np.uint16)).view(dtype)]


def _long(problem: Problem) -> Iterator[Trial]:
    """Vectors that fit no cache, which compare has as well."""
    for dtype in ("float32", "float64", *NARROW_FLOATS, "int8"):
        n = max(2**25, caches.last_level_cache()) // (2 * np.dtype(dtype).itemsize) + 4099
        yield Trial(f"{n}", (n,), _exact, starts=(0, 1), exact=True, dtypes=(dtype,), thorough=dtype != "float32")


_KINDS = (
    Kind(
        "carries",
        "a carry that is late, missing or doubled, and elements left out, by sums that are exact in any order",
        _carries,
        in_others=6,
    ),
    Kind(
        "wrapping",
        "sums of int8 that stop at the largest number of 32 bits, or fail there, instead of wrapping around",
        _wrapping,
        emulated=False,
        dtypes=("int8",),
        in_others=None,
    ),
    Kind(
        "places",
        "an element that counts from a wrong place on, or with fewer digits, by a single one",
        lambda _: at_places(_one_element, exact=True),
    ),
    Kind("special-values", "NaN and infinity that are lost, or reach elements before them", _special, dtypes=FLOATS),
    Kind("zeros", "sums of zeros, which are zero", partial(_at_lengths, {"{}": _zeros}, exact=True), dtypes=FLOATS),
    Kind(
        "subnormals",
        "subnormal numbers that are flushed to zero",
        partial(_at_lengths, {"{}": _subnormal}, exact=True),
        dtypes=FLOATS,
        in_others=2,
    ),
    Kind(
        "overflow",
        "sums that overflow too early",
        partial(_at_lengths, {"{}, some elements": _some_overflow, "{}, just below": _just_below_overflow}),
        dtypes=FLOATS,
    ),
    Kind(
        "cancellation",
        "sums far smaller than their terms",
        partial(_at_lengths, {"{}": _cancelling}, exact=True),
        dtypes=FLOATS,
    ),
    Kind(
        "scales",
        "elements of very different magnitude, of which small ones are lost",
        partial(_at_lengths, {"{}": _scaled}),
        dtypes=FLOATS,
    ),
    Kind(
        "every-number",
        "numbers of 16 bits that are widened wrongly: all of them, by their exponents",
        _exponents,
        dtypes=NARROW_FLOATS,
        in_others=None,
    ),
    Kind(
        "beyond-the-caches",
        "what is done only for vectors that fit no cache",
        _long,
        lecture=False,
        emulated=False,
    ),
)
TRIALS = OfKernel.of_vectors(_KINDS)
