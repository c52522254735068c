"""Wrong answers of dot, each wrong in one respect, the kinds of trials that must see it, and other right ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from py_backends.conformance.formats import FLOATS, IN_ALL_KINDS, NARROW, limits
from py_backends.contract import Array

_ALL = (*IN_ALL_KINDS, *NARROW)


def _sums(a: Array) -> np.dtype[Any]:
    """The format of sums."""
    return np.dtype({"float64": "float64", "int8": "int32"}.get(a.dtype.name, "float32"))


def _total(a: Array, b: Array) -> Array:
    """The sum, modulo 2^32 for int8."""
    if a.dtype == np.int8:
        return np.asarray(np.int64((a.astype(np.int64) * b).sum()).astype(np.int32))
    return np.asarray((a.astype(np.float64) * b.astype(np.float64)).sum())


def _of_lanes(a: Array, b: Array, lanes: int, narrower: str) -> Array:
    """In so many sums, each of which is rounded to a format after each addition."""
    terms = np.zeros(-(-len(a) // lanes) * lanes, np.float64)
    terms[: len(a)] = a.astype(np.float64) * b.astype(np.float64)
    sums = np.zeros(lanes)
    for row in terms.reshape(-1, lanes):
        sums = (sums + row).astype(narrower).astype(np.float64)
    return np.asarray(sums.sum())


def _with_neighbours_swapped(a: Array) -> Array:
    """Elements in pairs, each pair the wrong way round."""
    turned, whole = a.copy(), len(a) // 2 * 2
    turned[:whole] = a[:whole].reshape(-1, 2)[:, ::-1].reshape(-1)
    return turned


def _without(at: int, a: Array, b: Array) -> Array:
    return _total(np.delete(a, slice(at, at + 1)), np.delete(b, slice(at, at + 1)))


def _again(part: slice, a: Array, b: Array) -> Array:
    """A part counts twice."""
    return _total(np.append(a, a[part]), np.append(b, b[part]))


def _products(change: Callable[[Array], Array], a: Array, b: Array) -> Array:
    """With products in the format of sums, changed."""
    return np.asarray(change(a.astype(_sums(a)) * b.astype(_sums(a))).sum(dtype=np.float64))


def _flushed(array: Array) -> Array:
    return np.where(np.abs(array) < limits(array.dtype).normal, array * array.dtype.type(0), array)


def _loses_small_sums(a: Array, b: Array) -> Array:
    total = _total(a, b)
    return np.where(np.abs(total) < _total(np.abs(a), np.abs(b)) / 2**12, 0, total)


def _without_the_last(a: Array, b: Array) -> Array:
    """The last product that is not zero: there is one among 64."""
    end = int(np.flatnonzero(a[-64:] * b[-64:])[-1]) - 64
    return _total(a[:end], b[:end])


def _has_one_exponent(a: Array, b: Array) -> Array:
    """As if an array had one exponent, and a fixed point."""
    if not (a.size and np.isfinite(a).all() and np.isfinite(b).all()):
        return _total(a, b)
    units = [float(np.abs(x).max()) / 2**20 or 1.0 for x in (a, b)]
    return _total(*(np.round(x.astype(np.float64) / unit) * unit for x, unit in zip((a, b), units, strict=True)))


def _stops_at_32_bits(a: Array, b: Array) -> Array:
    """Before the last product is added."""
    terms = a.astype(np.int64) * b
    return np.asarray(np.clip(terms[:-1].sum(), -(2**31), 2**31 - 1) + terms[-1:].sum()).astype(np.int32)


def _scaled_by_the_largest(a: Array, b: Array) -> Array:
    """Which is 0 where all are."""
    largest = np.abs(a.astype(np.float64)).max(initial=0)
    return np.asarray(_total(a.astype(np.float64) / largest, b) * largest) if a.size else _total(a, b)


def _overflows_too_early(a: Array, b: Array) -> Array:
    return np.asarray(4 * (a.astype(_sums(a)) / 4 * (4 * b.astype(_sums(a)) * 4)).sum() / 16)


def _skips_zeros(a: Array, b: Array) -> Array:
    counts = (a != 0) & (b != 0)
    return _total(a[counts], b[counts])


def _through(narrower: str, a: Array, b: Array) -> Array:
    return _total(a.astype(narrower), b.astype(narrower))


def _in_order(order: int, a: Array, b: Array) -> Array:
    """One by one, in the format of sums."""
    terms = a[::order].astype(_sums(a)) * b[::order].astype(_sums(a))
    return np.asarray(np.cumsum(terms, dtype=_sums(a))[-1] if len(terms) else 0)


Answer = Callable[[Array, Array], Array]
RIGHT: dict[str, tuple[Answer, tuple[str, ...]]] = {
    "adds one by one": (lambda a, b: _in_order(1, a, b), _ALL),
    "adds from the end": (lambda a, b: _in_order(-1, a, b), _ALL),
    "adds in 256 sums": (lambda a, b: _of_lanes(a, b, 256, _sums(a).name), IN_ALL_KINDS),
}
_NOTHING_MISSING = {"nothing-missing", "compared"}
FAULTS: dict[str, tuple[Answer, tuple[str, ...], set[str]]] = {
    "the first is dropped": (lambda a, b: _without(0, a, b), _ALL, _NOTHING_MISSING),
    "one in the middle is dropped": (lambda a, b: _without(len(a) // 2, a, b), _ALL, _NOTHING_MISSING),
    "one is doubled": (lambda a, b: _again(slice(len(a) // 3, len(a) // 3 + 1), a, b), _ALL, _NOTHING_MISSING),
    "the last is dropped": (lambda a, b: _total(a[:-1], b[:-1]), _ALL, {*_NOTHING_MISSING, "places"}),
    "the tail after whole vectors is dropped": (
        lambda a, b: _total(a[: len(a) // 16 * 16], b[: len(a) // 16 * 16]),
        _ALL,
        _NOTHING_MISSING,
    ),
    "the tail is added twice": (lambda a, b: _again(slice(-5, None), a, b), _ALL, _NOTHING_MISSING),
    "neighbours are swapped": (lambda a, b: _total(_with_neighbours_swapped(a), b), _ALL, _NOTHING_MISSING),
    "one of the vectors begins an element later": (lambda a, b: _total(a[:-1], b[1:]), _ALL, _NOTHING_MISSING),
    "sums are in bfloat16": (lambda a, b: _of_lanes(a, b, 256, "bfloat16"), FLOATS, _NOTHING_MISSING),
    "sums are in float16": (lambda a, b: _of_lanes(a, b, 256, "float16"), FLOATS, _NOTHING_MISSING),
    "sums are in float32": (lambda a, b: _of_lanes(a, b, 256, "float32"), ("float64",), _NOTHING_MISSING),
    "sums stop at 32 bits": (_stops_at_32_bits, ("int8",), {"wrapping"}),
    "products are rounded": (
        lambda a, b: _products(lambda c: c.astype("float32" if c.itemsize == 8 else "bfloat16"), a, b),
        IN_ALL_KINDS,
        {"places"},
    ),
    "products of zeros are left out": (_skips_zeros, IN_ALL_KINDS, {"special-values"}),
    "a vector is scaled by its largest element": (_scaled_by_the_largest, IN_ALL_KINDS, {"zeros"}),
    "subnormal products are flushed": (lambda a, b: _products(_flushed, a, b), IN_ALL_KINDS, {"subnormals"}),
    "subnormal inputs are flushed": (
        lambda a, b: _total(_flushed(a), _flushed(b)),
        (*IN_ALL_KINDS, "float16"),
        {"subnormals", "every-number"},
    ),
    "products overflow too early": (_overflows_too_early, IN_ALL_KINDS, {"overflow"}),
    "small sums are lost": (_loses_small_sums, IN_ALL_KINDS, {"cancellation"}),
    "an array has one exponent": (_has_one_exponent, IN_ALL_KINDS, {"scales"}),
    "numbers pass through bfloat16": (lambda a, b: _through("bfloat16", a, b), ("float16",), {"every-number"}),
    "numbers pass through float16": (lambda a, b: _through("float16", a, b), ("bfloat16",), {"every-number"}),
    "one of millions is dropped": (
        lambda a, b: _without_the_last(a, b) if len(a) > 2**21 else _total(a, b),
        ("float32",),
        {"beyond-the-caches"},
    ),
}
