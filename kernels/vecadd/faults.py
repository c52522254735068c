"""Wrong answers of vecadd, each wrong in one respect, the kinds of trials that must see it, and other right ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from py_backends.conformance.formats import IN_ALL_KINDS, NARROW_FLOATS, limits
from py_backends.contract import Array


def _added(a: Array, b: Array) -> Array:
    return np.asarray(a + b)


def _wide(array: Array) -> Array:
    return array.astype(np.float32 if array.itemsize == 2 else np.float64)


def _flushed(array: Array) -> Array:
    return np.where(np.abs(array) < limits(array.dtype).normal, array * array.dtype.type(0), array)


def _swaps_the_last_two(a: Array, b: Array) -> Array:
    return _added(a, np.concatenate([b[:-2], b[-2:][::-1]]))


def _loses_signs_of_zeros(a: Array, b: Array) -> Array:
    c = _added(a, b)
    return np.where(c == 0, c.dtype.type(0), c)


def _cuts_off(a: Array, b: Array) -> Array:
    exact = _wide(a) + _wide(b)
    c = exact.astype(a.dtype)
    beyond = np.isfinite(c) & (np.abs(_wide(c)) > np.abs(exact))
    c[beyond] = np.nextafter(c[beyond], a.dtype.type(0))
    return c


def _stops_at_the_largest(a: Array, b: Array) -> Array:
    c, largest = _added(a, b), limits(a.dtype).largest
    beyond = np.isinf(c) & np.isfinite(a) & np.isfinite(b)
    return np.where(beyond, np.copysign(c.dtype.type(largest), c), c)


def _rounds_inputs(a: Array, b: Array) -> Array:
    narrower = "float32" if a.dtype == np.float64 else "bfloat16"
    return _added(a.astype(narrower).astype(a.dtype), b.astype(narrower).astype(a.dtype))


def _loses_small_sums(a: Array, b: Array) -> Array:
    """As if what cancels were kept in half precision."""
    c = _added(a, b)
    c[np.abs(c) < _added(np.abs(a), np.abs(b)) / 2**12] = 0
    return c


def _has_one_exponent(a: Array, b: Array) -> Array:
    """As if an array had one exponent, and a fixed point."""
    if not (np.isfinite(a).all() and np.isfinite(b).all() and a.size):
        return _added(a, b)
    steps = [float(np.abs(x).max()) / 2**40 or 1.0 for x in (a, b)]
    fixed = (np.round(x.astype(np.float64) / step) * step for x, step in zip((a, b), steps, strict=True))
    return _added(*(x.astype(a.dtype) for x in fixed))


def _spreads_from_the_edge(a: Array, b: Array) -> Array:
    c = _added(a, b)
    if c.size and not np.isfinite(c[-1]):
        c[-4:] = np.nan
    return c


def _rounds_ties_up(a: Array, b: Array) -> Array:
    """By adding half of the last digit, without a look at the digit before."""
    exact = _wide(a) + _wide(b)
    c = ((exact.view(np.uint32) + 0x8000) >> 16).astype(np.uint16).view(a.dtype)
    return np.where(np.isnan(exact), a.dtype.type(np.nan), c)


def _drops_the_last_of_a_long_one(a: Array, b: Array) -> Array:
    c = _added(a, b)
    c[2**21 :][-1:] = 0
    return c


_ALL = (*IN_ALL_KINDS, *NARROW_FLOATS)
Answer = Callable[[Array, Array], Array]
RIGHT: dict[str, tuple[Answer, tuple[str, ...]]] = {
    "adds in float64": (lambda a, b: (a.astype(np.float64) + b.astype(np.float64)).astype(a.dtype), NARROW_FLOATS),
}
FAULTS: dict[str, tuple[Answer, tuple[str, ...], set[str]]] = {
    "the last two elements are exchanged": (_swaps_the_last_two, IN_ALL_KINDS, {"indices", "shapes"}),
    "signs of zeros are lost": (_loses_signs_of_zeros, IN_ALL_KINDS, {"signed-zeros", "special-values"}),
    "sums are cut off": (_cuts_off, ("float32", *NARROW_FLOATS), {"rounding", "shapes", "every-number"}),
    "ties are rounded up": (_rounds_ties_up, ("bfloat16",), {"every-number"}),
    "sums stop at the largest number": (_stops_at_the_largest, _ALL, {"overflow", "every-number"}),
    "inputs are rounded": (_rounds_inputs, IN_ALL_KINDS, {"precision"}),
    "small sums are lost": (_loses_small_sums, IN_ALL_KINDS, {"cancellation"}),
    "an array has one exponent": (_has_one_exponent, IN_ALL_KINDS, {"scales"}),
    "what is not finite spreads": (_spreads_from_the_edge, IN_ALL_KINDS, {"not-finite-at-the-edge"}),
    "subnormal inputs are flushed": (
        lambda a, b: _added(_flushed(a), _flushed(b)),
        _ALL,
        {"subnormals", "every-number"},
    ),
    "subnormal sums are flushed": (lambda a, b: _flushed(_added(a, b)), _ALL, {"subnormals", "every-number"}),
    "the last of a long vector is lost": (_drops_the_last_of_a_long_one, ("float32",), {"beyond-the-caches"}),
}
