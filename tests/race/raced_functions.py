"""Functions that tests race, right ones and wrong ones. They travel by this module."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def off_at_the_end(x: Array) -> Array:
    y = np.cumsum(x)
    y[-1] += 1
    return y


def in_float32(x: Array) -> Array:
    return np.cumsum(x.astype(np.float32)).astype(x.dtype)


def too_short(x: Array) -> Array:
    return np.cumsum(x)[:-1]


def in_other_format(x: Array) -> Array:
    return np.cumsum(x, dtype=np.float32)


def two_outputs(x: Array) -> tuple[Array, Array]:
    return np.cumsum(x), x


def nothing(x: Array) -> None:
    return None


def raises(x: Array) -> Array:
    raise RuntimeError("no such luck")


def changes_its_input(x: Array) -> Array:
    x[0] = 0
    return np.cumsum(x)


def ends_the_process(x: Array) -> Array:
    os._exit(3)


def never_ends(x: Array) -> Array:
    while True:
        pass


def prints_for_ever(x: Array) -> Array:
    while True:
        print("still here")


def sums_in_float32(x: Array) -> Array:
    return np.cumsum(x, dtype=np.float32).astype(x.dtype)


def weighted(x: Array, weights: Array) -> Array:
    return x * weights


def weighted_in_float32(x: Array, weights: Array) -> Array:
    return (x.astype(np.float32) * weights.astype(np.float32)).astype(np.float64)


def unbounded(x: Array) -> Array:
    return x % 2


def of_every_kind(*arrays: Array) -> tuple[Array, ...]:
    """The arrays from back to front, and something of each."""
    *others, number = arrays
    return tuple(np.flip(each) for each in others) if number == 3 else ()


def of_every_kind_again(*arrays: Array) -> tuple[Array, ...]:
    *others, _ = arrays
    return tuple(np.array(each[(slice(None, None, -1),) * each.ndim]) for each in others)


def ones(x: Array) -> Array:
    return np.ones(len(x))


def twos(x: Array) -> Array:
    return np.full(len(x), 2.0)


_BY_CONTENT: dict[bytes, Array] = {}
_BY_ADDRESS: dict[int, Array] = {}


def slow_cumsum(x: Array) -> Array:
    time.sleep(0.002)
    return np.cumsum(x)


def kept_by_content(x: Array) -> Array:
    key = x.tobytes()
    if key not in _BY_CONTENT:
        _BY_CONTENT[key] = slow_cumsum(x)
    return _BY_CONTENT[key]


def kept_by_address(x: Array) -> Array:
    key = x.ctypes.data
    if key not in _BY_ADDRESS:
        _BY_ADDRESS[key] = slow_cumsum(x)
    return _BY_ADDRESS[key]


_FIRST: list[Array] = []


def first_for_ever(x: Array) -> Array:
    if not _FIRST:
        _FIRST.append(np.cumsum(x))
    return _FIRST[0]


def raises_on_others(own: Array, x: Array) -> Array:
    if x.tobytes() != own.tobytes():
        raise ValueError("other numbers")
    return np.cumsum(x)


def ends_on_others(own: Array, x: Array) -> Array:
    if x.tobytes() != own.tobytes():
        os._exit(3)
    return np.cumsum(x)
