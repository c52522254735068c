"""Functions of one number: what each makes of an error, and how many ulps a library may add to it.

The ulps are those of OpenCL's full profile, or less, where no library in use needs as many. (CUDA C++ Programming
Guide, appendix Mathematical Functions. The OpenCL C Specification, version 3.0, section 7.4.) An ulp is up to 2u of the
result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from py_backends.bounds.array import Bounded, Facts, lifted, rule, sizes_of, thin_mask
from py_backends.reference import Array


@dataclass(frozen=True)
class Function:
    """A smooth function.

    error: how far its value may move with its argument: from the value, the argument and the argument's error.
    ulps: of a library.
    lowest: the least argument that it is defined for.
    least: which no result is below.
    vanishes: whether results below the smallest normal number may be 0, as where exponentials are powers of 2.
    """

    error: Callable[[Any, Any, Any], Any]
    ulps: float
    lowest: float = -math.inf
    least: float = -math.inf
    vanishes: bool = False


def _of_root(value: Any, x: Any, e: Any) -> Any:
    """sqrt(x) - sqrt(x - e) = e / (sqrt(x) + sqrt(x - e)), which is more than sqrt(x + e) - sqrt(x)."""
    return np.minimum(e / (value + np.sqrt(np.maximum(x - e, 0.0))), np.sqrt(e))


def _of_logarithm(_: Any, x: Any, e: Any) -> Any:
    """log(x) - log(x - e) = -log(1 - e / x)."""
    return -np.log1p(-e / x)


def _of_tanh(_: Any, x: Any, e: Any) -> Any:
    """The largest slope, which is nearest to 0: 1 / cosh^2."""
    return e / np.cosh(np.minimum(np.maximum(np.abs(x) - e, 0.0), 300.0)) ** 2


FUNCTIONS_OF_ONE: dict[Any, Function] = {
    # e^(x + d) - e^x = e^x (e^d - 1)
    np.exp: Function(lambda value, _, e: value * np.expm1(e), 2, least=0.0, vanishes=True),
    np.exp2: Function(lambda value, _, e: value * np.expm1(math.log(2) * e), 2, least=0.0, vanishes=True),
    np.expm1: Function(lambda _, x, e: np.exp(x) * np.expm1(e), 3),
    np.log: Function(_of_logarithm, 3, lowest=0.0),
    np.log2: Function(lambda value, x, e: _of_logarithm(value, x, e) / math.log(2), 3, lowest=0.0),
    np.log10: Function(lambda value, x, e: _of_logarithm(value, x, e) / math.log(10), 3, lowest=0.0),
    np.log1p: Function(lambda value, x, e: _of_logarithm(value, 1 + x, e), 2, lowest=-1.0),
    np.sqrt: Function(_of_root, 3, lowest=0.0, least=0.0),
    np.tanh: Function(_of_tanh, 3),  # OpenCL allows 5, which no library needs
    np.sin: Function(lambda _, __, e: np.minimum(e, 2.0), 4),
    np.cos: Function(lambda _, __, e: np.minimum(e, 2.0), 4),
    np.sinh: Function(lambda _, x, e: e * np.cosh(np.abs(x) + e), 4),
    np.cosh: Function(lambda _, x, e: e * np.sinh(np.abs(x) + e), 4, least=0.0),
    np.arctan: Function(lambda _, x, e: e / (1 + np.maximum(np.abs(x) - e, 0.0) ** 2), 5),
    np.arcsinh: Function(lambda _, x, e: e / np.sqrt(1 + np.maximum(np.abs(x) - e, 0.0) ** 2), 4),
}


def applied(function: np.ufunc, x: Bounded) -> Bounded:
    """A function of closed numbers."""
    facts, rules = x.facts, FUNCTIONS_OF_ONE[function]
    x, precision = x.closed(), x.precision
    value = np.asarray(function(x.value))
    moved: Any = 0.0
    spoilt: Any = x.overflow
    if x.error.any() or x.overflow.any():
        finite = np.isfinite(x.value)
        moved = np.where(x.error > 0, rules.error(value, np.where(finite, x.value, 0.0), x.error), 0.0)
        undefined = (x.error > 0) & (x.value - x.error < rules.lowest) & (facts.least < rules.lowest)
        spoilt = spoilt | undefined | (np.isinf(value) & (x.error > 0) & finite)
        moved = np.where(np.isnan(moved) | x.overflow | undefined, np.inf, moved)
        moved = np.where(np.isfinite(value) | spoilt, moved, 0.0)
    ulps = precision.ulps.get(function.__name__, rules.ulps)
    losses = max(1.0, precision.normal / precision.least) if rules.vanishes else 1.0
    return Bounded(
        precision,
        value,
        moved,
        sizes_of(value),
        roundings=2 * ulps,
        losses=losses,
        overflow=thin_mask(spoilt),
        facts=Facts(0.0, rules.least),
    )


def _register(function: np.ufunc) -> None:
    def of_one(x: Any) -> Bounded:
        return applied(function, *lifted(x))

    rule(function)(of_one)


for _function in FUNCTIONS_OF_ONE:
    _register(_function)


@rule(np.hypot)
def _hypot(x: Any, y: Any) -> Bounded:
    """Its slopes are at most 1."""
    x, y = (each.closed() for each in lifted(x, y))
    overflow, ulps = x.overflow | y.overflow, x.precision.ulps.get("hypot", 4.0)
    error = np.where(overflow, np.inf, x.error + y.error)
    value = np.hypot(x.value, y.value)
    losses = 1.0
    return Bounded(
        x.precision, value, error, roundings=2 * ulps, losses=losses, overflow=overflow, facts=Facts(0.0, 0.0)
    )


@rule(np.logaddexp)
def _logaddexp(x: Any, y: Any) -> Bounded:
    """Its slopes add up to 1. It rounds as max(x, y) + log(1 + e^-|x - y|) does."""
    x, y = (each.closed() for each in lifted(x, y))
    overflow, ulps = x.overflow | y.overflow, x.precision.ulps.get("logaddexp", 4.0)
    error = np.where(overflow, np.inf, np.maximum(x.error, y.error))
    size: Array = np.maximum(sizes_of(x.value) + x.error, sizes_of(y.value) + y.error) + 1
    value = np.logaddexp(x.value, y.value)
    return Bounded(x.precision, value, error, size, roundings=2 * ulps, losses=1.0, overflow=overflow)
