"""What nbody is tried with beyond sizes: missing pairs, bodies on points, and distances at the ends of a format."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from py_backends.conformance.formats import FLOATS, limits
from py_backends.conformance.trials import Draw, Inputs, Kind, OfKernel, Shapes, Trial, drawn_from, named, of_sizes
from py_backends.contract import Problem

_SIZES = ((19, 17), (70, 33), (33, 130))
_MORE_SIZES = ((1, 1), (2, 2), (17, 2), (1, 300), (300, 1), (257, 129), (65, 1031), (1031, 65))
_FEW_BODIES = tuple((m, n) for n in (0, 1, 2, 3, 17) for m in (1, 15, 16, 17, 33, 64, 65))


def _at_sizes(draws: dict[str, Draw], problem: Problem) -> Iterator[Trial]:
    """Ways to draw the inputs, by names with placeholders for the sizes."""
    yield from of_sizes((*_SIZES, *_MORE_SIZES), draws, thorough=_MORE_SIZES)


def _few(problem: Problem) -> Iterator[Trial]:
    """So few bodies that each of them counts, at points that fill registers and work groups, or do not."""
    for m, n in _FEW_BODIES:
        yield Trial(named((m, n)), (m, n), partial(drawn_from, ()), thorough=n in (0, 3) or m not in (1, 17, 64))


def _one_body(which: int, shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Of all masses one is not 0."""
    at, position, mass = drawn_from((), shapes, dtype, generator)
    mass[...] = 0
    mass[which] = 1
    return [at, position, mass]


def _places(problem: Problem) -> Iterator[Trial]:
    """Each body alone counts, at the ends of tiles and within them."""
    m, n = 40, 300
    for which in (0, 1, 15, 16, 63, 64, 127, 128, 255, 256, n - 2, n - 1):
        yield Trial(
            f"body {which} alone of {n}", (m, n), partial(_one_body, which), thorough=which not in (0, 128, 255, n - 1)
        )


def _among_themselves(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Points that are bodies, as many as there are of both."""
    at, position, mass = drawn_from((), shapes, dtype, generator)
    both = min(len(at), len(position))
    at[:both] = position[:both]
    return [at, position, abs(mass)]


def _all_on_one(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """All bodies and points lie in one place, and no body attracts any."""
    at, position, mass = drawn_from((), shapes, dtype, generator)
    at[...] = position[...] = 0.75
    return [at, position, mass]


def _without_mass(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    at, position, mass = drawn_from((), shapes, dtype, generator)
    mass[generator.random(mass.shape) < 0.7] = 0
    return [at, position, mass]


def _far(distance: float, shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Bodies at about so large a distance from points, in any direction, and as heavy as to be felt there."""
    at, position, mass = drawn_from((), shapes, dtype, generator)
    scale = min(distance, limits(dtype).largest / 8)
    position[...] = (scale * position.astype(np.float64) / 4).astype(dtype)
    return [at, position, mass]


def _subnormal_masses(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    at, position, mass = drawn_from((), shapes, dtype, generator)
    mass[...] = limits(dtype).least * generator.integers(-40, 40, mass.shape)
    return [at, position, mass]


def _large_masses(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Sums that may overflow, and others that do not."""
    at, position, mass = drawn_from((), shapes, dtype, generator)
    mass[...] = generator.choice([1, -1, 0.01, 1e-6], mass.shape) * limits(dtype).largest
    return [at, position, mass]


def _special(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """A point or a body that is infinitely far away, or nowhere, or infinitely heavy."""
    inputs = drawn_from((), shapes, dtype, generator)
    for array, value in zip(inputs, generator.permutation([np.inf, np.nan, -np.inf]), strict=True):
        if array.size and generator.random() < 0.5:
            array.reshape(-1)[generator.integers(array.size)] = value
    return inputs


def _opposite(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Masses of both signs, whose sums are far smaller than their terms."""
    at, position, mass = drawn_from((), shapes, dtype, generator)
    half = len(mass) // 2
    position[half : 2 * half] = position[:half] * dtype.type(1 + 2**-5)
    mass[half : 2 * half] = -mass[:half]
    return [at, position, mass]


_KINDS = (
    Kind("few-bodies", "a pair that is left out, counted twice, or of a wrong point", _few),
    Kind("places", "a body that is missing at the end of a tile or of a register, or read from a wrong place", _places),
    Kind(
        "bodies-on-points",
        "bodies that attract themselves, or points where the force becomes infinite",
        partial(_at_sizes, {"{}, among themselves": _among_themselves, "{}, in one place": _all_on_one}),
    ),
    Kind("no-mass", "bodies without mass, which give nothing", partial(_at_sizes, {"{}": _without_mass})),
    Kind(
        "distances",
        "distances whose squares or third powers leave the format",
        partial(
            _at_sizes,
            {f"{{}}, {distance:g}": partial(_far, distance) for distance in (1e-20, 1e4, 1e12, 1e19, 1e30, 1e300)},
        ),
        dtypes=FLOATS,
    ),
    Kind("subnormals", "masses that are flushed to zero", partial(_at_sizes, {"{}": _subnormal_masses}), dtypes=FLOATS),
    Kind("overflow", "sums that overflow too early", partial(_at_sizes, {"{}": _large_masses}), dtypes=FLOATS),
    Kind("special-values", "NaN and infinity that are lost", partial(_at_sizes, {"{}": _special}), dtypes=FLOATS),
    Kind("cancellation", "sums far smaller than their terms", partial(_at_sizes, {"{}": _opposite}), dtypes=FLOATS),
)
TRIALS = OfKernel(
    _KINDS,
    # none, one, and one below, at and above each width of vectors, tiles and work groups
    few=[
        (5, 0), (0, 5), (1, 1), (17, 33), (33, 17), (65, 129), (2, 3), (3, 2), (7, 8), (8, 7), (9, 15), (15, 16),
        (16, 9), (31, 64), (32, 63), (63, 65), (64, 31), (129, 257), (257, 130),
    ],
    larger=[(300, 1000), (1000, 300)],
    shared=(300, 301),
    of_several_pages=[(1500, 40), (40, 1500), (500, 700)],
    of_tiles=[(63, 255), (64, 256), (65, 257), (31, 2), (33, 1), (255, 40), (257, 511)],
)  # fmt: skip
