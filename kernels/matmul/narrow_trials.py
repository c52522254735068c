"""What matmul is tried with in formats of 16 and 8 bits. It shows how they are widened, and how products are summed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from py_backends.conformance.formats import NARROW, NARROW_FLOATS, limits
from py_backends.conformance.trials import Draw, Inputs, Kind, Shapes, Trial, drawn_from, named, of_sizes, seeded
from py_backends.contract import Problem

_SIZES = ((7, 19, 13), (33, 9, 67), (18, 66, 35), (100, 120, 130))
"""Kernels that pack, and share work among threads, do so at the last of these."""
_SHORT, _LONG = 300, 4099
"""Depths at which 8 digits, and 11, are too few to count the products."""


def _depths(problem: Problem) -> Iterator[Trial]:
    """Every k around the depths of tiles. The larger ones show more, and come first."""
    for k in range(97, 0, -1):
        yield from of_sizes([(17, 18, k)], {"{}": _one_row_is_not_a_number})


def _one_row_is_not_a_number(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """The last row of a is special. Nothing of it may reach the other rows through their padding."""
    a, b = seeded(shapes, dtype, generator)
    if dtype.kind != "i":
        a[-1] = np.nan
    return [a, b]


def _every_number(which: int, shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Every number that the bits can represent, times one."""
    inputs = [np.ones(shape, dtype) for shape in shapes]
    bits = np.arange(2 ** (8 * dtype.itemsize)).astype(f"u{dtype.itemsize}")
    inputs[which] = np.resize(bits.view(dtype), shapes[which])
    return inputs


def _any_exponent(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Each column of a has another exponent, and each row of b its opposite. All products are near one, so all count.

    In bfloat16 no element is subnormal, since the error bound would allow losing it.
    """
    of = limits(dtype)
    ends = (of.least, of.largest / 2) if dtype == np.float16 else (of.normal, 1 / of.normal)
    least, most = (round(np.log2(each)) for each in ends)
    exponents = np.resize(generator.permutation(np.arange(least, most + 1)), shapes[0][1])
    opposite = np.clip(-exponents, least, most)[:, None]
    half = 2 ** (of.digits - 1)
    a, b = (generator.integers(half, 2 * half, shape) / half * generator.choice((-1, 1), shape) for shape in shapes)
    return [np.ldexp(a, exponents).astype(dtype), np.ldexp(b, opposite).astype(dtype)]


def _conversions(problem: Problem) -> Iterator[Trial]:
    yield from of_sizes([(2**16, 1, 1)], {"{}, every number in a": partial(_every_number, 0)})
    yield from of_sizes([(1, 2**16, 1)], {"{}, every number in b": partial(_every_number, 1)})
    yield from of_sizes(_SIZES, {"{}, every exponent": _any_exponent})


def _of_two_halves(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Numbers of 9 digits, of which bfloat16 keeps 8. The rest is 1, and the sum of its products shows."""
    return drawn_from(range(257, 289, 4), shapes, dtype, generator)


def _positive(most: int, shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Sums that only grow. A narrower sum would stop growing at some point, or round what is added."""
    return drawn_from(range(1, most + 1), shapes, dtype, generator)


def _long_sums(problem: Problem) -> Iterator[Trial]:
    draws: dict[str, Draw] = {"{}, ones": partial(_positive, 1), "{}, from 1 to 9": partial(_positive, 9)}
    for k in (_SHORT, _LONG):
        yield from of_sizes([(2, 3, k), (1, 1, k), (17, 18, k)], draws, exact=True, thorough=[(17, 18, _LONG)])
    large = {"{}, from 100 to 127": partial(drawn_from, range(100, 128))}
    yield from of_sizes([(2, 3, _LONG)], large, exact=True, dtypes=("int8",))


def _largest(signs: tuple[int, int], shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Every product is 2^14, or a little less than its opposite. Two of them do not fit in 16 bits."""
    return [np.full(shape, -128 if sign < 0 else 127, dtype) for sign, shape in zip(signs, shapes, strict=True)]


def _only_ends(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    return drawn_from((-128, -127, -1, 0, 1, 127), shapes, dtype, generator)


def _saturating(problem: Problem) -> Iterator[Trial]:
    draws: dict[str, Draw] = {
        "{}, -128 everywhere": partial(_largest, (-1, -1)),
        "{}, 127 and -128": partial(_largest, (1, -1)),
        "{}, -128 and 127": partial(_largest, (-1, 1)),
        "{}, 127 everywhere": partial(_largest, (1, 1)),
    }
    yield from of_sizes([*_SIZES, (3, 5, 2), (1, 1, 4), (2, 3, 1700)], draws, exact=True, thorough=_SIZES[-1:])
    yield from of_sizes(_SIZES, {"{}, the ends": _only_ends}, exact=True)
    long: dict[str, Draw] = {"{}, which wraps around": draws["{}, -128 everywhere"], "{}, the ends": _only_ends}
    yield from of_sizes([(1, 2, 2**17 + 9)], long, exact=True)
    for k in (2**17 - 1, 2**17, 2**18 + 5):
        name = f"{named((1, 1, k))}, which wraps around" if k >= 2**17 else named((1, 1, k))
        yield Trial(name, (1, 1, k), partial(_largest, (-1, -1)), exact=True, thorough=True)


KINDS = (
    Kind(
        "depths",
        "the end of a sum left out, or padded with elements of another row: every k to 97",
        _depths,
        dtypes=NARROW,
        in_others=None,
    ),
    Kind(
        "conversions",
        "numbers that are widened wrongly: every one, and sums of every exponent",
        _conversions,
        dtypes=NARROW_FLOATS,
        in_others=None,
    ),
    Kind(
        "halves",
        "the lost low half of a number that is split in two",
        lambda _: of_sizes(_SIZES, {"{}": _of_two_halves}, exact=True),
        dtypes=("float16",),
        in_others=None,
    ),
    Kind(
        "long-sums",
        "sums in a format with too few digits",
        _long_sums,
        dtypes=NARROW,
        in_others=None,
    ),
    Kind(
        "saturation",
        "sums of bytes that stay at the largest number of 16 or 32 bits, or bytes without their sign",
        _saturating,
        dtypes=("int8",),
        in_others=None,
    ),
)
