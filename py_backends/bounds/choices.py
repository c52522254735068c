"""Order and choice: comparisons that rounding may decide, what chooses between numbers, and steps such as floor."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from py_backends.bounds import linear
from py_backends.bounds.array import (
    FIELDS,
    Bounded,
    Carrier,
    Facts,
    lifted,
    merged_facts,
    no_bound,
    rule,
    thin_mask,
    whole,
    with_ellipsis,
)
from py_backends.bounds.precision import Precision
from py_backends.reference import Array


class Undecided(Carrier):
    """Answers, some of which rounding decides.

    value: as the reference finds them. unsure: which of them a right kernel may find otherwise.
    """

    def __init__(self, precision: Precision, value: Array, unsure: Array, name: str) -> None:
        self.precision, self.value, self.unsure, self.name = precision, value, unsure, name

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    def as_numbers(self) -> Bounded:
        """1 and 0, which may be the other one."""
        return Bounded(self.precision, self.value, self.unsure, facts=Facts(1.0, 0.0))

    def refused(self) -> TypeError:
        count = np.count_nonzero(self.unsure)
        return TypeError(
            f"rounding decides {self.name} for {count} of {self.unsure.size} elements: np.where() covers both sides"
        )

    def __bool__(self) -> bool:
        raise self.refused()

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise self.refused()

    def __getitem__(self, index: Any) -> Any:
        index = with_ellipsis(index)
        return answered(self.precision, self.value[index], self.unsure[index], self.name)

    def __getattr__(self, name: str) -> Any:
        if name in {"any", "all", "sum"}:
            return lambda *given, **named: getattr(np, name)(self, *given, **named)
        if not name.startswith("_") and (hasattr(np.ndarray, name) or hasattr(self.as_numbers(), name)):
            raise self.refused()
        raise AttributeError(name)


def answered(precision: Precision, value: Any, unsure: Any, name: str) -> Any:
    """Plain answers where rounding decides none."""
    value = np.asarray(value)
    return Undecided(precision, value, np.broadcast_to(unsure, value.shape), name) if np.any(unsure) else value


def _register_comparison(function: np.ufunc) -> None:
    def compare(x: Any, y: Any) -> Any:
        x, y = (each.closed() for each in lifted(x, y))
        margin = x.error + y.error
        apart = np.abs(x.value - y.value) > margin * (1 + 2.0**-50)
        unknown = np.isnan(x.value) | np.isnan(y.value) | (margin == 0)
        unsure = ~(apart | unknown) | x.overflow | y.overflow
        return answered(x.precision, function(x.value, y.value), unsure, f"np.{function.__name__}")

    rule(function)(compare)


for _comparison in (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal):
    _register_comparison(_comparison)


def _register_property(function: np.ufunc) -> None:
    """Of a number that may have overflowed, nobody knows whether it is finite."""

    def decide(x: Any) -> Any:
        closed = lifted(x)[0].closed()
        return answered(closed.precision, function(closed.value), closed.overflow, f"np.{function.__name__}")

    rule(function)(decide)


for _property in (np.isnan, np.isinf, np.isfinite):
    _register_property(_property)


def _parts(answer: Any) -> tuple[Array, Array]:
    """Answers, and which of them are unsure."""
    if isinstance(answer, Undecided):
        return answer.value, answer.unsure
    if isinstance(answer, Bounded):
        return _parts(answer != 0)
    return np.asarray(answer).astype(bool), np.asarray(False)


def _register_logical(function: Any, decides: bool) -> None:
    """and, or: an answer that decides alone makes the other one count for nothing."""

    def combine(x: Any, y: Any) -> Any:
        carrier = next(each for each in (x, y) if isinstance(each, Carrier))
        (p, unsure_p), (q, unsure_q) = _parts(x), _parts(y)
        decided = ((p == decides) & ~unsure_p) | ((q == decides) & ~unsure_q)
        unsure = (unsure_p | unsure_q) & ~decided
        return answered(carrier.precision, function(p, q), unsure, "a comparison")

    rule(function)(combine)


for _function, _decides in (
    (np.logical_and, False),
    (np.bitwise_and, False),
    (np.logical_or, True),
    (np.bitwise_or, True),
):
    _register_logical(_function, _decides)


@rule(np.logical_not, np.invert)
def _negate(x: Any) -> Any:
    value, unsure = _parts(x)
    return answered(x.precision, ~value, unsure, "a comparison")


def _register_quantifier(function: Any, decides: bool) -> None:
    def quantify(a: Any, axis: Any = None) -> Any:
        value, unsure = _parts(a)
        unsure = np.broadcast_to(unsure, value.shape)
        decided = ((value == decides) & ~unsure).any(axis=axis)
        return answered(
            a.precision, function(value, axis=axis), unsure.any(axis=axis) & ~decided, f"np.{function.__name__}"
        )

    rule(function)(quantify)


_register_quantifier(np.any, True)
_register_quantifier(np.all, False)


@rule(np.where)
def _where(condition: Any, *choices: Any) -> Any:
    """Which of two numbers: where rounding decides, the kernel may have either."""
    answers, unsure = _parts(condition)
    if not choices:
        if unsure.any():
            raise condition.refused()
        return np.nonzero(answers)
    x, y = lifted(condition, *choices)[1:] if isinstance(condition, Carrier) else lifted(*choices)
    if unsure.any():
        return _either(answers, unsure, x.closed(), y.closed())
    shape = np.broadcast_shapes(answers.shape, x.shape, y.shape)
    named = {name: _chosen(answers, x, y, name, shape) for name in FIELDS}
    return Bounded(x.precision, **named, facts=merged_facts(x, y))


def _chosen(answers: Array, x: Bounded, y: Bounded, name: str, shape: tuple[int, ...]) -> Any:
    of_x, of_y = getattr(x, name), getattr(y, name)
    if name != "value" and of_x.size == of_y.size == 1 and of_x.item() == of_y.item():
        return of_x.reshape(())
    return np.where(np.broadcast_to(answers, shape), of_x, of_y)


def _either(answers: Array, unsure: Array, x: Bounded, y: Bounded) -> Bounded:
    value = np.where(answers, x.value, y.value)
    chosen, other = np.where(answers, x.error, y.error), np.where(answers, y.error, x.error)
    same = x.value == y.value  # infinities too
    apart = np.where(same, 0.0, np.abs(x.value - y.value)) + other
    error = np.where(unsure, np.maximum(chosen, np.where(np.isnan(apart), np.inf, apart)), chosen)
    overflow = np.where(answers, x.overflow, y.overflow) | (unsure & (x.overflow | y.overflow | ~np.isfinite(error)))
    return Bounded(x.precision, value, error, overflow=thin_mask(overflow), facts=merged_facts(x, y))


def _unbounded(error: Any, overflow: Any) -> Any:
    """Errors of numbers that another one may replace: without bound where that may be infinite."""
    return np.where(overflow, np.inf, error) if np.any(overflow) else error


def _register_extreme(function: np.ufunc, sign: int) -> None:
    """The larger, or smaller, of two: only what may win counts with its error."""

    def extreme(x: Any, y: Any) -> Bounded:
        x, y = (each.closed() for each in lifted(x, y))
        ahead = sign * (x.value - y.value)
        margin = x.error + y.error
        x_wins, y_wins = ~(ahead < -margin), ~(ahead > margin)
        error = np.maximum(np.where(x_wins, x.error, 0.0), np.where(y_wins, y.error, 0.0))
        overflow = thin_mask(x.overflow | y.overflow)
        least = max(x.facts.least, y.facts.least) if sign > 0 else min(x.facts.least, y.facts.least)
        facts = Facts(min(x.facts.step, y.facts.step), least)
        value = function(x.value, y.value)
        return Bounded(x.precision, value, _unbounded(error, overflow), overflow=overflow, facts=facts)

    rule(function)(extreme)


def _register_reduction(reduce: Any, function: np.ufunc, sign: int) -> None:
    def extremes(a: Any, axis: Any = None, keepdims: bool = False) -> Bounded:
        a = a.closed()
        value = function.reduce(a.value, axis=_axis(axis), keepdims=keepdims)
        error: Any = 0.0
        if a.error.any():
            sure = function.reduce(a.value - sign * a.error, axis=_axis(axis), keepdims=True)
            wins = ~(sign * (a.value - sure) < -a.error)
            error = np.where(wins, a.error, 0.0).max(axis=_axis(axis), keepdims=keepdims, initial=0.0)
        overflow = thin_mask(whole(a, "overflow").any(axis=_axis(axis), keepdims=keepdims))
        facts = Facts(a.facts.step, a.facts.least)
        return Bounded(a.precision, value, _unbounded(error, overflow), overflow=overflow, facts=facts)

    rule(reduce)(extremes)
    rule(function, method="reduce")(lambda a, axis=0, keepdims=False: extremes(a, axis, keepdims))


def _axis(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, list) else axis


def _register_running(function: np.ufunc) -> None:
    """The largest, or smallest, so far: no end of an interval falls where an element rises."""

    def running(a: Any, axis: int = 0) -> Bounded:
        a = a.closed()
        found = _by_ends(lambda values: function.accumulate(values, axis), _whole_error(a), a.facts.step, a.facts.least)
        if a.overflow.any():
            found.overflow = np.logical_or.accumulate(whole(a, "overflow"), axis)
            found.error = _unbounded(found.error, found.overflow)
        return found

    rule(function, method="accumulate")(running)


for _extreme, _sign in ((np.maximum, 1), (np.fmax, 1), (np.minimum, -1), (np.fmin, -1)):
    _register_extreme(_extreme, _sign)
    _register_running(_extreme)
_register_reduction(np.max, np.maximum, 1)
_register_reduction(np.min, np.minimum, -1)


@rule(np.clip)
def _clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:  # noqa: A002  # NumPy's
    low, high = min if a_min is None else a_min, max if a_max is None else a_max
    raised = a if low is None else np.maximum(a, low)
    return raised if high is None else np.minimum(raised, high)


def _by_ends(function: Callable[[Array], Array], x: Bounded, step: float, least: float) -> Bounded:
    """What never falls where its argument rises: its error is that of both ends of an interval."""
    x = x.closed()
    value = function(x.value)
    error: Any = 0.0
    if x.error.any():
        slack = np.where(x.error > 0, x.error + 2.0**-51 * (np.abs(x.value) + x.error), 0.0)
        ends = [function(end) for end in (x.value - slack, x.value + slack)]
        error = np.maximum(*(np.where(end == value, 0.0, np.abs(end - value)) for end in ends))
        error = np.where(np.isnan(error), np.inf, error)
    overflow = x.overflow
    return Bounded(
        x.precision, value, _unbounded(error, overflow), overflow=thin_mask(overflow), facts=Facts(step, least)
    )


def _register_step(function: np.ufunc) -> None:
    def steps(x: Any) -> Bounded:
        (x,) = lifted(x)
        return _by_ends(function, x, 1.0, 0.0 if x.facts.least >= 0 else -math.inf)

    rule(function)(steps)


for _step in (np.floor, np.ceil, np.trunc, np.rint, np.sign):
    _register_step(_step)


@rule(np.round)
def _rounded(a: Any, decimals: int = 0) -> Any:
    if decimals:
        raise TypeError(no_bound("np.round with decimals"))
    return np.rint(a)


@rule(np.absolute, np.fabs)
def _absolute(x: Any) -> Bounded:
    closed = x.closed()
    return Bounded(
        x.precision,
        np.abs(closed.value),
        closed.error,
        overflow=closed.overflow,
        facts=Facts(closed.facts.step, max(0.0, closed.facts.least)),
    )


@rule(np.sort)
def _sort(a: Any, axis: Any = -1) -> Any:
    """No element of a sorted array moves by more than some element did: an end of each interval, sorted, bounds it."""
    if axis is None:
        a, axis = np.ravel(a), -1
    a = a.closed()
    if a.overflow.any():
        raise TypeError(no_bound("np.sort of numbers that may overflow"))
    return _by_ends(lambda values: np.sort(values, axis), _whole_error(a), a.facts.step, a.facts.least)


def _whole_error(x: Bounded) -> Bounded:
    return Bounded(x.precision, x.value, np.broadcast_to(x.error, x.shape), facts=x.facts)


def _register_place(function: Any, best: Callable[..., Any] | None) -> None:
    """Where the largest stands, or all in their order, if no rounding decides it."""

    def place(a: Any, axis: Any = None if best else -1, **options: Any) -> Any:
        closed = a.closed()
        found = function(closed.value, axis=axis, **options)
        error = np.broadcast_to(closed.error, closed.shape)
        if not error.any() and not closed.overflow.any():
            return found
        if axis is None:
            values, error, along = closed.value.reshape(-1), error.reshape(-1), 0
        else:
            values, along = closed.value, axis
        order = np.argsort(values if best is not np.max else -values, axis=along)
        values, error = (np.take_along_axis(each, order, along) for each in (values, error))
        gaps = np.abs(np.diff(values, axis=along))
        parts = [np.take(error, np.arange(first, error.shape[along] - 1 + first), along) for first in (0, 1)]
        needed = parts[0] + parts[1]
        if best:  # only the first gap counts, beside larger errors further on
            gaps = np.abs(values - np.take(values, [0], along))
            needed = error + np.take(error, [0], along)
            gaps, needed = (np.take(each, np.arange(1, each.shape[along]), along) for each in (gaps, needed))
        if closed.overflow.any() or not (gaps > needed).all():
            raise TypeError(f"rounding decides np.{function.__name__}: it has no bound here")
        return found

    rule(function)(place)


_register_place(np.argmax, np.max)
_register_place(np.argmin, np.min)
_register_place(np.argsort, None)


@rule(np.searchsorted)
def _searchsorted(a: Any, v: Any, side: Any = "left") -> Any:
    a, v = (each.closed() for each in lifted(a, v))
    if a.error.any() or v.error.any() or a.overflow.any() or v.overflow.any():
        raise TypeError("rounding decides np.searchsorted: it has no bound here")
    return np.searchsorted(a.value, v.value, side)


@rule(np.nonzero)
def _nonzero(a: Any) -> Any:
    return _where(a != 0 if isinstance(a, Bounded) else a)


@rule(np.count_nonzero)
def _count_nonzero(a: Any, axis: Any = None) -> Any:
    found = a if isinstance(a, Undecided) else (a != 0)
    return linear.total(found, axis) if isinstance(found, Undecided) else np.count_nonzero(found, axis)


@rule(np.median)
def _median(a: Any, axis: Any = None) -> Any:
    """The middle of the sorted numbers, or the mean of the two there."""
    ordered = _sort(a, axis)
    along = 0 if axis is None else axis
    count = ordered.shape[along]
    middle = np.take(ordered, np.arange((count - 1) // 2, count // 2 + 1), along)
    return linear.mean(middle, along)
