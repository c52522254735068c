"""What vecadd is tried with beyond sizes: pairs of values, in every lane and at the ragged end. Every bit counts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from py_backends.conformance.formats import FLOATS, NARROW_FLOATS, limits
from py_backends.conformance.trials import Draw, Inputs, Kind, OfKernel, Shapes, Trial, Values, named, of_sizes, seeded
from py_backends.contract import Problem
from py_backends.system import caches

_LENGTHS = (19, 67, 531, 100)
_MORE_LENGTHS = (1, 2, 3, 4, 8, 16, 33, 64, 129, 257, 1025, 4097, 70_001)


def _at_lengths(draws: dict[str, Draw], problem: Problem) -> Iterator[Trial]:
    """Ways to draw inputs, by names with a placeholder for the length."""
    for n in (*_LENGTHS, *_MORE_LENGTHS):
        yield from of_sizes([(n,)], draws, thorough=[(more,) for more in _MORE_LENGTHS])


def _pairs(values: Values, shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Every value with every other: all pairs, repeated, from a place that the seed chooses."""
    each = np.array(values(dtype), dtype)
    pairs = np.stack(np.meshgrid(each, each)).reshape(2, -1)
    order = generator.permutation(pairs.shape[1])
    return [np.resize(ones[order], shapes[0]) for ones in pairs]


def _special(dtype: np.dtype[Any]) -> list[float]:
    of = limits(dtype)
    return [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, of.largest, -of.largest, of.least]


def _subnormal(dtype: np.dtype[Any]) -> list[float]:
    least, normal = limits(dtype).least, limits(dtype).normal
    return [0.0, least, -least, 3 * least, normal - least, least - normal, normal, -normal, normal + least, 2 * normal]


def _ties(dtype: np.dtype[Any]) -> list[float]:
    """Sums of these lie half-way between two numbers, or next to it."""
    step = limits(dtype).step
    ones = [1.0, 1 + step, 1 + 2 * step, 1 + 3 * step, 2 - step]
    halves = [step / 2, step / 2 * (1 + step), step / 2 * (1 - step / 2), 1.5 * step, step / 4]
    return [*ones, *halves, *(-value for value in (*ones, *halves))]


def _overflowing(dtype: np.dtype[Any]) -> list[float]:
    largest = limits(dtype).largest
    half_step = largest * limits(dtype).step / 4  # about half of the last digit of the largest number
    return [largest, -largest, largest / 2, half_step, -half_step, 1.5 * half_step, half_step / 2, 0.0]


def _precise(dtype: np.dtype[Any]) -> list[float]:
    """Whole numbers that the next lower precision would round. Their sums are exact."""
    first = 2 ** limits(dtype).lower_digits
    return [float(first + odd) for odd in (1, 3, 5, 77, 101, 2**10 - 1) if odd < first]


def _opposite(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    (a, _) = seeded(shapes, dtype, generator)
    near = np.nextafter(a, dtype.type(np.inf))
    return [a, -np.where(generator.random(a.shape) < 0.5, near, a)]


def _numbered(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Every sum tells its place, since no other place has the same.

    If a format has too few whole numbers, they start again, not at a multiple of a vector's width.
    """
    index = (np.arange(shapes[0][0]) % (2 ** limits(dtype).digits // 3)).astype(dtype)
    return [index, index[::-1] * dtype.type(2) if generator.random() < 0.5 else index * dtype.type(2)]


def _every_number(plus: str, shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Every number that 16 bits can represent, each with another one, with itself or with -0."""
    every = np.arange(2**16, dtype=np.uint16).view(dtype)
    others = {"another": generator.permutation(every), "itself": every.copy(), "-0": np.full(shapes[1], -0.0, dtype)}
    return [every, others[plus]]


def _all_of_16_bits(problem: Problem) -> Iterator[Trial]:
    yield from of_sizes([(2**16,)], {f"plus {one}": partial(_every_number, one) for one in ("another", "itself", "-0")})


def _one_hot(at: int, shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    a, b = (np.zeros(shape, dtype) for shape in shapes)
    a[at], b[-1 - at] = 1, 2
    return [a, b]


def _indices(problem: Problem) -> Iterator[Trial]:
    yield from _at_lengths({"numbered, {}": _numbered}, problem)
    for n, at in ((67, 0), (67, 63), (67, 64), (67, 66), (531, 511), (531, 512), (531, 530), (4097, 4096)):
        yield Trial(f"one at {at} of {n}", (n,), partial(_one_hot, at))


def _last_is(value: float, shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """The last element of one of the inputs is a value."""
    a, b = seeded(shapes, dtype, generator)
    (a if generator.random() < 0.5 else b)[-1] = value
    return [a, b]


def _scaled(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Neighbours of very different magnitude. A block that shares one exponent would lose the small ones."""
    arrays = seeded(shapes, dtype, generator)
    exponents = generator.integers(-limits(dtype).reach, limits(dtype).reach + 1, shapes[0])
    return [np.ldexp(array, exponents + by).astype(dtype) for by, array in enumerate(arrays)]


def _beyond_the_caches(problem: Problem) -> Iterator[Trial]:
    """Vectors that fit no cache, which some sources write past the caches."""
    for dtypes, size in ((("float32",), 4), (("float64",), 8), (NARROW_FLOATS, 2)):
        n = max(2**25, caches.last_level_cache()) // (3 * size) + 4099
        yield Trial(named((n,)), (n,), _cheap, starts=(0, 0, 1), dtypes=dtypes, thorough=size != 4)


def _cheap(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    drawn = generator.standard_normal(2**16).astype(dtype)
    a = np.resize(drawn, shapes[0])
    return [a, a[::-1].copy()]


def _kind(name: str, protects: str, draw: Draw) -> Kind[Trial]:
    """The trials of one way to draw inputs, at all lengths."""
    return Kind(name, protects, partial(_at_lengths, {"{}": draw}), dtypes=FLOATS)


def _kind_of_pairs(name: str, protects: str, values: Values) -> Kind[Trial]:
    return _kind(name, protects, partial(_pairs, values))


_KINDS = (
    Kind("indices", "an element taken from the wrong place", _indices),
    _kind_of_pairs("special-values", "sums of zeros, infinities, NaN and the largest numbers", _special),
    _kind_of_pairs("signed-zeros", "-0 + -0, which is -0", lambda _: [0.0, -0.0]),
    _kind_of_pairs("subnormals", "subnormal numbers that are flushed to zero", _subnormal),
    _kind_of_pairs("rounding", "sums half-way between two numbers, which round to even", _ties),
    _kind_of_pairs("precision", "numbers with more digits than a lower precision has", _precise),
    _kind("cancellation", "differences of neighbouring numbers, which are exact", _opposite),
    _kind_of_pairs("overflow", "sums at and beyond the largest number", _overflowing),
    _kind("scales", "elements of very different magnitude, of which small ones are lost", _scaled),
    Kind(
        "not-finite-at-the-edge",
        "NaN and infinity in the last element",
        partial(
            _at_lengths,
            {f"{value} as the last of {{}}": partial(_last_is, value) for value in (np.nan, np.inf, -np.inf)},
        ),
    ),
    Kind(
        "every-number",
        "numbers of 16 bits that are widened or narrowed wrongly: all of them",
        _all_of_16_bits,
        dtypes=NARROW_FLOATS,
        in_others=None,
    ),
    Kind(
        "beyond-the-caches",
        "non-temporal stores, which begin and end at full cache lines",
        _beyond_the_caches,
        lecture=False,
        emulated=False,
    ),
)
TRIALS = OfKernel.of_vectors(_KINDS)
