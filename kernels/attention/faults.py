"""Wrong answers of attention, each wrong in one respect, and the kinds of trials that must see it; and right ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from py_backends.conformance.formats import IN_ALL_KINDS, NARROW_FLOATS, limits
from py_backends.contract import Array

_ALL = (*IN_ALL_KINDS, *NARROW_FLOATS)


def _sums(q: Array) -> np.dtype[Any]:
    """The format of sums, by which all but inputs is computed."""
    return np.dtype("float64" if q.dtype == np.float64 else "float32")


def _rounded(x: Array, narrower: np.dtype[Any] | str) -> Array:
    return x.astype(narrower).astype(x.dtype)


def _scores(q: Array, k: Array) -> Array:
    return np.asarray(q.astype(_sums(q)) @ k.astype(_sums(q)).T / _sums(q).type(np.sqrt(q.shape[1])))


def _attended(q: Array, k: Array, v: Array, *, narrow_weights: bool = False, less_the_largest: bool = True) -> Array:
    """In three passes: scores, weights, means."""
    scores = _scores(q, k)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True) if less_the_largest else scores)
    of_values = _rounded(weights, q.dtype) if narrow_weights else weights
    return np.asarray(of_values @ v.astype(weights.dtype) / weights.sum(axis=1, keepdims=True))


def _by_blocks(
    block: int, q: Array, k: Array, v: Array, *, rescales: bool = True, starts_at: float = -np.inf, total_at: float = 0
) -> Array:
    """With a running maximum, and blocks of keys."""
    scores, sums = _scores(q, k), _sums(q)
    largest, total = np.full((len(q), 1), starts_at, sums), np.full((len(q), 1), total_at, sums)
    c = np.zeros(q.shape, sums)
    for first in range(0, len(k), block):
        some = slice(first, first + block)
        larger = np.maximum(largest, scores[:, some].max(axis=1, keepdims=True))
        kept = np.exp(largest - larger) if rescales else np.ones_like(largest)
        weights = np.exp(scores[:, some] - larger)
        total = total * kept + weights.sum(axis=1, keepdims=True)
        c = c * kept + weights @ v[some].astype(sums)
        largest = larger
    return np.asarray(c / total)


def _with_normalized_weights(q: Array, k: Array, v: Array) -> Array:
    """Weights are rounded after they were divided by their sum."""
    scores = _scores(q, k)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = _rounded(weights / weights.sum(axis=1, keepdims=True), "bfloat16" if q.itemsize == 4 else "float32")
    return np.asarray(weights @ v.astype(weights.dtype))


def _with_scores_computed_twice(q: Array, k: Array, v: Array) -> Array:
    """The largest is rounded to float32, and what it is taken off is not."""
    exact = q.astype(np.float64) @ k.astype(np.float64).T / np.sqrt(q.shape[1])
    largest = exact.max(axis=1, keepdims=True).astype(np.float32)
    weights = np.exp((exact - largest).astype(np.float32))
    return np.asarray(weights @ v.astype(np.float32) / weights.sum(axis=1, keepdims=True))


def _with_leading_ones(q: Array, k: Array, v: Array) -> Array:
    """Subnormal values get the leading one that only normal numbers have."""
    normal = v.dtype.type(limits(v.dtype).normal)
    return _attended(q, k, np.where((np.abs(v) < normal) & (v != 0), v + np.copysign(normal, v), v))


def _without_small_means(q: Array, k: Array, v: Array) -> Array:
    c, size = _attended(q, k, v), _attended(q, k, np.abs(v))
    return np.where(np.abs(c) < size / 2**6, 0, c)


Answer = Callable[[Array, Array, Array], Array]
RIGHT: dict[str, tuple[Answer, tuple[str, ...]]] = {
    "takes three passes": (_attended, _ALL),
    "begins with the last key": (lambda q, k, v: _attended(q, k[::-1], v[::-1]), _ALL),
    "rounds weights to the inputs' format": (lambda *inputs: _attended(*inputs, narrow_weights=True), NARROW_FLOATS),
    "takes blocks of keys": (lambda *inputs: _by_blocks(16, *inputs, starts_at=-1e30), _ALL),
}
FAULTS: dict[str, tuple[Answer, tuple[str, ...], set[str]]] = {
    "the last key is left out": (
        lambda q, k, v: _attended(q, k[:-1], v[:-1]) if len(k) > 1 else _attended(q, k, v),
        _ALL,
        {"few-keys", "places", "compared"},
    ),
    "all keys after whole registers are left out": (
        lambda q, k, v: _attended(q, *(x[: max(1, len(k) // 16 * 16)] for x in (k, v))),
        _ALL,
        {"few-keys", "places", "compared"},
    ),
    "a key is counted twice": (
        lambda q, k, v: _attended(q, *(np.vstack([x, x[:1]]) for x in (k, v))),
        _ALL,
        {"few-keys", "means", "compared"},
    ),
    "a key is filled up with zeros": (
        lambda q, k, v: _attended(q, *(np.vstack([x, 0 * x[:1]]) for x in (k, v))),
        _ALL,
        {"few-keys", "means", "compared"},
    ),
    "scores are not divided by the root of d": (
        lambda q, k, v: _attended((q.astype(_sums(q)) * np.sqrt(q.shape[1])).astype(_sums(q)), k, v),
        _ALL,
        {"few-keys", "compared"},
    ),
    "what was summed before is not made smaller": (
        lambda *inputs: _by_blocks(4, *inputs, rescales=False),
        _ALL,
        {"far-apart", "few-keys", "compared"},
    ),
    "the largest score is not taken off": (
        lambda *inputs: _attended(*inputs, less_the_largest=False),
        IN_ALL_KINDS,
        {"scores", "far-apart"},
    ),
    "scores are computed twice": (_with_scores_computed_twice, ("float32",), {"few-products"}),
    "a block of hidden keys has a maximum": (lambda *inputs: _by_blocks(4, *inputs), IN_ALL_KINDS, {"masked"}),
    "the weights of no key add up to 1": (
        lambda *inputs: _by_blocks(16, *inputs, starts_at=-1e30, total_at=1),
        IN_ALL_KINDS,
        {"masked"},
    ),
    "values are those of other keys": (
        lambda q, k, v: _attended(q, k, np.roll(v, 1, axis=0)),
        _ALL,
        {"few-keys", "compared"},
    ),
    "queries are exchanged": (lambda q, k, v: _attended(q[::-1], k, v), _ALL, {"few-keys", "compared"}),
    "columns are exchanged": (lambda q, k, v: _attended(q, k, v)[:, ::-1], _ALL, {"few-keys", "compared"}),
    "results are a thousandth too large": (lambda q, k, v: _attended(q, k, v) * 1.001, _ALL, {"means", "compared"}),
    "weights are rounded after the division": (_with_normalized_weights, IN_ALL_KINDS, {"means"}),
    "subnormal values get a leading one": (_with_leading_ones, IN_ALL_KINDS, {"subnormals"}),
    "what is not finite is a number": (
        lambda *inputs: _attended(*(np.nan_to_num(x, posinf=1, neginf=1) for x in inputs)),
        IN_ALL_KINDS,
        {"special-values"},
    ),
    "values are multiplied before they are added": (
        lambda q, k, v: _attended(q, k, v * v.dtype.type(8 * len(k))) / (8 * len(k)),
        IN_ALL_KINDS,
        {"overflow"},
    ),
    "small means are lost": (_without_small_means, IN_ALL_KINDS, {"cancellation"}),
}
