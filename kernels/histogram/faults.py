"""Wrong answers of histogram, each wrong in one respect, the kinds of trials that must see it, and other right ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from py_backends.conformance.formats import FLOATS, IN_ALL_KINDS, NARROW, NARROW_FLOATS, limits
from py_backends.contract import Array

from .problem import BINS, bins

_ALL = (*IN_ALL_KINDS, *NARROW)


def _counts(of_bins: Array) -> Array:
    return np.bincount(of_bins, minlength=BINS)[:BINS]


def _one_by_one(a: Array) -> Array:
    """By comparisons with the edges of the bins, from the end."""
    edges = np.arange(BINS + 1) - 128 if a.dtype == np.int8 else np.arange(BINS + 1) / BINS
    places = np.searchsorted(edges, a[::-1].astype(np.float64), side="right") - 1
    return _counts(places[(places >= 0) & (places < BINS)])


def _in_tables(tables: int, kept: int, a: Array) -> Array:
    """In so many tables by turns, of which so many are added up."""
    counts = np.zeros(BINS, np.int64)
    for table in range(kept):
        counts += _counts(bins(a[table::tables]))
    return counts


def _loses_one_of_two(apart: int, a: Array) -> Array:
    """Two increments so far apart read the same count, where their bin is the same."""
    found = bins(a)
    lost = np.zeros(len(found), bool)
    lost[apart:] = found[apart:] == found[:-apart]
    lost[1::2] &= apart > 1  # every other one, so that it is not lost with the one that it meets
    return _counts(found[~lost])


def _ends_runs_early(a: Array) -> Array:
    """A run is counted when its end is seen: the last one is not."""
    found = bins(a)
    ends = np.flatnonzero(np.diff(found)) + 1
    return _counts(found[: ends[-1] if len(ends) else 0])


def _takes_an_older_count(a: Array) -> Array:
    """The most frequent bin is written back as it was when a half was counted."""
    counts, half = _counts(bins(a)), _counts(bins(a[: len(a) // 2]))
    most = int(counts.argmax())
    if 8 * counts[most] < counts.sum():
        return counts
    counts[most] = half[most]
    return counts


def _by_rounding(a: Array) -> Array:
    """To the nearest whole number, as some conversions do."""
    x = a.astype(np.float64)
    return _counts(np.rint(BINS * x[(x >= 0) & (x < 1)]).astype(np.intp))


def _with_left_ends(a: Array) -> Array:
    """An edge belongs to the bin before it."""
    x = a.astype(np.float64)
    return _counts(np.maximum(np.ceil(BINS * x[(x >= 0) & (x < 1)]) - 1, 0).astype(np.intp))


def _with_more(where: Callable[[Array], Array], k: int, a: Array) -> Array:
    """Some that are of no bin are counted in one."""
    counts = _counts(bins(a))
    counts[k] += np.count_nonzero(where(a.astype(np.float64)))
    return counts


def _flushed(a: Array) -> Array:
    return np.where(np.abs(a) < limits(a.dtype).normal, a * a.dtype.type(0), a)


def _through(narrower: str, a: Array) -> Array:
    return _counts(bins(a.astype(narrower)))


Answer = Callable[[Array], Array]
RIGHT: dict[str, tuple[Answer, tuple[str, ...]]] = {
    "finds bins by their edges, from the end": (_one_by_one, _ALL),
    "has a table for each of four elements": (lambda a: _in_tables(4, 4, a), _ALL),
}
FAULTS: dict[str, tuple[Answer, tuple[str, ...], set[str]]] = {
    "two increments at once count as one": (lambda a: _loses_one_of_two(1, a), _ALL, {"one-bin"}),
    "an increment is lost two after another": (lambda a: _loses_one_of_two(2, a), IN_ALL_KINDS, {"two-bins"}),
    "the last run is not counted": (_ends_runs_early, IN_ALL_KINDS, {"sorted"}),
    "an older count is written back": (_takes_an_older_count, IN_ALL_KINDS, {"zipf"}),
    "a table is forgotten": (lambda a: _in_tables(4, 3, a), _ALL, {"uniform", "compared"}),
    "the first is dropped": (lambda a: _counts(bins(a[1:])), _ALL, {"uniform", "compared", "places"}),
    "the last is dropped": (lambda a: _counts(bins(a[:-1])), _ALL, {"uniform", "compared", "places"}),
    "the tail after whole vectors is dropped": (
        lambda a: _counts(bins(a[: len(a) // 16 * 16])),
        _ALL,
        {"uniform", "compared", "places"},
    ),
    "the last is counted twice": (
        lambda a: _counts(bins(np.append(a, a[-1:]))),
        _ALL,
        {"uniform", "compared"},
    ),
    "counters have 8 bits": (lambda a: _counts(bins(a)) % 2**8, _ALL, {"one-bin"}),
    "counters have 16 bits": (lambda a: _counts(bins(a)) % 2**16, IN_ALL_KINDS, {"one-bin"}),
    "a bin has its right end, not its left": (_with_left_ends, FLOATS, {"edges"}),
    "bins are rounded to": (_by_rounding, FLOATS, {"edges"}),
    "1 is counted": (lambda a: _with_more(lambda x: x == 1, BINS - 1, a), IN_ALL_KINDS, {"edges", "outside"}),
    "NaN is counted": (lambda a: _with_more(np.isnan, 0, a), IN_ALL_KINDS, {"outside"}),
    "small negative numbers are truncated to bin 0": (
        lambda a: _with_more(lambda x: (x < 0) & (x > -1 / BINS), 0, a),
        IN_ALL_KINDS,
        {"outside"},
    ),
    "large numbers are in the last bin": (
        lambda a: _with_more(lambda x: x > 1, BINS - 1, a),
        IN_ALL_KINDS,
        {"outside"},
    ),
    "bins wrap around": (
        lambda a: _with_more(lambda x: (x == BINS) | (x == -BINS), 0, a),
        IN_ALL_KINDS,
        {"outside"},
    ),
    "-0 is not counted": (lambda a: _counts(bins(a[~((a == 0) & np.signbit(a))])), IN_ALL_KINDS, {"zeros"}),
    "subnormal numbers are flushed": (
        lambda a: _counts(bins(_flushed(a))),
        (*IN_ALL_KINDS, *NARROW_FLOATS),
        {"subnormals"},
    ),
    "subnormal numbers are not counted": (
        lambda a: _counts(bins(a[(a == 0) | (np.abs(a) >= limits(a.dtype).normal)])),
        (*IN_ALL_KINDS, *NARROW_FLOATS),
        {"subnormals"},
    ),
    "numbers pass through bfloat16": (lambda a: _through("bfloat16", a), ("float16",), {"every-number"}),
    "numbers pass through float16": (lambda a: _through("float16", a), ("bfloat16",), {"every-number"}),
    "bytes lose their sign": (
        lambda a: _counts(a.view(np.uint8).astype(np.intp)),
        ("int8",),
        {"every-number"},
    ),
    "the last of millions is dropped": (
        lambda a: _counts(bins(a[:-1] if len(a) > 2**21 else a)),
        ("float32",),
        {"beyond-the-caches"},
    ),
}
