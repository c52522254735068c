"""What dot is tried with beyond sizes: sums that are exact in any order, where nothing may be missing, and values."""

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

_LENGTHS = (19, 531, 100, 67)
_MORE_LENGTHS = (1, 2, 3, 4, 8, 16, 33, 64, 129, 257, 1025, 4097)
_LONG = (70_001, 140_009, 265_013)
"""Threads share the first one of 8-byte and 4-byte elements, the others of 2 bytes and of 1."""
_MORE_LONG = (4095, 4096, 8191, 65_535, 65_536, 65_537, 131_072, 131_073, 262_144, 262_145, 1_048_577)
"""Around what a work item, a group or a thread takes."""
_BLOCK = 4097
"""A full block of a GPU, and a product more. It is short enough for a simulator."""
_EDGES = (4096, 65_537, 131_072)
"""Those that a quick run tries too: a last chunk of one product, and full ones, behind which the sums of longer vectors
still lie."""


def _at_lengths(draws: dict[str, Draw], problem: Problem, *, exact: bool = False) -> Iterator[Trial]:
    """Ways to draw inputs, by names with a placeholder for the length."""
    lengths = [(n,) for n in (*_LENGTHS, *_MORE_LENGTHS)]
    yield from of_sizes(lengths, draws, exact=exact, thorough=[(n,) for n in _MORE_LENGTHS])


