"""What matmul is tried with beyond sizes. The product of each pair of matrices reveals one kind of fault."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from py_backends.conformance.formats import FLOATS, limits, of_sums
from py_backends.conformance.trials import Draw, Inputs, Kind, OfKernel, Shapes, Trial, named, of_sizes, seeded
from py_backends.contract import Problem
from py_backends.system import caches, machine

from .narrow_trials import KINDS as NARROW_KINDS

_SIZES = ((7, 19, 13), (33, 9, 67), (18, 66, 35))
_MORE_SIZES = ((1, 23, 4), (16, 16, 16), (64, 64, 64), (65, 130, 33), (13, 1, 70), (50, 3, 41), (100, 120, 130))
"""Kernels that pack, and share work among threads, do so at the last of these."""
_MOST_THREADS = 16
"""For more, a product with several blocks of a for each thread would take seconds where the device is emulated."""


def _at_sizes(draws: dict[str, Draw], problem: Problem, *, exact: bool = False) -> Iterator[Trial]:
    """Ways to draw inputs, by names with placeholders for the sizes."""
    yield from of_sizes((*_SIZES, *_MORE_SIZES), draws, exact=exact, thorough=_MORE_SIZES[:-1])


def _numbered(shapes: Shapes, dtype: np.dtype[Any]) -> Inputs:
    """Every element is a different whole number, so that a wrong one tells where it was taken from.

    If a format has too few of them, they start again, not at a multiple of a vector's width.
    """
    numbers = 2 ** limits(dtype).digits - 1
    return [(np.arange(math.prod(shape)) % numbers + 1).astype(dtype).reshape(shape) for shape in shapes]


_Place = tuple[float, float]
"""The place of an element in a matrix, in fractions of its height and width."""
_CORNERS = ((0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0))
_PLACES = (*_CORNERS, (0.5, 0.5), (0.3, 0.8))


def _at(place: _Place, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(round(fraction * (length - 1)) for fraction, length in zip(place, shape, strict=True))


def _one_hot(which: int, place: _Place, shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """One operand is zero but for a single one at some place. The other is numbered."""
    inputs = _numbered(shapes, dtype)
    inputs[which][...] = 0
    inputs[which][_at(place, shapes[which])] = 1
    return inputs


def _indices(problem: Problem) -> Iterator[Trial]:
    for sizes in (*_SIZES, *_MORE_SIZES):
        for which, place in itertools.product((0, 1), _PLACES):
            i, j = _at(place, problem.shapes(sizes)[which])
            name = f"{named(sizes)}, {'ab'[which]} has a one at [{i}, {j}] ({place[0]}, {place[1]})"
            thorough = sizes not in _SIZES or place not in _CORNERS
            yield Trial(name, sizes, partial(_one_hot, which, place), exact=True, thorough=thorough)


def _permuted(which: int, shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Each row of a, or each column of b, has a single one. The other operand is numbered."""
    inputs = _numbered(shapes, dtype)
    lines = inputs[0] if which == 0 else inputs[1].T
    every = np.arange(len(lines))
    lines[...] = 0
    lines[every, generator.permutation(every % lines.shape[1])] = 1
    return inputs


