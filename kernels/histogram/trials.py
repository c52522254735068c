"""What histogram is tried with beyond sizes: elements that meet in one bin, edges of bins, numbers of no bin.

Every count is checked bit by bit. So a lost one shows, and so does one too many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
    at_places,
    drawn_from,
    of_sizes,
)
from py_backends.contract import Array, Problem
from py_backends.system import caches

from .problem import BINS, PROBLEM, center

_LENGTHS = (19, 531, 2053, 70_001)
_MORE_LENGTHS = (1, 2, 3, 4, 5, 8, 16, 33, 64, 129, 257, 1025, 4097, 65_537, 131_073, 300_007)
"""Around what a register, a work item, a group or a thread takes. Threads share the last ones."""
Bins = Callable[[int, np.random.Generator], Array]
"""Gives the bins of so many elements."""


def _of_bins(bins: Bins, shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Elements in the middle of their bins."""
    middles = np.array([center(k, dtype) for k in range(BINS)]).astype(dtype)
    return [middles[bins(shapes[0][0], generator)]]


def _one(n: int, generator: np.random.Generator) -> Array:
    return np.full(n, generator.integers(BINS))


def _two_in_turn(n: int, generator: np.random.Generator) -> Array:
    return generator.integers(BINS - 1) + np.arange(n) % 2


def _in_runs(n: int, generator: np.random.Generator) -> Array:
    """As sorted elements are."""
    return np.sort(generator.integers(0, BINS, n))


def _by_zipf(n: int, generator: np.random.Generator) -> Array:
    """The k-th most frequent bin has 1 / k of the most frequent one's elements (Zipf 1949). They stand in any order."""
    weights = 1 / np.arange(1, BINS + 1)
    return generator.permutation(BINS)[generator.choice(BINS, n, p=weights / weights.sum())]


def _uniform(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """As `compare` has them."""
    return [np.asarray(each).astype(dtype) for each in PROBLEM.draw(shapes[0], dtype, generator)]


def _edges(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """The first number of a bin, the last one of the bin before, and the ends of all bins."""
    firsts = (np.arange(BINS + 1) / BINS).astype(dtype)
    return [generator.choice(np.concatenate([firsts, np.nextafter(firsts, dtype.type(-1))]), shapes[0])]


def _outside(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Numbers of no bin, and a few of some. Times 256, the large ones are whole numbers of more than 32 and 64 bits."""
    of, one = limits(dtype), dtype.type(1)
    beside = [1.0, float(np.nextafter(one, 2 * one)), 1.5, 255.0, 256.0, 2.0**15, -0.5, -1.0, -0.001, -256.0]
    others = [np.inf, -np.inf, np.nan, of.largest, -of.largest, 2.0**24, 2.0**55, -(2.0**24), -(2.0**56)]
    return drawn_from([*beside, *others, 0.25, 0.999], shapes, dtype, generator)


def _zeros(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    return drawn_from([0.0, -0.0, 0.0, -0.0, 0.5], shapes, dtype, generator)


def _subnormal(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """The positive ones are in bin 0, and the negative ones in none."""
    of = limits(dtype)
    values = [of.least, -of.least, 3 * of.least, of.normal - of.least, of.least - of.normal, of.normal, -of.normal]
    return drawn_from(values, shapes, dtype, generator)


def _every_number(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Every number that the bits of a format can represent, NaN too, in an order that the seed chooses."""
    every = np.arange(2 ** (8 * dtype.itemsize), dtype=f"u{dtype.itemsize}").view(dtype)
    return [np.resize(generator.permutation(every), shapes[0])]


def _one_inside(at: int, shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """All are of no bin but one. In int8, all are of one bin but one."""
    a = np.full(shapes[0], np.nan if dtype.kind == "f" or dtype.itemsize > 1 else 5).astype(dtype)
    a[at] = np.asarray(center(int(generator.integers(BINS)), dtype)).astype(dtype)
    return [a]


def _at_lengths(draw: Draw, problem: Problem, *, lengths: tuple[int, ...] = _LENGTHS) -> Iterator[Trial]:
    every = [(n,) for n in (*lengths, *_MORE_LENGTHS)]
    yield from of_sizes(every, {"{}": draw}, thorough=[(n,) for n in _MORE_LENGTHS])


def _all_of_few_bits(problem: Problem) -> Iterator[Trial]:
    """A few more than there are of 16 bits, and of 8."""
    yield from of_sizes([(65_543,)], {"{}": _every_number}, dtypes=NARROW_FLOATS)
    yield from of_sizes([(259,), (1031,)], {"{}": _every_number}, dtypes=("int8",))


def _long(problem: Problem) -> Iterator[Trial]:
    """Vectors that fit no cache. Their counters have more than 16 bits."""
    for dtype in ("float32", "float64", *NARROW_FLOATS, "int8"):
        n = max(2**25, caches.last_level_cache()) // np.dtype(dtype).itemsize + 4099
        for name, draw in (("uniform", _uniform), ("one bin", partial(_of_bins, _one))):
            thorough = dtype != "float32" or name == "uniform"
            yield Trial(f"{n}, {name}", (n,), draw, starts=(1, 0), dtypes=(dtype,), thorough=thorough)


def _kind(name: str, protects: str, draw: Draw, **how: Any) -> Kind[Trial]:
    return Kind(name, protects, partial(_at_lengths, draw), **how)


_KINDS = (
    _kind(
        "uniform", "an element that is left out or counted twice, or a table that is forgotten", _uniform, in_others=4
    ),
    _kind(
        "one-bin",
        "an increment that is lost where the one before is of the same bin, and counters of too few bits",
        partial(_of_bins, _one),
        in_others=3,
    ),
    _kind(
        "two-bins",
        "an increment that is lost where the one before the last is of the same bin",
        partial(_of_bins, _two_in_turn),
        in_others=1,
    ),
    _kind("sorted", "runs of one bin that are cut short where the next one begins", partial(_of_bins, _in_runs)),
    _kind("zipf", "a frequent bin whose counter is replaced by an older one", partial(_of_bins, _by_zipf)),
    Kind(
        "places",
        "a single element at the end of a register, a group or the vector",
        lambda _: at_places(_one_inside),
        in_others=4,
    ),
    _kind(
        "edges", "numbers at the ends of a bin that are counted in its neighbour", _edges, dtypes=FLOATS, in_others=2
    ),
    _kind("outside", "numbers of no bin that are counted: 1, negative ones, infinity, NaN", _outside, dtypes=FLOATS),
    _kind("zeros", "zeros of either sign, which are in bin 0", _zeros, dtypes=FLOATS),
    _kind("subnormals", "subnormal numbers that are flushed to zero", _subnormal, dtypes=FLOATS, in_others=2),
    Kind(
        "every-number",
        "numbers of few bits that are widened wrongly: all of them",
        _all_of_few_bits,
        dtypes=NARROW,
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
