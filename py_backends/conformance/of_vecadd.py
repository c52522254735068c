"""What vecadd is tried with beyond sizes: pairs of values, in every lane and at the ragged end. Every bit counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from py_backends import caches
from py_backends.conformance.trials import Draw, Inputs, Kind, Trial, Values, named, seeded
from py_backends.contract import Array, Problem

_LENGTHS = (19, 67, 531, 100)
_MORE_LENGTHS = (1, 2, 3, 4, 8, 16, 33, 64, 129, 257, 1025, 4097, 70_001)


def _pairs(values: Values, others: Values | None = None) -> Draw:
    """Every value with every other: all pairs again and again, from a place that the seed chooses."""

    def draw(problem: Problem, sizes: Sequence[int], dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
        first, second = np.array(values(dtype), dtype), np.array((others or values)(dtype), dtype)
        a, b = (grid.reshape(-1) for grid in np.meshgrid(first, second))
        order = generator.permutation(a.size)
        return [np.resize(a[order], sizes), np.resize(b[order], sizes)]

    return draw


def _at_lengths(draw: Draw) -> Callable[[Problem], Iterator[Trial]]:
    def trials(problem: Problem) -> Iterator[Trial]:
        for n in (*_LENGTHS, *_MORE_LENGTHS):
            yield Trial(f"{n}", (n,), draw, thorough=n in _MORE_LENGTHS)

    return trials


def _limits(dtype: np.dtype[Any]) -> Any:
    return np.finfo(dtype)


def _special(dtype: np.dtype[Any]) -> list[float]:
    limits = _limits(dtype)
    return [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, limits.max, -limits.max, limits.smallest_subnormal]


def _subnormal(dtype: np.dtype[Any]) -> list[float]:
    limits = _limits(dtype)
    least, normal = float(limits.smallest_subnormal), float(limits.tiny)
    return [0.0, least, -least, 3 * least, normal - least, least - normal, normal, -normal, normal + least, 2 * normal]


def _ties(dtype: np.dtype[Any]) -> list[float]:
    """Sums of these lie half-way between two numbers, or next to it."""
    step = float(_limits(dtype).eps)
    ones = [1.0, 1 + step, 1 + 2 * step, 1 + 3 * step, 2 - step]
    halves = [step / 2, step / 2 * (1 + step), step / 2 * (1 - step / 2), 1.5 * step, step / 4]
    return [*ones, *halves, *(-value for value in (*ones, *halves))]


def _overflowing(dtype: np.dtype[Any]) -> list[float]:
    largest = float(_limits(dtype).max)
    half_step = largest * float(_limits(dtype).eps) / 4  # about half of the last digit of the largest number
    return [largest, -largest, largest / 2, half_step, -half_step, 1.5 * half_step, half_step / 2, 0.0]


def _precise(dtype: np.dtype[Any]) -> list[float]:
    """Whole numbers that the next lower precision would round, whose sums are exact."""
    digits = 11 if dtype == np.float32 else 24
    return [float(2**digits + odd) for odd in (1, 3, 5, 77, 101, 2**10 - 1)]


def _opposite(problem: Problem, sizes: Sequence[int], dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    (a, _) = seeded(problem, sizes, dtype, generator)
    near = np.nextafter(a, np.inf, dtype=dtype)
    return [a, -np.where(generator.random(a.shape) < 0.5, near, a)]


def _numbered(problem: Problem, sizes: Sequence[int], dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Every element tells its place: a by ones, b by a number that no sum of another place has."""
    index = np.arange(sizes[0], dtype=dtype)
    return [index, index[::-1] * 2 if generator.random() < 0.5 else index * 2]


def _one_hot(at: int) -> Draw:
    def draw(problem: Problem, sizes: Sequence[int], dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
        a, b = np.zeros(sizes, dtype), np.zeros(sizes, dtype)
        a[at], b[-1 - at] = 1, 2
        return [a, b]

    return draw


def _indices(problem: Problem) -> Iterator[Trial]:
    for n in (*_LENGTHS, *_MORE_LENGTHS):
        yield Trial(f"numbered, {n}", (n,), _numbered, thorough=n in _MORE_LENGTHS)
    for n, at in ((67, 0), (67, 63), (67, 64), (67, 66), (531, 511), (531, 512), (531, 530), (4097, 4096)):
        yield Trial(f"one at {at} of {n}", (n,), _one_hot(at))


def _last_is_not_finite(value: float) -> Draw:
    def draw(problem: Problem, sizes: Sequence[int], dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
        a, b = seeded(problem, sizes, dtype, generator)
        (a if generator.random() < 0.5 else b)[-1] = value
        return [a, b]

    return draw


def _at_the_edge(problem: Problem) -> Iterator[Trial]:
    for n in (*_LENGTHS, *_MORE_LENGTHS):
        for value in (np.nan, np.inf, -np.inf):
            yield Trial(f"{value} as the last of {n}", (n,), _last_is_not_finite(value), thorough=n in _MORE_LENGTHS)


def _scaled(problem: Problem, sizes: Sequence[int], dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Neighbours of very different size: a block that shares one exponent loses the small ones."""
    arrays: list[Array] = seeded(problem, sizes, dtype, generator)
    exponents = generator.integers(-60, 61, sizes)
    return [np.ldexp(array, exponents + by).astype(dtype) for by, array in enumerate(arrays)]


def _beyond_the_caches(problem: Problem) -> Iterator[Trial]:
    """Vectors that no cache holds, which some texts write past the caches."""
    for dtype, size in (("float32", 4), ("float64", 8)):
        n = max(2**25, caches.last_level_cache()) // (3 * size) + 4099
        yield Trial(named((n,)), (n,), _cheap, starts=(0, 0, 1), dtypes=(dtype,), thorough=dtype == "float64")


def _cheap(problem: Problem, sizes: Sequence[int], dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    drawn = generator.standard_normal(2**16).astype(dtype)
    a = np.resize(drawn, sizes)
    return [a, a[::-1].copy()]


KINDS = (
    Kind("indices", "an element that is taken from another's place", _indices, "vecadd"),
    Kind(
        "special-values",
        "sums of zeros, infinities, NaN and the largest numbers",
        _at_lengths(_pairs(_special)),
        "vecadd",
    ),
    Kind("signed-zeros", "-0 + -0, which is -0", _at_lengths(_pairs(lambda _: [0.0, -0.0])), "vecadd"),
    Kind("subnormals", "subnormal numbers that are flushed to zero", _at_lengths(_pairs(_subnormal)), "vecadd"),
    Kind(
        "rounding", "sums half-way between two numbers, which go to the even one", _at_lengths(_pairs(_ties)), "vecadd"
    ),
    Kind("precision", "numbers of more digits than a lower precision has", _at_lengths(_pairs(_precise)), "vecadd"),
    Kind("cancellation", "differences of neighbours, which are exact", _at_lengths(_opposite), "vecadd"),
    Kind("overflow", "sums at and beyond the largest number", _at_lengths(_pairs(_overflowing)), "vecadd"),
    Kind("scales", "elements of very different size, whose small ones are lost", _at_lengths(_scaled), "vecadd"),
    Kind("not-finite-at-the-edge", "NaN and infinity in the last element", _at_the_edge, "vecadd"),
    Kind(
        "beyond-the-caches",
        "stores past the caches, which begin and end at full lines",
        _beyond_the_caches,
        "vecadd",
        lecture=False,
        emulated=False,
    ),
)
