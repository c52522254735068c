"""Medians with intervals that assume nothing about how times are distributed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from py_backends.harness.results import Duration


@dataclass(frozen=True)
class Median:
    """A median and the bounds that hold it at 95%; None where there are too few samples for bounds."""

    value: float
    low: float | None
    high: float | None


def median(samples: Sequence[float]) -> Median:
    """The median with its 95% interval between two order statistics.

    The interval inverts the sign test (Conover, Practical Nonparametric Statistics, 3rd edition,
    section 3.2): it needs at least 6 samples, whatever their distribution.
    """
    # Imported here: it takes most of a second, which `--help` need not pay.
    from scipy.stats import quantile_test

    result = quantile_test(list(samples), p=0.5)
    interval = result.confidence_interval(0.95)
    ordered = sorted(samples)
    middle = len(ordered) // 2
    value = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    return Median(value, _finite(interval.low), _finite(interval.high))


def duration(samples: Sequence[float]) -> Duration:
    """Seconds of a phase, summarised over its samples."""
    middle = median(samples)
    return Duration(middle.value, middle.low, middle.high, min(samples), len(samples))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values, in the order given: those below 0.05 belong to findings of which none is false at 95%.

    S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6
    (1979), 65-70: the smallest of n is multiplied by n, the next by n - 1, and so on; none becomes smaller
    than one before it, and none larger than 1. It holds whether or not the values depend on one another.
    """
    adjusted = [1.0] * len(p_values)
    largest = 0.0
    for rank, at in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[at]))
        adjusted[at] = largest
    return adjusted


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
