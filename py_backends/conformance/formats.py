"""What inputs of each number format may be: how large, how exact, how far apart."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from py_backends import registry
from py_backends.contract import Array
from py_backends.number_formats import DTYPES

IN_ALL_KINDS = ("float32", "float64")
"""The formats in which a quick run tries every kind. In the others it tries what these do not show."""
FLOATS = tuple(name for name in DTYPES if np.dtype(name).kind != "i")
NARROW_FLOATS = tuple(name for name in FLOATS if np.dtype(name).itemsize == 2)
NARROW = tuple(name for name in DTYPES if name not in IN_ALL_KINDS)


class Limits(NamedTuple):
    """The properties of a format.

    digits: how many binary digits of a whole number are exact.
    lower_digits: how many are left in a lower precision, as in TF32 or in half of the bits.
    least, largest: its smallest and its largest positive number.
    normal: its smallest number that is not subnormal.
    step: the distance from 1 to the next number.
    reach: a power of two. Most numbers near 1 stay exact when multiplied or divided by it.
    """

    digits: int
    lower_digits: int
    least: float
    normal: float
    largest: float
    step: float
    reach: int


@cache
def limits(dtype: np.dtype[Any]) -> Limits:
    """What is to be known of a format."""
    if dtype.kind == "i":
        digits = 8 * dtype.itemsize - 1
        return Limits(digits, digits - 1, 1, 1, float(np.iinfo(dtype).max), 1, 0)
    found = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]  # it has no types
    least, normal, largest, step = (
        float(each) for each in (found.smallest_subnormal, found.smallest_normal, found.max, found.eps)
    )
    reach = min(60, found.maxexp // 2)
    return Limits(found.nmant + 1, _lower_digits(found.nmant + 1), least, normal, largest, step, reach)


def _lower_digits(digits: int) -> int:
    """The digits of the next less exact format, or half of them where there is none."""
    all_digits = {ml_dtypes.finfo(np.dtype(name)).nmant + 1 for name in FLOATS}  # type: ignore[no-untyped-call]
    return max((each for each in all_digits if each < digits), default=digits // 2)


def converted(values: Array, dtype: np.dtype[Any]) -> Array:
    """The nearest numbers in a format to some of float64.

    Too large ones become infinity, or the largest number where there is none.
    """
    if dtype.kind == "i":
        range_of = np.iinfo(dtype)
        values = np.clip(np.nan_to_num(values), range_of.min, range_of.max)
    with np.errstate(over="ignore"):
        return values.astype(dtype)


def of_sums(kernel: str, dtype: np.dtype[Any]) -> Limits:
    """The properties of the format that a kernel computes in, given the format of its inputs."""
    return limits(registry.problem(kernel).sum_dtype(dtype))
