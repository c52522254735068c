"""Powers: whole ones as products, others as exponentials."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from py_backends.bounds import linear, products
from py_backends.bounds.array import Bounded, lifted, rule
from py_backends.bounds.functions import applied


@rule(np.power, np.float_power)
def _power(x: Any, exponent: Any) -> Any:
    if isinstance(exponent, Bounded) or np.ndim(exponent) or exponent not in {0.5, -0.5, round(exponent)}:
        return _real_power(x, exponent)
    if exponent < 0:
        return products.divide(1.0, _power(x, -exponent))
    return np.sqrt(x) if exponent == 0.5 else _whole_power(x, int(exponent))


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
    """x^y = e^(y log x), by the rules of these: a library's own power is more accurate."""
    x, exponent = lifted(x, exponent)
    return applied(np.exp, products.multiply(exponent, applied(np.log, x)))
