"""What matmul is tried with beyond sizes: matrices whose product shows one way to be wrong."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from py_backends import caches
from py_backends.conformance.trials import Draw, Inputs, Kind, Trial, named, seeded
from py_backends.contract import Array, Problem

_SIZES = ((7, 19, 13), (33, 9, 67), (18, 66, 35))
_MORE_SIZES = ((1, 23, 4), (16, 16, 16), (64, 64, 64), (65, 130, 33), (13, 1, 70), (50, 3, 41), (100, 120, 130))
"""The last is packed, and shared among threads, by kernels that do so."""


def _at_sizes(draw: Draw, *, exact: bool = False, what: str = "") -> Callable[[Problem], Iterator[Trial]]:
    def trials(problem: Problem) -> Iterator[Trial]:
        for sizes in (*_SIZES, *_MORE_SIZES):
            quick = sizes in _SIZES or sizes == _MORE_SIZES[-1]
            yield Trial(f"{named(sizes)}{what}", sizes, draw, exact, thorough=not quick)

    return trials


def _all(*several: Callable[[Problem], Iterator[Trial]]) -> Callable[[Problem], Iterator[Trial]]:
    return lambda problem: itertools.chain.from_iterable(trials(problem) for trials in several)


def _numbered(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Every element is another whole number: a wrong one tells where it was taken from."""
    return np.arange(1, math.prod(shape) + 1, dtype=dtype).reshape(shape)