def _triangles(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    return [np.tril(generator.integers(1, 9, shape)).astype(dtype) for shape in shapes]


def _identity(which: int, shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    inputs = _numbered(shapes, dtype)
    inputs[which] = np.eye(len(inputs[which]), dtype=dtype)
    return inputs


def _asymmetric(problem: Problem) -> Iterator[Trial]:
    """Square matrices, where a transposed operand has the right shape."""
    draws: dict[str, Draw] = {
        "triangles": _triangles,
        "a is the identity": partial(_identity, 0),
        "b is the identity": partial(_identity, 1),
    }
    quick = (3, 8, 17, 32, 65)
    for size, (what, draw) in itertools.product((*quick, 2, 5, 16, 31, 33, 64, 100), draws.items()):
        yield Trial(f"{size}, {what}", (size,) * 3, draw, exact=True, thorough=size not in quick)


def _small_integers(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    return [generator.integers(-9, 10, shape).astype(dtype) for shape in shapes]


def _precise(which: int, shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Odd numbers with more digits than a lower precision has: TF32 for float32, float32 for float64.

    In the other formats they have all of the format's digits.
    """
    of = limits(dtype)
    digits = of.lower_digits if dtype.itemsize > 2 else of.digits - 1
    inputs = _small_integers(shapes, dtype, generator)
    inputs[which] = (2 * generator.integers(2 ** (digits - 1), 2**digits, shapes[which]) + 1).astype(dtype)
    return inputs


def _cancelling(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Neighbouring products almost cancel. What is left has half as many digits as what was added."""
    a, b = seeded(shapes, dtype, generator)
    pairs = a.shape[1] // 2 * 2
    near = limits(dtype).step ** (0.5 if dtype.itemsize > 2 else 1)
    a[:, 1:pairs:2] = -a[:, 0:pairs:2] * dtype.type(1 + near)
    b[1:pairs:2] = b[0:pairs:2]
    a[:, pairs:] = 0
    return [a, b]


def _scaled_rows(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Rows of a times 2^-60 to 2^60, columns of b times 2^-50 to 2^50: each element keeps its own accuracy.

    In a format with a smaller range, the factors are smaller.
    """
    a, b = seeded(shapes, dtype, generator)
    of_rows, of_columns = generator.choice((-60, -7, 0, 60), len(a)), generator.choice((-50, 0, 11, 50), b.shape[1])
    of_rows, of_columns = (each * limits(dtype).reach // 60 for each in (of_rows, of_columns))
    return [np.ldexp(a, of_rows[:, None]).astype(dtype), np.ldexp(b, of_columns[None, :]).astype(dtype)]


_SMALL = {"float32": -69, "bfloat16": -69, "float64": -532, "float16": -18}
"""Powers of two whose products are subnormal. In float16 no product is, so the inputs are."""
_LARGE = {"float32": 20, "bfloat16": 20, "float64": 500, "float16": 10}
"""Powers of two that turn a subnormal number into a normal one."""


def _subnormal_products(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    exponent = _SMALL[dtype.name]
    return [np.ldexp(array, exponent).astype(dtype) for array in seeded(shapes, dtype, generator)]


def _subnormal_inputs(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    a, b = _small_integers(shapes, dtype, generator)
    return [a * dtype.type(limits(dtype).least), np.ldexp(b, _LARGE[dtype.name]).astype(dtype)]


def _some_rows_overflow(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Only the results of these rows may be infinite or undefined."""
    a, b = seeded(shapes, dtype, generator)
    a[:: max(2, len(a) // 3)] = limits(dtype).largest
    return [a, b]


def _just_below_overflow(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Every sum stays below half of the largest number of its format, in any order."""
    a, b = (np.sign(array) for array in seeded(shapes, dtype, generator))
    most = min(limits(dtype).largest, of_sums("matmul", dtype).largest / (2 * len(b) + 2))
    return [a * dtype.type(most), b]


def _not_finite(
    which: int,
    place: _Place,
    value: float,
    shapes: Shapes,
    dtype: np.dtype[Any],
    generator: np.random.Generator,
    *,
    times_zeros: bool = False,
) -> Inputs:
    """One element is not finite. The others are seeded, or the other operand is all zeros."""
    inputs = seeded(shapes, dtype, generator)
    if times_zeros:
        inputs[1 - which][...] = 0
    inputs[which][_at(place, shapes[which])] = value
    return inputs


def _at_the_edge(problem: Problem) -> Iterator[Trial]:
    for sizes, which, place, value in itertools.product(
        (*_SIZES, (65, 130, 33), _MORE_SIZES[-1]), (0, 1), _PLACES, (np.nan, np.inf, -np.inf)
    ):
        small, packed = sizes in _SIZES[1:] and value != -np.inf, sizes == _MORE_SIZES[-1] and np.isnan(value)
        quick = place in _CORNERS and (small or packed)
        name = f"{named(sizes)}, {value} in {'ab'[which]} at {place}"
        yield Trial(name, sizes, partial(_not_finite, which, place, value), thorough=not quick)


def _zero_times(problem: Problem) -> Iterator[Trial]:
    for sizes, which, place, value in itertools.product(
        (*_SIZES, (1, 1, 1), (65, 130, 33), (13, 1, 70), (100, 120, 130)), (0, 1), _CORNERS, (np.nan, np.inf)
    ):
        quick = sizes in _SIZES[:2] and place in {(0.0, 0.0), (1.0, 1.0)}
        name = f"{named(sizes)}, {value} in {'ab'[which]} at {place} times zeros"
        yield Trial(name, sizes, partial(_not_finite, which, place, value, times_zeros=True), thorough=not quick)


def _several_passes(problem: Problem) -> Iterator[Trial]:
    """Deeper and wider than a block, with tiles of unequal height, and more rows of tiles than a band has.

    A few columns have one element more than a quarter of the second-level cache holds. A single column, and each of a
    pair, has that by itself. Many columns are one more than fill half of that cache as panels, two registers wide.
    Each thread's rows of a, about a thousand numbers deep, fill three quarters of that cache in float32. A kernel that
    leaves three quarters to what else passes through it has several blocks of a. In the last product threads share out
    the columns.
    """
    of_four, of_one = (caches.second_level_cache() // (16 * columns) + 1 for columns in (4, 1))
    deep = ((100, 100, 2100), (11, 37, 2300), (3, 4, of_four), (2, 1, of_one), (2, 2, of_one))
    half, depth = caches.second_level_cache() // 2, 130
    widths = {half // ((depth + 1) * wide) * (wide // size) + 1 for wide in (32, 64, 128) for size in (4, 8)}
    ragged = tuple((30, columns, depth) for columns in sorted(widths))
    of_thread = 3 * caches.second_level_cache() // (4 * 4 * 1024)
    of_all = of_thread * min(machine.cpus(), _MOST_THREADS) + 1
    high = ((of_all, 100, 1021), (of_all, 110, 2100), (of_thread, of_thread + 100, 1021))
    blocks = ((90, 70, 1700), (20, 4200, 40), (100, 129, 110), (257, 260, 33), (2200, 140, 9), (40, 4099, 70))
    quick = (*deep, *ragged, *blocks)
    more = ((3, 4, 33_000), (17, 4200, 2050), (4300, 70, 10), (200, 300, 1300))
    yield from of_sizes((*quick, *more), thorough=more)
    # with so many products, one may be missing within the bound
    yield from of_sizes((*deep, *high), {"{}, whole numbers": _small_integers}, exact=True)


def _of_themes(
    themes: Sequence[tuple[str, str, Callable[[Problem], Iterator[Trial]]]], **how: Any
) -> list[Kind[Trial]]:
    return [Kind(name, protects, trials, **how) for name, protects, trials in themes]


_OF_ANY_NUMBERS = (
    ("indices", "a product taken from the wrong place, by matrices with a single one", _indices),
    (
        "permutations",
        "rows and columns in a wrong order",
        partial(_at_sizes, {"{}, rows": partial(_permuted, 0), "{}, columns": partial(_permuted, 1)}, exact=True),
    ),
    ("asymmetric", "a transposed operand or result, where no shape reveals it", _asymmetric),
    (
        "precision",
        "inputs rounded to a lower precision, as by TF32",
        partial(
            _at_sizes, {"{}, large in a": partial(_precise, 0), "{}, large in b": partial(_precise, 1)}, exact=True
        ),
    ),
)
_OF_FLOATS = (
    ("cancellation", "sums far smaller than their terms", partial(_at_sizes, {"{}": _cancelling})),
    (
        "scales",
        "rows and columns of very different magnitude: only a normwise bound would pass large errors",
        partial(_at_sizes, {"{}": _scaled_rows}),
    ),
    (
        "overflow",
        "infinities that spread, and sums that overflow too early",
        partial(_at_sizes, {"{}, some rows": _some_rows_overflow, "{}, just below": _just_below_overflow}),
    ),
    (
        "not-finite-at-the-edge",
        "NaN and infinity in the last row or column, which must stay in theirs",
        _at_the_edge,
    ),
    ("zero-times-not-finite", "0 times NaN or infinity, left out because of the 0", _zero_times),
)
_KINDS = (
    *_of_themes(_OF_ANY_NUMBERS),
    Kind(
        "whole-numbers",
        "sums that must be exact in any order",
        partial(_at_sizes, {"{}": _small_integers}, exact=True),
        in_others=None,
    ),
    *_of_themes(_OF_FLOATS, dtypes=FLOATS),
    Kind(
        "subnormals",
        "subnormal inputs and results that are flushed to zero",
        partial(_at_sizes, {"{}, results": _subnormal_products, "{}, inputs": _subnormal_inputs}),
        dtypes=FLOATS,
        in_others=None,
    ),
    Kind(
        "several-passes",
        "restarted sums, or skipped blocks, where there are several passes",
        _several_passes,
        lecture=False,
    ),
    *NARROW_KINDS,
)
TRIALS = OfKernel(
    _KINDS,
    few=[
        (0, 5, 3), (5, 0, 3), (5, 3, 0), (65, 63, 9), (1, 66, 17),
        (2, 3, 5), (17, 15, 16), (33, 17, 9), (65, 1, 4), (1, 1, 1),
        (1, 7, 3), (7, 1, 3), (7, 3, 1), (3, 4, 5), (4, 8, 5),
        (9, 3, 4), (2, 15, 3), (3, 16, 2), (2, 17, 3), (15, 16, 17),
        (1, 65, 4), (1, 1, 129), (3, 9, 2), (16, 16, 16), (4, 31, 3),
        (2, 32, 5), (3, 33, 2),
    ],
    larger=[
        (64, 64, 64), (67, 131, 257), (257, 131, 67), (300, 1, 200), (1, 300, 200), (129, 127, 128),
        (4, 6, 1700), (29, 70, 800), (4, 131, 1700), (4, 4200, 3), (200, 170, 150),
    ],
    shared=(200, 170, 150),
    # Matrices are packed, also by two threads, and some are thin or deep.
    of_several_pages=[
        (9, 5, 5), (1, 300, 200), (300, 1, 200), (40, 2, 70), (65, 66, 9), (100, 98, 97), (170, 172, 173), (70, 132, 1),
    ],
    of_tiles=[
        (84, 128, 256), (83, 127, 255), (85, 129, 257), (128, 64, 16), (127, 63, 15), (129, 65, 17), (6, 8, 8),
        (12, 32, 8), (13, 33, 9), (11, 16, 7), (12, 17, 768), (25, 31, 769), (7, 50, 1537),
    ],
)  # fmt: skip
