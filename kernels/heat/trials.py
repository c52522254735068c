"""What heat is tried with beyond sizes: exact steps, missing ones, and numbers at the ends of a format."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from py_backends.conformance.formats import FLOATS, limits
from py_backends.conformance.trials import Draw, Inputs, Kind, OfKernel, Shapes, Trial, drawn_from, named, of_sizes
from py_backends.contract import Problem

_SIZES = ((19, 67), (67, 19), (70, 133))
_MORE_SIZES = ((3, 3), (3, 70), (70, 3), (5, 4), (17, 33), (129, 257), (300, 530), (271, 1103))
_SHAPES_OF_BOUNDARY = tuple(itertools.product((0, 1, 2, 3), (0, 1, 2, 3, 7)))
_STEPS = (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 25, 33, 64)
"""Odd and even ones, and one below, at and above what one launch or one pass does at once, and twice that."""


def _whole(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator, steps: int) -> Inputs:
    """Whole numbers that are exact for so many steps: the more steps, the smaller ones, down to -1, 0 and 1."""
    most = max(1, int(2.0 ** (limits(dtype).digits - 3 * steps)))
    return [generator.integers(-most, most, shapes[0], np.int64, endpoint=True).astype(dtype)]


def _exact_steps(problem: Problem) -> Iterator[Trial]:
    """Every element counts, bit by bit, at numbers of steps at which nothing rounds."""
    for sizes, steps in itertools.product((*_SIZES, *_MORE_SIZES), (1, 2, 3, 5, 7)):
        draw: Draw = partial(_whole, steps=steps)
        thorough = sizes in _MORE_SIZES or steps == 5
        yield Trial(f"{named(sizes)} and {steps} steps", (*sizes, steps), draw, exact=True, thorough=thorough)


def _numbers_of_steps(problem: Problem) -> Iterator[Trial]:
    for sizes, steps in itertools.product(((35, 70), (70, 35), (271, 1103)), _STEPS):
        several_parts = sizes == (271, 1103) and steps == 8  # of a row and of a column, each with all steps of a launch
        thorough = not several_parts and (sizes != (35, 70) or steps in (4, 5, 15, 24, 25, 33))
        yield Trial(f"{named(sizes)} and {steps} steps", (*sizes, steps), partial(drawn_from, ()), thorough=thorough)


def _only_boundary(problem: Problem) -> Iterator[Trial]:
    """Fewer rows or columns than have an interior, or as few as have one."""
    quick = ((2, 7), (3, 3), (1, 1), (3, 2), (0, 3), (3, 0))
    for sizes, steps in itertools.product(dict.fromkeys((*quick, *_SHAPES_OF_BOUNDARY)), (2, 0, 1, 3)):
        thorough = sizes not in quick or steps in (0, 1)
        yield Trial(f"{named(sizes)} and {steps} steps", (*sizes, steps), partial(drawn_from, ()), thorough=thorough)


def _boundary_alone(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Numbers on the boundary, other ones in each corner, and zeros inside."""
    u = generator.integers(1, 100, shapes[0]).astype(dtype)
    u[1:-1, 1:-1] = 0
    return [u]


def _one_hot(at: tuple[int, int], shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    u = np.zeros(shapes[0], dtype)
    u[at] = 1
    return [u]


def _places(problem: Problem) -> Iterator[Trial]:
    yield from of_sizes((*_SIZES, *_MORE_SIZES), {"{}, boundary alone": _boundary_alone}, thorough=_MORE_SIZES)
    m, n, steps = 80, 150, 3
    rows, columns = (0, 1, 2, m // 2, m - 2, m - 1), (0, 1, 2, 63, 64, n - 2, n - 1)
    for i, j in itertools.product(rows, columns):
        quick = (i, j) in ((0, 0), (1, 1), (m - 2, n - 1), (m - 1, 1), (m // 2, 64))
        yield Trial(f"one at [{i}, {j}]", (m, n, steps), partial(_one_hot, (i, j)), exact=True, thorough=not quick)


def _special(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """A few infinities and NaN among other numbers: they spread, and no further than a step."""
    (u,) = drawn_from((), shapes, dtype, generator)
    places = generator.random(u.shape)
    u[places < 0.01] = np.inf
    u[places > 0.99] = -np.inf
    u[(places > 0.5) & (places < 0.505)] = np.nan
    return [u]


def _subnormal(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    return drawn_from(
        [each * limits(dtype).least for each in (0, -0.0, 1, -1, 3, 8, -40, 1000)], shapes, dtype, generator
    )


def _huge(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Numbers of which four may overflow, and others of which they do not."""
    largest = limits(dtype).largest
    return drawn_from([largest, -largest, largest / 2, largest / 4, -largest / 8, 1, 0], shapes, dtype, generator)


def _just_below_overflow(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Four of the largest add up to almost the largest number."""
    most = limits(dtype).largest / 4 * (1 - 2.0**-12)
    return [(most * generator.uniform(0.9, 1, shapes[0])).astype(dtype)]


def _scaled(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Elements of very different magnitude."""
    exponents = generator.integers(-30, 30, shapes[0])
    return [np.ldexp(generator.uniform(-1, 1, shapes[0]), exponents).astype(dtype)]


def _kind(name: str, protects: str, draw: Draw, **how: Any) -> Kind[Trial]:
    cases = partial(_at_sizes, draw)
    return Kind(name, protects, cases, dtypes=FLOATS, **how)


def _at_sizes(draw: Draw, problem: Problem) -> Iterator[Trial]:
    yield from of_sizes((*_SIZES, *_MORE_SIZES), {"{}": draw}, thorough=_MORE_SIZES)


_KINDS = (
    Kind("exact-steps", "an element or a step that is missing or taken twice, where nothing rounds", _exact_steps),
    Kind("steps", "a step too few or too many, or results that are left in the wrong array", _numbers_of_steps),
    Kind("no-interior", "matrices that are all boundary, and the smallest that are not", _only_boundary),
    Kind("places", "a boundary that is changed or not read, and neighbours of the wrong place", _places),
    _kind("special-values", "NaN and infinity that are lost, or spread too far", _special),
    _kind("subnormals", "subnormal numbers that are flushed to zero", _subnormal),
    _kind("overflow", "sums that overflow too early, or too late", _huge),
    _kind("large-numbers", "sums of neighbours that overflow though they need not", _just_below_overflow),
    _kind("scales", "elements of very different magnitude, of which small ones are lost", _scaled),
)
TRIALS = OfKernel(
    _KINDS,
    # all boundary, one interior element, then one below, at and above each width of vectors, work groups and parts
    few=[
        (2, 5), (3, 3), (0, 4), (4, 0), (35, 67), (67, 35), (1, 9), (5, 18), (9, 3), (10, 34), (18, 17), (33, 5),
        (34, 66), (131, 245), (245, 131),
    ],
    larger=[(270, 530), (530, 270), (64, 1100), (1000, 67)],
    shared=(300, 530),
    of_several_pages=[(97, 101), (3, 4097), (4097, 3), (300, 200)],
    of_tiles=[(255, 511), (256, 512), (257, 513), (127, 207), (128, 208), (129, 209), (3, 700)],
)  # fmt: skip