def _one_hot(which: int, place: tuple[float, float]) -> Draw:
    """One operand is zero but for a one at a place, given in fractions; the other is numbered."""

    def draw(problem: Problem, sizes: Sequence[int], dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
        inputs = [_numbered(shape, dtype) for shape in problem.shapes(sizes)[:2]]
        inputs[which][...] = 0
        inputs[which][_at(inputs[which], place)] = 1
        return inputs

    return draw


def _at(array: Array, place: tuple[float, float]) -> tuple[int, ...]:
    return tuple(round(fraction * (length - 1)) for fraction, length in zip(place, array.shape, strict=True))


_CORNERS = ((0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0))
_PLACES = (*_CORNERS, (0.5, 0.5), (0.3, 0.8))


def _indices(problem: Problem) -> Iterator[Trial]:
    for sizes in (*_SIZES, *_MORE_SIZES):
        for which, place in itertools.product((0, 1), _PLACES):
            rows, columns = problem.shapes(sizes)[which]
            i, j = round(place[0] * (rows - 1)), round(place[1] * (columns - 1))
            name = f"{named(sizes)}, {'ab'[which]} has a one at [{i}, {j}] ({place[0]}, {place[1]})"
            thorough = sizes not in _SIZES or place not in _CORNERS
            yield Trial(name, sizes, _one_hot(which, place), exact=True, thorough=thorough)


def _permutation(
    problem: Problem, sizes: Sequence[int], dtype: np.dtype[Any], generator: np.random.Generator
) -> Inputs:
    m, n, k = sizes
    a = np.zeros((m, k), dtype)
    a[np.arange(m), generator.permutation(np.arange(m) % k)] = 1
    return [a, _numbered((k, n), dtype)]


def _permuted_columns(
    problem: Problem, sizes: Sequence[int], dtype: np.dtype[Any], generator: np.random.Generator
) -> Inputs:
    m, n, k = sizes
    b = np.zeros((k, n), dtype)
    b[generator.permutation(np.arange(n) % k), np.arange(n)] = 1
    return [_numbered((m, k), dtype), b]


def _asymmetric(problem: Problem) -> Iterator[Trial]:
    """Square matrices, where a transposed operand has the right shape."""

    def triangles(
        problem: Problem, sizes: Sequence[int], dtype: np.dtype[Any], generator: np.random.Generator
    ) -> Inputs:
        return [np.tril(generator.integers(1, 9, shape)).astype(dtype) for shape in problem.shapes(sizes)[:2]]

    def identity(which: int) -> Draw:
        def draw(problem: Problem, sizes: Sequence[int], dtype: np.dtype[Any], _: np.random.Generator) -> Inputs:
            inputs = [_numbered(shape, dtype) for shape in problem.shapes(sizes)[:2]]
            inputs[which] = np.eye(*inputs[which].shape, dtype=dtype)
            return inputs

        return draw

    for size in (3, 8, 17, 32, 65, 2, 5, 16, 31, 33, 64, 100):
        sizes, thorough = (size,) * 3, size not in {3, 8, 17, 32, 65}
        yield Trial(f"{size}, triangles", sizes, triangles, exact=True, thorough=thorough)
        yield Trial(f"{size}, a is the identity", sizes, identity(0), exact=True, thorough=thorough)
        yield Trial(f"{size}, b is the identity", sizes, identity(1), exact=True, thorough=thorough)


def _small_integers(
    problem: Problem, sizes: Sequence[int], dtype: np.dtype[Any], generator: np.random.Generator
) -> Inputs:
    return [generator.integers(-9, 10, shape).astype(dtype) for shape in problem.shapes(sizes)[:2]]


def _precise(which: int) -> Draw:
    """Odd numbers above 2^11, which the 11 digits of TF32 round; for float64 above 2^24, which float32 rounds."""

    def draw(problem: Problem, sizes: Sequence[int], dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
        digits = 11 if dtype == np.float32 else 24
        inputs = _small_integers(problem, sizes, dtype, generator)
        inputs[which] = (2 * generator.integers(2 ** (digits - 1), 2**digits, inputs[which].shape) + 1).astype(dtype)
        return inputs

    return draw


def _cancelling(problem: Problem, sizes: Sequence[int], dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Neighbouring products are almost opposite: what is left has half the digits of what was added."""
    a, b = seeded(problem, sizes, dtype, generator)
    pairs = a.shape[1] // 2 * 2
    a[:, 1:pairs:2] = -a[:, 0:pairs:2] * dtype.type(1 + float(np.finfo(dtype).eps) ** 0.5)
    b[1:pairs:2] = b[0:pairs:2]
    a[:, pairs:] = 0
    return [a, b]


def _scaled_rows(
    problem: Problem, sizes: Sequence[int], dtype: np.dtype[Any], generator: np.random.Generator
) -> Inputs:
    """Rows of a times 2^-60 to 2^60, columns of b times 2^-50 to 2^50: each element keeps its own accuracy."""
    a, b = seeded(problem, sizes, dtype, generator)
    of_rows, of_columns = generator.choice((-60, -7, 0, 60), sizes[0]), generator.choice((-50, 0, 11, 50), sizes[1])
    return [np.ldexp(a, of_rows[:, None]).astype(dtype), np.ldexp(b, of_columns[None, :]).astype(dtype)]


def _subnormal_products(
    problem: Problem, sizes: Sequence[int], dtype: np.dtype[Any], generator: np.random.Generator
) -> Inputs:
    exponent = -69 if dtype == np.float32 else -532
    return [np.ldexp(array, exponent).astype(dtype) for array in seeded(problem, sizes, dtype, generator)]


def _subnormal_inputs(
    problem: Problem, sizes: Sequence[int], dtype: np.dtype[Any], generator: np.random.Generator
) -> Inputs:
    a, b = _small_integers(problem, sizes, dtype, generator)
    least = float(np.finfo(dtype).smallest_subnormal)
    return [a * dtype.type(least), np.ldexp(b, 20 if dtype == np.float32 else 500).astype(dtype)]


def _some_rows_overflow(
    problem: Problem, sizes: Sequence[int], dtype: np.dtype[Any], generator: np.random.Generator
) -> Inputs:
    """Only what is in these rows may be infinite or undefined."""
    a, b = seeded(problem, sizes, dtype, generator)
    a[:: max(2, sizes[0] // 3)] = np.finfo(dtype).max
    return [a, b]


def _just_below_overflow(
    problem: Problem, sizes: Sequence[int], dtype: np.dtype[Any], generator: np.random.Generator
) -> Inputs:
    """Every sum stays below the largest number by half, in any order."""
    a, b = (np.sign(array) for array in seeded(problem, sizes, dtype, generator))
    return [(a * (np.finfo(dtype).max / (2 * sizes[2] + 2))).astype(dtype), b]


def _not_finite(which: int, place: tuple[float, float], value: float, rest: float = 1) -> Draw:
    """One element is not finite; the others are seeded, times `rest`."""

    def draw(problem: Problem, sizes: Sequence[int], dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
        inputs = seeded(problem, sizes, dtype, generator)
        if rest == 0:
            inputs[1 - which][...] = 0
        inputs[which][_at(inputs[which], place)] = value
        return inputs

    return draw


def _at_the_edge(problem: Problem) -> Iterator[Trial]:
    for sizes, which, place, value in itertools.product(
        (*_SIZES, (65, 130, 33), _MORE_SIZES[-1]), (0, 1), _PLACES, (np.nan, np.inf, -np.inf)
    ):
        small, packed = sizes in _SIZES[1:] and value != -np.inf, sizes == _MORE_SIZES[-1] and np.isnan(value)
        quick = place in _CORNERS and (small or packed)
        name = f"{named(sizes)}, {value} in {'ab'[which]} at {place}"
        yield Trial(name, sizes, _not_finite(which, place, value), thorough=not quick)


def _zero_times(problem: Problem) -> Iterator[Trial]:
    for sizes, which, place, value in itertools.product(
        (*_SIZES, (1, 1, 1), (65, 130, 33), (13, 1, 70), (100, 120, 130)), (0, 1), _CORNERS, (np.nan, np.inf)
    ):
        quick = sizes in _SIZES[:2] and place in {(0.0, 0.0), (1.0, 1.0)}
        name = f"{named(sizes)}, {value} in {'ab'[which]} at {place} times zeros"
        yield Trial(name, sizes, _not_finite(which, place, value, rest=0), thorough=not quick)


def _several_passes(problem: Problem) -> Iterator[Trial]:
    """Deeper and wider than a block, with tiles of unequal height, and more rows of tiles than a band has.

    A few columns have one element more than a quarter of the second-level cache holds; a single one, and each of a
    pair, has that by itself. Many have one more than the panels, as wide as two registers, that fill half of it.
    """
    of_four, of_one = (caches.second_level_cache() // (16 * columns) + 1 for columns in (4, 1))
    deep = ((100, 100, 2100), (11, 37, 2300), (3, 4, of_four), (2, 1, of_one), (2, 2, of_one))
    half, depth = caches.second_level_cache() // 2, 130
    widths = {half // ((depth + 1) * wide) * (wide // size) + 1 for wide in (32, 64, 128) for size in (4, 8)}
    ragged = tuple((30, columns, depth) for columns in sorted(widths))
    blocks = ((90, 70, 1700), (20, 4200, 40), (100, 129, 110), (257, 260, 33), (2200, 140, 9), (40, 4099, 70))
    quick = (*deep, *ragged, *blocks)
    more = ((3, 4, 33_000), (17, 4200, 2050), (4300, 70, 10), (200, 300, 1300))
    for sizes in (*quick, *more):
        yield Trial(named(sizes), sizes, seeded, thorough=sizes in more)
    for sizes in deep:  # of so many products one may be missing within the bound
        yield Trial(f"{named(sizes)}, whole numbers", sizes, _small_integers, exact=True)


_THEMES: tuple[tuple[str, str, Callable[[Problem], Iterator[Trial]]], ...] = (
    ("indices", "a product that is taken from another's place, by matrices with a single one", _indices),
    (
        "permutations",
        "rows and columns in a wrong order",
        _all(
            _at_sizes(_permutation, exact=True, what=", rows"),
            _at_sizes(_permuted_columns, exact=True, what=", columns"),
        ),
    ),
    ("asymmetric", "an operand or a result that is transposed, where its shape does not tell", _asymmetric),
    ("whole-numbers", "sums that must be exact in any order", _at_sizes(_small_integers, exact=True)),
    (
        "precision",
        "inputs that are rounded to a lower precision, as by TF32",
        _all(
            _at_sizes(_precise(0), exact=True, what=", large in a"),
            _at_sizes(_precise(1), exact=True, what=", large in b"),
        ),
    ),
    ("cancellation", "sums far smaller than what is added", _at_sizes(_cancelling)),
    (
        "scales",
        "rows and columns of very different size, which only a normwise error allows",
        _at_sizes(_scaled_rows),
    ),
    (
        "subnormals",
        "subnormal inputs and results that are flushed to zero",
        _all(_at_sizes(_subnormal_products, what=", results"), _at_sizes(_subnormal_inputs, what=", inputs")),
    ),
    (
        "overflow",
        "infinities that spread, and sums that overflow before their time",
        _all(
            _at_sizes(_some_rows_overflow, what=", some rows"),
            _at_sizes(_just_below_overflow, what=", just below"),
        ),
    ),
    (
        "not-finite-at-the-edge",
        "NaN and infinity in the last row or column, which must stay in theirs",
        _at_the_edge,
    ),
    ("zero-times-not-finite", "0 times NaN or infinity that is left out, for being 0", _zero_times),
)
KINDS = (
    *(Kind(name, protects, trials, "matmul") for name, protects, trials in _THEMES),
    Kind(
        "several-passes",
        "sums that are begun anew, or blocks that are left out, where there are several",
        _several_passes,
        "matmul",
        lecture=False,
    ),
)
