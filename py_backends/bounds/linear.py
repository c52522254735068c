"""Sums, and factors that are the same for all elements: what keeps sums open, so that any order of them is right."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from py_backends.bounds.array import FIELDS, Bounded, Facts, fresh, lifted, merged_facts, rule, thin_mask
from py_backends.bounds.precision import LARGEST_STEP, product_of_steps, written_exactly
from py_backends.reference import Array

_ADDED = ("value", "error", "magnitude", "terms", "losses")
"""Fields of which a sum has the sum. It has the largest number of roundings, and may overflow where a term may."""


@rule(np.add)
def add(x: Any, y: Any) -> Bounded:
    """The terms of both; a number 0 has none."""
    x, y = lifted(x, y)
    added = {name: getattr(x, name) + getattr(y, name) for name in _ADDED}
    facts = Facts(min(x.facts.step, y.facts.step), rounded_down(x.facts.least + y.facts.least))
    roundings, overflow = np.maximum(x.roundings, y.roundings), x.overflow | y.overflow
    return Bounded(x.precision, **added, roundings=roundings, overflow=overflow, facts=facts)


def rounded_down(least: float) -> float:
    """What a sum or a product of numbers that are not negative stays above, however it is rounded."""
    return 0.99 * least if least >= 0 else -math.inf


@rule(np.subtract)
def subtract(x: Any, y: Any) -> Bounded:
    """The terms of one, and those of the other with the other sign."""
    x, y = lifted(x, y)
    return add(x, negative(y))


@rule(np.negative)
def negative(x: Bounded) -> Bounded:
    """A sign rounds nothing."""
    fields = {name: getattr(x, name) for name in FIELDS[1:]}
    return Bounded(x.precision, -x.value, **fields, facts=Facts(x.facts.step))


@rule(np.positive)
def positive(x: Any) -> Bounded:
    """The same terms."""
    (x,) = lifted(x)
    return scaled(x, Bounded(x.precision, 1.0, facts=Facts(1.0, 1.0)))


def scaled(x: Bounded, factor: Bounded) -> Bounded:
    """Each term times one number. A kernel may multiply the sum, or its terms; what underflows, does in each."""
    factor = factor.closed()
    number = float(factor.value.reshape(()))
    error_of_factor = float(factor.error.reshape(()))
    spoilt: Any = False
    if not math.isfinite(number) or factor.overflow.any():
        spoilt = ~np.isnan(x.value)
    elif 0 < error_of_factor >= abs(number):
        spoilt = np.isinf(x.value)  # times a factor that may be zero
    size, most = abs(number), abs(number) + error_of_factor
    power = error_of_factor == 0 and (number == 0 or math.frexp(size)[0] == 0.5)
    before = overflows(x) if size < 1 else x.overflow  # a sum may overflow before it is made smaller
    if size > 1 and math.isfinite(most):  # and a product before it is added to, or made smaller
        before = before | ~((x.magnitude + x.error) * most <= x.precision.largest)
    least = rounded_down(number * x.facts.least) if number > 0 and x.facts.least >= 0 else -math.inf
    return Bounded(
        x.precision,
        x.value * number,
        x.error * most + (x.magnitude * error_of_factor if error_of_factor else 0.0),
        x.magnitude * size if math.isfinite(size) else x.magnitude,
        roundings=x.roundings + (0 if power else 1),
        terms=x.terms,
        losses=x.losses * most + (0 if power and (size >= 1 or number == 0) else np.maximum(x.terms, 1.0)),
        overflow=thin_mask(before | spoilt),
        facts=Facts(product_of_steps(x.precision.least, x.facts.step, factor.facts.step), least),
    )


def overflows(x: Bounded) -> Array:
    """Where partial sums may overflow."""
    return x.overflow | x.closed().overflow


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """The dimensions that an argument `axis` means: all of them for None."""
    if axis is None:
        return tuple(range(ndim))
    return tuple(np.lib.array_utils.normalize_axis_tuple(axis, ndim))


def _total(field: Array, shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> Array:
    """The sum of a field; along dimensions in which it is constant, by their length."""
    repeated = math.prod(shape[axis] for axis in axes if field.shape[axis] == 1)
    return np.asarray(field.sum(axis=axes, keepdims=keepdims) * repeated)


@rule(np.sum)
def total(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Bounded:  # noqa: ARG001  # float64
    """All terms along some dimensions."""
    (a,) = lifted(a)
    axes = axes_of(axis, a.ndim)
    added = {name: _total(getattr(a, name), a.shape, axes, keepdims) for name in _ADDED}
    return Bounded(
        a.precision,
        **added,
        roundings=a.roundings.max(axis=axes, keepdims=keepdims, initial=0.0),
        overflow=a.overflow.any(axis=axes, keepdims=keepdims) & (a.size > 0),
        facts=Facts(a.facts.step, 0.0 if a.facts.least >= 0 else -math.inf),
    )


@rule(np.add, method="reduce")
def _reduce(a: Any, axis: Any = 0, dtype: Any = None, keepdims: Any = False) -> Bounded:
    """As np.sum, but for the axis by default, which is the first one."""
    return total(a, axis, dtype, keepdims)


@rule(np.mean)
def mean(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Bounded:
    """Closed: what is done with a mean is no further order of its sum."""
    added = total(a, axis, dtype, keepdims)
    return divided(added, math.prod(a.shape[each] for each in axes_of(axis, a.ndim))).closed()


def divided(x: Any, count: Any) -> Bounded:
    """By a number that is known exactly; x * (1 / y) is right too, so that this rounds twice."""
    (x,), count = lifted(x), float(count)
    if count and math.frexp(abs(count))[0] == 0.5:
        return scaled(x, _exact(x, 1 / count))
    least = 0.0 if count > 0 and x.facts.least >= 0 else -math.inf
    by = scaled(x, _exact(x, 1.0 / count if count else math.copysign(math.inf, count)))
    with np.errstate(all="ignore"):
        by.value = np.asarray(x.value / count)
    by.losses = by.losses + x.magnitude + x.error  # 1 / count may lose digits to underflow
    if abs(count) * x.precision.largest < 1:
        by.overflow = np.isfinite(x.value)
    by.roundings = by.roundings + (1 if written_exactly(np.asarray(count)) else 2)
    by.facts = Facts(0.0, least)
    return by


def _exact(x: Bounded, number: float) -> Bounded:
    step = abs(number) if number and math.frexp(abs(number))[0] == 0.5 else 0.0
    return Bounded(x.precision, number, facts=Facts(step))


def _along(x: Bounded, name: str, axis: int) -> Array:
    """A field that is whole along one dimension."""
    field: Array = getattr(x, name)
    shape = list(field.shape)
    shape[axis] = x.shape[axis]
    return np.broadcast_to(field, tuple(shape))


def _by_fields(
    x: Bounded, axis: int, add: Callable[[Array], Array], most: Callable[[Array], Array], either: Callable[[Array], Any]
) -> Bounded:
    """Sums along one dimension, which has to be done to each field."""
    added = {name: add(_along(x, name, axis)) for name in _ADDED}
    roundings, overflow = most(_along(x, "roundings", axis)), thin_mask(either(_along(x, "overflow", axis)))
    facts = Facts(x.facts.step, 0.0 if x.facts.least >= 0 else -math.inf)
    return Bounded(x.precision, **added, roundings=roundings, overflow=overflow, facts=facts)


@rule(np.cumsum)
def _running(a: Any, axis: Any = None, dtype: Any = None) -> Bounded:
    (a,) = lifted(a)
    return _accumulate(np.ravel(a) if axis is None else a, 0 if axis is None else axis, dtype)


@rule(np.add, method="accumulate")
def _accumulate(a: Any, axis: int = 0, dtype: Any = None) -> Bounded:  # noqa: ARG001  # float64
    (axis,) = axes_of(axis, a.ndim)
    return _by_fields(
        a,
        axis,
        lambda field: np.add.accumulate(field, axis),
        lambda field: np.maximum.accumulate(field, axis),
        lambda field: np.logical_or.accumulate(field, axis),
    )


@rule(np.add, method="reduceat")
def _reduceat(a: Any, indices: Any, axis: int = 0, dtype: Any = None) -> Bounded:  # noqa: ARG001  # float64
    (axis,) = axes_of(axis, a.ndim)
    return _by_fields(
        a,
        axis,
        lambda field: np.add.reduceat(field, indices, axis),
        lambda field: np.maximum.reduceat(field, indices, axis),
        lambda field: np.logical_or.reduceat(field, indices, axis),
    )


@rule(np.bincount)
def _bincount(x: Any, weights: Any = None, minlength: int = 0) -> Bounded:
    if isinstance(x, Bounded):
        x = x.astype(np.int64)
    count = max(int(x.max(initial=-1)) + 1, minlength)
    sums = Bounded(weights.precision, np.zeros(count), facts=Facts(LARGEST_STEP, 0.0))
    sums.terms = np.asarray(0.0).reshape(1)
    _add_at(sums, x, weights)
    return sums


@rule(np.add, method="at")
def _add_at(a: Any, indices: Any, b: Any) -> None:
    """Elements in any order, since several may be added to one."""
    if not isinstance(a, Bounded):
        raise TypeError("np.add.at to an array without a bound: np.zeros(shape, like=a) makes one that carries it")
    _, b = lifted(a, b)
    a.make_writable()
    shape = a.value[indices].shape
    for name in _ADDED:
        np.add.at(getattr(a, name), indices, np.broadcast_to(getattr(b, name), shape))
    np.maximum.at(a.roundings, indices, np.broadcast_to(b.roundings, shape))
    np.logical_or.at(a.overflow, indices, np.broadcast_to(b.overflow, shape))
    merged = merged_facts(a, b)
    a.facts.closed = False
    a.facts.step, a.facts.least = merged.step, 0.0 if merged.least >= 0 else -math.inf


@rule(np.diff)
def _diff(a: Any, n: int = 1, axis: int = -1) -> Any:
    (axis,) = axes_of(axis, a.ndim)
    before = (slice(None),) * axis
    for _ in range(n):
        a = subtract(a[(*before, slice(1, None))], a[(*before, slice(None, -1))])
    return a


@rule(np.trace)
def _trace(a: Any) -> Any:
    return total(np.diagonal(a), -1)


@rule(np.copy)
def _copy(a: Any) -> Bounded:
    """Closed, as what is assigned."""
    closed = a.closed()
    if a.writable:
        closed = Bounded(
            a.precision, *map(np.array, (closed.value, closed.error)), overflow=closed.overflow, facts=closed.facts
        )
    return fresh(closed)


@rule(np.zeros_like, np.empty_like)
def _zeros_like(a: Any, dtype: Any = None, shape: Any = None) -> Any:
    """Zeros carry errors of what is added to them; for other formats than real numbers there is nothing to carry."""
    shape = a.shape if shape is None else shape
    if dtype is not None and np.dtype(dtype).kind in "iub":
        return np.zeros(shape, dtype)
    return fresh(Bounded(a.precision, np.zeros(shape), terms=0.0, facts=Facts(LARGEST_STEP, 0.0)))


@rule(np.ones_like)
def _ones_like(a: Any, dtype: Any = None, shape: Any = None) -> Any:
    return full_like(a, 1.0, dtype, shape)


@rule(np.full_like)
def full_like(a: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> Any:
    """A constant everywhere."""
    shape = a.shape if shape is None else shape
    if dtype is not None and np.dtype(dtype).kind in "iub":
        return np.full(shape, fill_value, dtype)
    _, filled = lifted(a, fill_value)
    return np.broadcast_to(filled, shape).copy()


@rule(np.shape)
def _shape(a: Any) -> Any:
    return a.shape


@rule(np.ndim)
def _ndim(a: Any) -> Any:
    return a.ndim


@rule(np.size)
def _size(a: Any) -> Any:
    return a.size
