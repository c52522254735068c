"""Wrong answers of transpose, each wrong in one respect, and the kinds of trials that must see it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from py_backends.conformance.formats import FLOATS, IN_ALL_KINDS, NARROW, limits
from py_backends.contract import Array

_ALL = (*IN_ALL_KINDS, *NARROW)


def _moved(a: Array) -> Array:
    return a.T.copy()


def _changed(a: Array, where: tuple[slice, slice]) -> Array:
    """The right result but for a part, which is as far from right as another element."""
    c = _moved(a)
    c[where] = np.roll(c, 1)[where]
    return c


def _keeps_squares(a: Array) -> Array:
    """Whole tiles of 16 x 16 take their places, and their elements stay as they were in them."""
    c = _moved(a)
    for i in range(0, c.shape[0] - 15, 16):
        for j in range(0, c.shape[1] - 15, 16):
            c[i : i + 16, j : j + 16] = a[j : j + 16, i : i + 16]
    return c


def _takes_another_of_a_power(a: Array) -> Array:
    """Rows that lie a power of two apart are one place of a buffer."""
    c = _moved(a)
    if c.shape[1] % 256 == 0 and c.shape[0] > 256:
        c[256:] = c[: len(c) - 256]
    elif c.shape[0] % 256 == 0 and c.shape[1] > 256:
        c[:, 256:] = c[:, : c.shape[1] - 256]
    return c


def _loses_the_end_of_a_long_one(a: Array) -> Array:
    return _changed(a, (slice(-1, None), slice(None))) if a.nbytes > 2**23 else _moved(a)


def _flushed(a: Array) -> Array:
    return np.where(np.abs(a) < limits(a.dtype).normal, a * a.dtype.type(0), a)


def _through(a: Array) -> Array:
    """Through a lower precision."""
    narrower = {"float64": "float32", "float32": "bfloat16", "float16": "bfloat16", "bfloat16": "float16"}
    return a.astype(narrower.get(a.dtype.name, a.dtype.name)).astype(a.dtype)


Answer = Callable[[Array], Array]
FAULTS: dict[str, tuple[Answer, tuple[str, ...], set[str]]] = {
    "sizes are exchanged": (lambda a: a.reshape(a.shape[::-1]).copy(), _ALL, {"shapes", "indices"}),
    "elements stay in their squares": (_keeps_squares, _ALL, {"indices"}),
    "the last row is another one": (lambda a: _changed(a, (slice(-1, None), slice(None))), IN_ALL_KINDS, {"narrow"}),
    "the last column is another one": (lambda a: _changed(a, (slice(None), slice(-1, None))), IN_ALL_KINDS, {"narrow"}),
    "rows share a place of a buffer": (_takes_another_of_a_power, ("float32",), {"powers-of-two"}),
    "the end of a large matrix is another one": (_loses_the_end_of_a_long_one, ("float32",), {"beyond-the-caches"}),
    "NaN is a number": (lambda a: _moved(np.nan_to_num(a)), IN_ALL_KINDS, {"special-values"}),
    "signs of zeros are lost": (lambda a: _moved(np.where(a == 0, np.abs(a), a)), IN_ALL_KINDS, {"special-values"}),
    "subnormal numbers are flushed": (lambda a: _moved(_flushed(a)), FLOATS, {"subnormals", "every-number"}),
    "numbers pass through another format": (lambda a: _moved(_through(a)), FLOATS, {"precision", "every-number"}),
    "bytes lose their sign": (lambda a: _moved(np.abs(a)), ("int8",), {"every-number"}),
}