def _exact(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Inputs as `compare` has them: nothing of their sum may be missing, or be counted twice."""
    return list(PROBLEM.draw(shapes[0], dtype, generator))


def _of_both_signs(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """The same with signs, and so with sums of another size, which a source that loses signs gets wrong."""
    if dtype.kind == "i":
        return _exact(shapes, dtype, generator)
    signs = np.array([-1, 1], dtype)
    return [each * generator.choice(signs, len(each)) for each in _exact(shapes, dtype, generator)]


def _all_alike(at: int, shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """The largest products, all but one: 2^17 of them add up to 2^31, more than 32 bits with a sign hold."""
    a, b = (np.full(shape, -128, dtype) for shape in shapes)
    a[at] = 127
    return [a, b]


def _wrapping(problem: Problem) -> Iterator[Trial]:
    for n in (131_073, 265_013, 1_048_577):
        yield Trial(f"{n}", (n,), partial(_all_alike, n - 1), exact=True, thorough=n > 131_073)


def _nothing_missing(problem: Problem) -> Iterator[Trial]:
    draws: dict[str, Draw] = {"{}, positive": _exact, "{}, of both signs": _of_both_signs}
    more = [(n,) for n in (*_MORE_LENGTHS, *_MORE_LONG) if n != _BLOCK]
    yield from of_sizes([(n,) for n in (_BLOCK, *_LONG, *_LENGTHS)], draws, exact=True, thorough=[(_LENGTHS[-1],)])
    yield from of_sizes(more, draws, exact=True, thorough=[(n,) for (n,) in more if n not in _EDGES])


def _one_product(at: int, shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """All digits of one number are the result. In a lower precision some would be missing.

    Its neighbours in the other vector are two others, so that a wrong one shows.
    """
    of = limits(dtype)
    half = 2 ** (of.digits - 1)
    a, b = np.zeros(shapes[0], dtype), np.full(shapes[1], 2, dtype)
    a[at], b[at] = 2 * generator.integers(half // 2, half) + 1, 1
    return [a, b] if generator.random() < 0.5 else [b, a]


def _not_finite(value: float, other: float, at: int, shapes: Shapes, dtype: np.dtype[Any], generator: Any) -> Inputs:
    """One element is not finite, and stands beside a given one."""
    inputs = seeded(shapes, dtype, generator)
    first = int(generator.integers(2))
    inputs[first][at], inputs[1 - first][at] = value, other
    return inputs


def _special(problem: Problem) -> Iterator[Trial]:
    """NaN and infinity at the first place and the last ones, which the sum has to show, and infinities that meet."""
    beside = {"inf": (np.inf, 2.0), "-inf": (-np.inf, 2.0), "nan": (np.nan, 2.0), "inf x 0": (np.inf, 0.0)}
    beside |= {"nan x 0": (np.nan, 0.0), "-inf x -0": (-np.inf, -0.0)}
    for n in (531, 19, 1, 4097, 70_001):
        for at in dict.fromkeys((n - 1, 0, n // 2)):
            for name, values in beside.items():
                quick = (n == 531 and at != n // 2 and name in ("inf", "nan", "inf x 0")) or (n == 19 and at == n - 1)
                draw = partial(_not_finite, *values, at)
                yield Trial(f"{n}, {name} at {at}", (n,), draw, thorough=not quick)
    yield from _at_lengths({"{}, infinities that meet": _meeting, "{}, infinities of one sign": _of_one_sign}, problem)


def _meeting(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """The first product and the last one are opposite infinities. A single one is not."""
    a, b = seeded(shapes, dtype, generator)
    a[0], a[-1], b[0], b[-1] = np.inf, -np.inf, 1, 1
    return [a, b]


def _of_one_sign(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """All infinite products are positive, so the sum is."""
    a, b = seeded(shapes, dtype, generator)
    at = generator.integers(0, len(a), 3)
    a[at] = np.inf * np.sign(b[at])
    return [a, b]


def _zeros(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    return drawn_from((0.0, -0.0), shapes, dtype, generator)


_SMALL = {"float32": -69, "bfloat16": -69, "float64": -532, "float16": -18}
"""Powers of two whose products are subnormal. In float16 no product is, so the inputs are."""
_LARGE = {"float32": 20, "bfloat16": 20, "float64": 500, "float16": 10}
"""Powers of two that turn a subnormal number into a normal one."""


def _subnormal_products(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Whole numbers times a power of two: no digit of any product is lost."""
    inputs = drawn_from([each for each in range(-9, 10) if each], shapes, dtype, generator)
    return [np.ldexp(each, _SMALL[dtype.name]).astype(dtype) for each in inputs]


def _subnormal_inputs(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    a, b = drawn_from([each for each in range(-9, 10) if each], shapes, dtype, generator)
    return [a * dtype.type(limits(dtype).least), np.ldexp(b, _LARGE[dtype.name]).astype(dtype)]


def _some_overflow(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    a, b = seeded(shapes, dtype, generator)
    a[:: max(2, len(a) // 3)] = limits(dtype).largest
    return [a, b]


def _just_below_overflow(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Every sum stays below half of the largest number of its format, in any order."""
    a, b = (np.sign(array) for array in seeded(shapes, dtype, generator))
    most = min(limits(dtype).largest, limits(PROBLEM.sum_dtype(dtype)).largest / (2 * len(b) + 2))
    return [a * dtype.type(most), b]


def _cancelling(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """What is left of large products is small: the second half of them takes the first one away again, but for one.

    Each half adds up to most of what sums hold exactly.
    """
    a, b = _exact(shapes, dtype, generator)
    half = len(a) // 2
    a[half : 2 * half], b[half : 2 * half] = -a[:half], b[:half]
    a[2 * half :] = 0
    a[int(generator.integers(len(a)))] += 1
    return [a, b]


def _scaled(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Products near one of elements of very different magnitude. A block that shares an exponent would lose some."""
    a, b = (np.sign(each) * (1 + np.abs(each)) for each in seeded(shapes, dtype, generator))
    reach = limits(dtype).reach
    exponents = generator.integers(-reach, reach + 1, shapes[0])
    return [np.ldexp(a, exponents).astype(dtype), np.ldexp(b, -exponents).astype(dtype)]


def _exponents(problem: Problem) -> Iterator[Trial]:
    for dtype in NARROW_FLOATS:
        digits = limits(np.dtype(dtype)).digits - 1
        largest = 2 ** (15 - digits) - 2
        for exponent in range(largest + 1):
            quick = exponent in (0, 1, largest // 2, largest)
            draw = partial(_of_exponent, exponent, digits)
            yield Trial(
                f"{dtype}, {exponent}", (2 ** (digits + 1),), draw, exact=True, dtypes=(dtype,), thorough=not quick
            )


def _of_exponent(
    exponent: int, digits: int, shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator
) -> Inputs:
    """Every number that has an exponent, times a small one with the opposite exponent. So all products count."""
    one = 2 ** (14 - digits) - 1
    bits = np.add.outer([0, 2**15], (exponent << digits) + np.arange(2**digits)).reshape(-1)
    a = generator.permutation(bits.astype(np.uint16)).view(dtype)
    b = np.ldexp(generator.integers(1, 4, shapes[1]).astype(np.float64), one - max(exponent, 1)).astype(dtype)
    return [a, b] if generator.random() < 0.5 else [b, a]


def _long(problem: Problem) -> Iterator[Trial]:
    """Vectors that fit no cache, which compare has as well."""
    for dtype in ("float32", "float64", *NARROW_FLOATS, "int8"):
        n = max(2**25, caches.last_level_cache()) // (2 * np.dtype(dtype).itemsize) + 4099
        yield Trial(f"{n}", (n,), _exact, starts=(0, 1), exact=True, dtypes=(dtype,), thorough=dtype != "float32")


_KINDS = (
    Kind(
        "nothing-missing",
        "products that are left out or added twice, by sums that are exact in any order",
        _nothing_missing,
        in_others=8,
    ),
    Kind(
        "wrapping",
        "sums of int8 that stop at the largest number of 32 bits, or fail there, instead of wrapping around",
        _wrapping,
        dtypes=("int8",),
        in_others=None,
    ),
    Kind(
        "places",
        "a product of wrong elements, or with fewer digits, by a single one that is not zero",
        lambda _: at_places(_one_product, exact=True),
    ),
    Kind("special-values", "NaN and infinity that are lost, or left out because of a zero", _special, dtypes=FLOATS),
    Kind(
        "zeros",
        "sums of zeros, which are zero",
        partial(_at_lengths, {"{}": _zeros}, exact=True),
        dtypes=FLOATS,
    ),
    Kind(
        "subnormals",
        "subnormal inputs and products that are flushed to zero",
        partial(_at_lengths, {"{}, products": _subnormal_products, "{}, inputs": _subnormal_inputs}),
        dtypes=FLOATS,
        in_others=2,
    ),
    Kind(
        "overflow",
        "sums that overflow too early",
        partial(_at_lengths, {"{}, some products": _some_overflow, "{}, just below": _just_below_overflow}),
        dtypes=FLOATS,
    ),
    Kind(
        "cancellation",
        "sums far smaller than their terms",
        partial(_at_lengths, {"{}": _cancelling}),
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
