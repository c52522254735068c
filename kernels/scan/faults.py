"""Wrong answers of scan, each wrong in one respect, the kinds of trials that must see it, and other right ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from py_backends.conformance.formats import FLOATS, IN_ALL_KINDS, NARROW, limits
from py_backends.contract import Array

_ALL = (*IN_ALL_KINDS, *NARROW)
_BLOCK = 256
"""Elements of a block, whose sum is carried to the next ones."""


def _sums(a: Array) -> np.dtype[Any]:
    """The format of sums."""
    return np.dtype({"float64": "float64", "int8": "int32"}.get(a.dtype.name, "float32"))


def _prefixes(a: Array) -> Array:
    """The right sums, modulo 2^32 for int8."""
    return np.cumsum(a, dtype=np.int64).astype(np.int32) if a.dtype == np.int8 else np.cumsum(a, dtype=np.float64)


Carry = Callable[[Array], Any]
"""What is added to a block: of 0 and the right sums at the ends of all blocks before it."""


def _right(ends: Array) -> Any:
    return ends[-1]


def _late(ends: Array) -> Any:
    """That of the block before the one before: the last one was not there yet."""
    return ends[-2] if len(ends) > 1 else ends[-1]


def _by_blocks(a: Array, carry: Carry, *, to_last: Carry | None = None, block: int = _BLOCK) -> Array:
    """Each block by itself, plus what is carried to it.

    to_last: what is carried to the last block, if that is not the first one as well.
    """
    a = a.astype(_sums(a))
    made, ends = np.empty_like(a), np.zeros(1, a.dtype)
    for begin in range(0, len(a), block):
        own = np.cumsum(a[begin : begin + block], dtype=a.dtype)
        is_last = 0 < begin >= len(a) - block
        made[begin : begin + block] = own + (to_last or carry if is_last else carry)(ends)
        ends = np.append(ends, ends[-1] + own[-1])
    return made


def _through_tree(a: Array) -> Array:
    """Pairs are added up, then scanned themselves, and then each first one is added: in log steps."""
    if len(a) < 2:
        return a.copy()
    even = len(a) // 2 * 2
    made = np.empty_like(a)
    made[1:even:2] = _through_tree(a[0:even:2] + a[1:even:2])
    made[0] = a[0]
    made[2::2] = made[1 : len(a) - 1 : 2] + a[2::2]
    return made


def _in_log_steps(a: Array) -> Array:
    """Each element adds the one that is 1, 2, 4 and so on before it (Hillis and Steele)."""
    apart = 1
    while apart < len(a):
        a = np.concatenate([a[:apart], a[apart:] + a[:-apart]])
        apart *= 2
    return a


def _in_lanes(a: Array) -> Array:
    """The sum of a block, which is carried, is made of 16 lanes, each of every 16th element."""
    a = a.astype(_sums(a))
    made, before = np.empty_like(a), a.dtype.type(0)
    for begin in range(0, len(a), _BLOCK):
        own = a[begin : begin + _BLOCK]
        made[begin : begin + _BLOCK] = np.cumsum(own, dtype=a.dtype) + before
        lanes = np.zeros(16, a.dtype)
        for at in range(0, len(own), 16):
            lanes[: len(own[at : at + 16])] += own[at : at + 16]
        before = before + lanes.sum(dtype=a.dtype)
    return made


def _rounded_to(narrower: str, a: Array) -> Array:
    """Sums of 256 chains side by side, each rounded to a format after each addition, and carried in the right one."""
    a = a.astype(np.float64)
    made, before = np.empty(len(a)), 0.0
    for begin in range(0, len(a), _BLOCK):
        total = 0.0
        for at in range(begin, min(begin + _BLOCK, len(a))):
            total = float(np.float64(total + a[at]).astype(narrower))
            made[at] = before + total
        before += total
    return made


def _flushed(array: Array) -> Array:
    return np.where(np.abs(array) < limits(array.dtype).normal, array * array.dtype.type(0), array)


def _has_one_exponent(a: Array) -> Array:
    """As if an array had one exponent, and a fixed point."""
    if not (a.size and np.isfinite(a).all()):
        return _prefixes(a)
    unit = float(np.abs(a.astype(np.float64)).max()) / 2**20 or 1.0
    return _prefixes(np.round(a.astype(np.float64) / unit) * unit)


def _scaled_by_the_largest(a: Array) -> Array:
    """Which is 0 where all are."""
    largest = np.abs(a.astype(np.float64)).max(initial=0)
    return np.asarray(np.cumsum(a.astype(np.float64) / largest) * largest) if a.size else _prefixes(a)


def _stops_at_32_bits(a: Array) -> Array:
    return np.clip(np.cumsum(a, dtype=np.int64), -(2**31), 2**31 - 1).astype(np.int32)


def _overflows_too_early(a: Array) -> Array:
    return np.asarray(np.cumsum(4 * a.astype(_sums(a))) / 4)


def _loses_small_sums(a: Array) -> Array:
    found = _prefixes(a)
    return np.where(np.abs(found) < np.cumsum(np.abs(a.astype(np.float64))) / 2**12, 0, found)


def _spread_over_a_vector(a: Array) -> Array:
    """By products with a triangle of ones and zeros: 0 times what is not finite is NaN, before it too."""
    a = a.astype(_sums(a))
    ones = np.tri(16, dtype=a.dtype)
    made, before = np.empty_like(a), a.dtype.type(0)
    for begin in range(0, len(a), 16):
        own = a[begin : begin + 16]
        made[begin : begin + 16] = ones[: len(own), : len(own)] @ own + before
        before = made[min(begin + 15, len(a) - 1)]
    return made


def _without_tail(a: Array, to: int) -> Array:
    """Elements behind the last full vector are not added, and their results are what was there before."""
    found = _prefixes(a)
    whole = len(a) // to * to
    found[whole:] = found[whole - 1] if whole else 0
    return found


def _shifted(a: Array) -> Array:
    """What comes before each element, without it."""
    found = np.zeros_like(_prefixes(a))
    found[1:] = _prefixes(a)[:-1]
    return found


def _without(at: int, a: Array) -> Array:
    return _prefixes(np.where(np.arange(len(a)) == at % max(1, len(a)), 0, a).astype(a.dtype))


def _through(narrower: str, a: Array) -> Array:
    return _prefixes(a.astype(narrower))


Answer = Callable[[Array], Array]
RIGHT: dict[str, tuple[Answer, tuple[str, ...]]] = {
    "carries sums from block to block": (lambda a: _by_blocks(a, _right), _ALL),
    "adds in log steps": (lambda a: _in_log_steps(a.astype(_sums(a))), _ALL),
    "adds in a tree": (lambda a: _through_tree(a.astype(_sums(a))), _ALL),
    "carries the sums of lanes": (_in_lanes, IN_ALL_KINDS),
}
_CARRIES = {"carries", "compared"}
FAULTS: dict[str, tuple[Answer, tuple[str, ...], set[str]]] = {
    "a carry is late": (lambda a: _by_blocks(a, _late), _ALL, {*_CARRIES, "places"}),
    "a carry is doubled": (lambda a: _by_blocks(a, lambda ends: 2 * ends[-1]), _ALL, {*_CARRIES, "places"}),
    "only the first block is carried": (
        lambda a: _by_blocks(a, lambda ends: ends[:2][-1]),
        _ALL,
        _CARRIES,
    ),
    "the carry of the last block is missing": (
        lambda a: _by_blocks(a, _right, to_last=lambda ends: 0 * ends[-1]),
        _ALL,
        _CARRIES,
    ),
    "sums are exclusive": (_shifted, _ALL, {*_CARRIES, "places", "special-values"}),
    "the tail after whole vectors is dropped": (lambda a: _without_tail(a, 16), _ALL, {*_CARRIES, "places"}),
    "the first is dropped": (lambda a: _without(0, a), _ALL, {*_CARRIES, "places"}),
    "one in the middle is dropped": (lambda a: _without(len(a) // 2, a), _ALL, _CARRIES),
    "neighbours are swapped": (
        lambda a: _prefixes(
            np.concatenate([a[: len(a) // 2 * 2].reshape(-1, 2)[:, ::-1].reshape(-1), a[len(a) // 2 * 2 :]])
        ),
        _ALL,
        _CARRIES,
    ),
    "sums go on from the end": (lambda a: _prefixes(a[::-1])[::-1], _ALL, {*_CARRIES, "places"}),
    "sums are in bfloat16": (lambda a: _rounded_to("bfloat16", a), FLOATS, {"carries"}),
    "sums are in float16": (lambda a: _rounded_to("float16", a), FLOATS, {"carries"}),
    "sums are in float32": (lambda a: _rounded_to("float32", a), ("float64",), {"carries"}),
    "sums stop at 32 bits": (_stops_at_32_bits, ("int8",), {"wrapping"}),
    "elements are rounded": (
        lambda a: _prefixes(a.astype("float32" if a.itemsize == 8 else "bfloat16")),
        IN_ALL_KINDS,
        {"places", "carries"},
    ),
    "what is not finite reaches elements before it": (_spread_over_a_vector, IN_ALL_KINDS, {"special-values"}),
    "infinity is a number": (
        lambda a: np.nan_to_num(_prefixes(a), nan=0, posinf=1, neginf=-1),
        IN_ALL_KINDS,
        {"special-values"},
    ),
    "a vector is scaled by its largest element": (_scaled_by_the_largest, IN_ALL_KINDS, {"zeros"}),
    "subnormal numbers are flushed": (
        lambda a: _prefixes(_flushed(a)),
        (*IN_ALL_KINDS, "float16"),
        {"subnormals", "every-number"},
    ),
    "sums overflow too early": (_overflows_too_early, IN_ALL_KINDS, {"overflow"}),
    "small sums are lost": (_loses_small_sums, IN_ALL_KINDS, {"cancellation"}),
    "an array has one exponent": (_has_one_exponent, IN_ALL_KINDS, {"scales"}),
    "numbers pass through bfloat16": (lambda a: _through("bfloat16", a), ("float16",), {"every-number"}),
    "numbers pass through float16": (lambda a: _through("float16", a), ("bfloat16",), {"every-number"}),
    "the carry of the last of many blocks is late": (
        lambda a: _by_blocks(a, _right, to_last=_late if len(a) > 2**21 else _right, block=2**15),
        ("float32",),
        {"beyond-the-caches"},
    ),
}
