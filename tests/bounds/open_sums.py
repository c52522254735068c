"""Arrays whose elements are sums that are still open, each with fields of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from py_backends.bounds.array import FIELDS, Bounded, Facts, whole
from py_backends.bounds.precision import Precision

SINGLE, DOUBLE = (Precision.of(np.dtype(each), np.dtype(each)) for each in (np.float32, np.float64))


def drawn(*shape: int, seed: int = 1, constant: bool = False, least: float = -np.inf, step: float = 0.25) -> Bounded:
    """Fields that differ from element to element, or but for the values are the same for all."""
    generator = np.random.default_rng(seed)
    of_fields = (1,) * len(shape) if constant else shape
    error, above, roundings, terms, losses = generator.integers(1, 9, (5, *of_fields)).astype(float)
    value = generator.integers(1, 40, shape) / 4 * (1 if least >= 0 else generator.choice([-1, 1], shape))
    magnitude = np.abs(value) + above
    overflow = generator.random(of_fields) < 0.3
    return Bounded(
        SINGLE,
        value,
        error,
        magnitude,
        roundings=roundings,
        terms=terms,
        losses=losses,
        overflow=overflow,
        facts=Facts(step, least),
    )


def spread(
    value: Any, error: Any = 0.0, precision: Precision = SINGLE, *, overflow: Any = False, facts: Facts | None = None
) -> Bounded:
    """Closed numbers with their errors."""
    return Bounded(precision, np.asarray(value, float), np.asarray(error, float), overflow=overflow, facts=facts)


def fields(x: Bounded) -> dict[str, Any]:
    """All of them in the array's own shape."""
    return {name: np.array(whole(x, name)) for name in FIELDS}
