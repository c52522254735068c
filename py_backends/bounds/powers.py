"""Powers: whole ones as products, others by the errors of exponentials."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from py_backends.bounds import linear, products
from py_backends.bounds.array import Bounded, Facts, lifted, no_bound, rule, thin_mask
from py_backends.bounds.functions import applied
from py_backends.reference import Array


@rule(np.power, np.float_power)
def _power(x: Any, exponent: Any) -> Any:
    if isinstance(exponent, Bounded) or np.ndim(exponent) or exponent not in {0.5, -0.5, round(exponent)}:
        return _real_power(x, exponent)
    if exponent in {0.5, -0.5}:
        return _root(x, exponent)
    return products.divide(1.0, _power(x, -exponent)) if exponent < 0 else _whole_power(x, int(exponent))


def _root(x: Any, exponent: Any) -> Any:
    """A square root, or its reciprocal, which of -infinity are no numbers, where powers are infinite, or 0."""
    (x,) = lifted(x)
    root = np.sqrt(x)
    found = root if exponent > 0 else products.divide(1.0, root)
    found.value = np.asarray(np.power(x.value, exponent))
    unknown = np.isneginf(x.value)
    if unknown.any():
        found.error = np.where(unknown, np.inf, found.error)
        found.overflow = np.asarray(found.overflow | unknown)
    return found


def _whole_power(x: Any, count: int) -> Any:
    """By what errors do in products. A library's own power may round more often than these."""
    if count == 0:
        return linear.full_like(x, 1.0)
    if count == 1:
        return linear.positive(x)
    if count == 2:
        return products.square(x)
    (x,) = lifted(x)
    power = products.multilinear(lambda *factors: math.prod(factors[1:], start=factors[0]), *[x] * count, terms=1.0)
    power.roundings = np.maximum(power.roundings, 2 * x.precision.ulps.get("power", 4.0))
    if count % 2 == 0:
        power.facts.least = 0.0
    return power


def _real_power(x: Any, exponent: Any) -> Any:
    """NumPy's own, whose errors are those of e^(y log |x|): a library's own power is more accurate."""
    x, y = (each.closed() for each in lifted(x, exponent))
    with np.errstate(all="ignore"):
        value = np.asarray(np.power(x.value, y.value))
        certain, near_zero = _certain(x, y), np.broadcast_to((x.error > 0) & (np.abs(x.value) <= x.error), value.shape)
        given = certain | near_zero
        base = _replaced(x, np.abs(x.value), given)
        by_rule = applied(np.exp, products.multiply(_replaced(y, y.value, given), applied(np.log, base)))
        spoilt = by_rule.overflow | (np.isinf(value) & ~given)
        error = np.where(given, 0.0, by_rule.error)
        if near_zero.any():
            of_any, unsure = _of_either_sign(x, y)
            error = np.where(near_zero & ~certain, of_any, error)
            spoilt = spoilt | (near_zero & ~certain & unsure)
        unsure = _unsure(x, y)
        error, spoilt = np.where(unsure, np.inf, error), spoilt | unsure
    return Bounded(
        x.precision,
        value,
        error,
        roundings=np.maximum(by_rule.roundings, 2 * x.precision.ulps.get("power", 4.0)),
        losses=by_rule.losses,
        overflow=thin_mask(spoilt),
        facts=Facts(0.0, 0.0 if x.facts.least >= 0 else -math.inf),
    )


def _certain(x: Bounded, y: Bounded) -> Array:
    """Where no logarithm tells what it is: of zero and infinity, to the power of these, and of what is no number.

    Raises TypeError, in one line, where rounding decides whether there is a power at all.
    """
    inexact = (y.error > 0) | y.overflow
    may_be_whole = y.overflow | (np.floor(y.value + y.error) >= np.ceil(y.value - y.error))
    negative = (x.value - x.error < 0) & (x.facts.least < 0)
    zero = (np.abs(x.value) <= x.error) & (x.facts.least <= 0)
    either_sign = y.overflow | (np.abs(y.value) <= y.error)
    negative = negative | ((x.value == 0) & np.signbit(x.value) & (y.value < 0))  # -0 to the power -3 is -infinity
    if (inexact & ((negative & may_be_whole) | (zero & either_sign))).any():
        raise TypeError(no_bound("np.power of numbers that may be negative or 0 to a power that was rounded"))
    usual = (x.value != 0) & np.isfinite(x.value) & np.isfinite(y.value) & ((y.value != 0) | inexact)
    return np.asarray(~usual & ~((x.value == 0) & (x.error > 0) & np.isfinite(y.value) & (y.value != 0)))


def _replaced(x: Bounded, values: Array, given: Array) -> Bounded:
    """Numbers with 1 in place of those whose powers are given otherwise."""
    return Bounded(x.precision, np.where(given, 1.0, values), np.where(given, 0.0, x.error))


def _of_either_sign(x: Bounded, y: Bounded) -> tuple[Array, Array]:
    """The error of powers of what may be 0, four times the largest, and where these may be infinite or no numbers."""
    whole = (y.error == 0) & (np.rint(y.value) == y.value)
    unsure = np.asarray(~((y.value - y.error > 0) & (whole | (x.facts.least >= 0))))
    reach = np.abs(x.value) + x.error
    most = np.maximum(np.power(reach, y.value - y.error), np.power(reach, y.value + y.error))
    return np.where(unsure, np.inf, 4 * most), unsure


def _unsure(x: Bounded, y: Bounded) -> Array:
    """Where a factor that overflows, or an infinite exponent beside a base about 1, leaves any power."""
    about_one = (x.error > 0) & (np.abs(np.abs(x.value) - 1) <= x.error)
    either_sign = ~np.isfinite(x.value) & (y.error > 0) & (np.abs(y.value) <= y.error)
    to_zero = (y.value == 0) & (y.error == 0) & ~y.overflow  # which is 1 for all
    return np.asarray((x.overflow | y.overflow | (~np.isfinite(y.value) & about_one) | either_sign) & ~to_zero)
