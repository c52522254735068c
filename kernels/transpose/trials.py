"""What transpose is tried with beyond sizes: matrices whose elements tell their places. Every bit counts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from py_backends.conformance.formats import FLOATS, NARROW, NARROW_FLOATS, limits
from py_backends.conformance.trials import (
    Draw,
    Inputs,
    Kind,
    OfKernel,
    Shapes,
    Trial,
    Values,
    drawn_from,
    named,
    of_sizes,
)
from py_backends.contract import Array, Problem
from py_backends.results.spec import Sizes
from py_backends.system import caches

_SIZES = ((19, 67), (67, 19), (70, 133), (257, 129))
_MORE_SIZES = ((1, 1), (2, 3), (16, 16), (17, 33), (64, 64), (129, 257), (200, 65), (300, 301), (521, 1031))
_BY_SIZE = ((("float32",), 4), (("float64",), 8), (NARROW_FLOATS, 2), (("int8",), 1))
_MOST_ROWS = 70
"""Rows and columns of narrow matrices: more than the tiles of all formats have, int8 included."""


def _at_sizes(draws: dict[str, Draw], problem: Problem) -> Iterator[Trial]:
    """Ways to draw the input, by names with placeholders for the sizes."""
    yield from of_sizes((*_SIZES, *_MORE_SIZES), draws, thorough=_MORE_SIZES)


def _numbers(dtype: np.dtype[Any], count: int) -> Array:
    """As many different numbers as there are, up to `count`.

    In narrow formats all that are finite, with their bits counted through: subnormal ones and both zeros among them. It
    is no power of two how many, so that they do not start again at a multiple of a tile's width.
    """
    if dtype.name not in NARROW:
        return np.arange(count, dtype=dtype)
    bits = np.arange(2 ** (8 * dtype.itemsize), dtype=f"u{dtype.itemsize}")
    numbers = bits.view(dtype)
    with np.errstate(invalid="ignore"):  # of NaN
        finite = np.isfinite(numbers.astype(np.float64))
    return np.asarray(numbers[finite][1:])


def _numbered(digit: int, shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Every element tells its place, since no other place has the same one.

    If a format has too few numbers, they start again. Then a digit of its place is written in that many numbers.
    """
    place = np.arange(math.prod(shapes[0]))
    numbers = _numbers(dtype, place.size)
    if len(numbers) == 0:
        return [np.zeros(shapes[0], dtype)]
    return [numbers[place // len(numbers) ** digit % len(numbers)].reshape(shapes[0])]


def _every_place(sizes: Sequence[Sizes], thorough: Sequence[Sizes] = (), **how: Any) -> Iterator[Trial]:
    """Numbered matrices. Where elements repeat, a second matrix tells apart those that are equal in the first."""
    first, second = partial(_numbered, 0), partial(_numbered, 1)
    yield from of_sizes((*sizes, *thorough), {"{}, numbered": first}, thorough=thorough, **how)
    yield from of_sizes((*sizes, *thorough), {"{}, second digit": second}, thorough=thorough, dtypes=NARROW)


def _one_hot(at: tuple[int, int], shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    a = np.zeros(shapes[0], dtype)
    a[at] = 1
    return [a]


def _indices(problem: Problem) -> Iterator[Trial]:
    yield from _every_place(_SIZES, _MORE_SIZES)
    m, n = 150, 140
    rows, columns = ((0, 15, 16, 63, 64, last) for last in (n - 1, m - 1))
    for j, i in itertools.product(rows, columns):
        corner = j in (0, n - 1) and i in (0, m - 1)
        yield Trial(f"one at [{j}, {i}] of {n}x{m}", (m, n), partial(_one_hot, (j, i)), thorough=not corner)


def _special(dtype: np.dtype[Any]) -> list[float]:
    of = limits(dtype)
    return [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, of.largest, -of.largest, of.least]


def _subnormal(dtype: np.dtype[Any]) -> list[float]:
    least, normal = limits(dtype).least, limits(dtype).normal
    return [0.0, -0.0, least, -least, 3 * least, normal - least, least - normal, normal, -normal]


def _precise(dtype: np.dtype[Any]) -> list[float]:
    """Numbers with more digits than the next lower precision has, and some that use all exponents."""
    of = limits(dtype)
    odd = [2.0**of.lower_digits + by for by in (1, 3, 5, 77, 101) if by < 2**of.lower_digits]
    return [*odd, *(-each for each in odd), 1 + of.step, 2 - of.step, of.largest, 3 * of.normal]


def _drawn(values: Values, shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    return drawn_from(values(dtype), shapes, dtype, generator)


def _every_number(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Every number that the bits of a format can represent, NaN too, in an order that the seed chooses."""
    every = np.arange(2 ** (8 * dtype.itemsize), dtype=f"u{dtype.itemsize}").view(dtype)
    return [np.resize(generator.permutation(every), shapes[0])]


def _all_of_few_bits(problem: Problem) -> Iterator[Trial]:
    yield from of_sizes([(241, 277)], {"{}": _every_number})


def _narrow(problem: Problem) -> Iterator[Trial]:
    """One row, one column, and so few of them that they leave a tile unfilled. The longest are for several threads."""
    quick = [sizes for few in (1, 3, 17) for sizes in ((few, 131), (131, few))]
    narrow = [sizes for few in range(1, _MOST_ROWS + 1) for sizes in ((few, 131), (131, few))]
    yield from _every_place(quick, [sizes for sizes in narrow if sizes not in quick])
    long = ((300_007, 1), (2, 150_001), (150_001, 5), (33, 20_011), (20_011, 33))
    yield from _every_place([(1, 300_007)], long)


def _powers_of_two(problem: Problem) -> Iterator[Trial]:
    """Elements of a column lie so far apart that they take places from each other in the caches.

    The last matrices are as large as a few second-level caches, where some sources move blocks through a buffer. A row,
    or a column, is left of their tiles.
    """
    yield from _every_place(((256, 512),), ((512, 1024), (1024, 64), (128, 4096), (2048, 1024)))
    for dtypes, size in _BY_SIZE:
        few, many = 4 * caches.second_level_cache() // (2 * size * 4096) // 64 * 64 + 65, 4096
        for sizes, starts in (((few, many), (0, 3)), ((many, few), (1, 0))):
            yield _placed(sizes, starts, dtypes, thorough=size != 4)


def _placed(sizes: Sizes, starts: tuple[int, ...], dtypes: tuple[str, ...], *, thorough: bool) -> Trial:
    """A large numbered matrix, where a and c begin so many elements after a page does."""
    name = f"{named(sizes)} beginning {', '.join(map(str, starts))} elements later"
    return Trial(name, sizes, partial(_numbered, 0), starts=starts, dtypes=dtypes, thorough=thorough)


def _beyond_the_caches(problem: Problem) -> Iterator[Trial]:
    """Matrices that fit no cache, which some sources write past the caches: whole lines, each once.

    No row of c begins a line but by chance. In the first ones a row and a column is left of tiles. There are some whose
    rows all begin lines.
    """
    for dtypes, size in _BY_SIZE:
        count = max(2**25, caches.effective_cache()) // (2 * size)
        n = math.isqrt(count) // 64 * 64
        one_left, ragged = (count // (n + 65) // 64 * 64 + 65, n + 65), (n + 37, count // (n + 37) + 41)
        even, wide = (count // n + 64, n), (131, count // 131 + 71)
        yield _placed(one_left, (0, 3), dtypes, thorough=size != 4)
        yield _placed(ragged, (3, 1), dtypes, thorough=True)
        yield _placed(even, (0,), dtypes, thorough=True)
        yield _placed(wide, (0, 5), dtypes, thorough=True)
        yield _placed(wide[::-1], (5, 7), dtypes, thorough=True)


def _kind_of(name: str, protects: str, values: Values, **how: Any) -> Kind[Trial]:
    return Kind(name, protects, partial(_at_sizes, {"{}": partial(_drawn, values)}), dtypes=FLOATS, **how)


_KINDS = (
    Kind(
        "indices",
        "an element taken from the wrong place, by matrices whose elements tell theirs",
        _indices,
        in_others=6,
    ),
    _kind_of("special-values", "zeros, infinities, NaN and the largest numbers, which are moved as they are", _special),
    _kind_of("subnormals", "subnormal numbers that are flushed to zero", _subnormal),
    _kind_of("precision", "numbers that pass through a lower precision", _precise),
    Kind(
        "every-number",
        "numbers of few bits that are widened and narrowed wrongly: all of them",
        _all_of_few_bits,
        dtypes=NARROW,
        in_others=None,
    ),
    Kind("narrow", "one row or column, and fewer than a tile has", _narrow),
    Kind("powers-of-two", "blocks that are copied where rows take places from each other", _powers_of_two),
    Kind(
        "beyond-the-caches",
        "non-temporal stores of whole cache lines, where rows do not begin with one",
        _beyond_the_caches,
        lecture=False,
        emulated=False,
    ),
)
TRIALS = OfKernel(
    _KINDS,
    # none, one, a single row or column, several tiles and blocks, and one below, at and above each width of them
    few=[
        (0, 5), (5, 0), (1, 1), (65, 33), (33, 65), (1, 70), (70, 1), (2, 3), (17, 15), (15, 17), (16, 16), (3, 130),
        (130, 3), (31, 33), (64, 64), (63, 65), (7, 9), (128, 130), (4, 8),
    ],
    larger=[(64, 1000), (1000, 64), (257, 521), (1000, 1001)],
    shared=(700, 701),
    of_several_pages=[(97, 101), (1, 4097), (4097, 1), (300, 200)],
    of_tiles=[(95, 511), (96, 512), (97, 513), (31, 1025), (193, 127), (32, 129), (34, 33)],
)  # fmt: skip
