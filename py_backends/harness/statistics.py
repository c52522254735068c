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


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
