"""Speed-ups of one row of a report over another, from the rounds that both have."""

from __future__ import annotations

from collections.abc import Sequence

from py_backends import registry
from py_backends.results.report import Row, Speedup
from py_backends.results.verdicts import NARROWEST_BAND, Ratio, ratio, verdicts


def judged(pairs: Sequence[tuple[Row, Row]]) -> list[Speedup]:
    """The speed-up of the first row of each pair over the second. All verdicts hold together at 95%.

    The band is the narrowest one, not that of the controls: the question is not whether the two are the same.
    """
    ratios = [row_ratio(row, other) for row, other in pairs]
    said = verdicts(ratios, [NARROWEST_BAND] * len(pairs))
    return [
        speedup(row, other, found, verdict) for (row, other), found, verdict in zip(pairs, ratios, said, strict=True)
    ]


def row_ratio(row: Row, other: Row) -> Ratio:
    """The speed-up of a row over another, from ratios inside rounds. If the shapes differ, rates are compared.

    Results without the samples of their rounds give the ratio of the medians, without an interval.
    """
    return ratio(by_round(row, other) or [gflops(row) / gflops(other)])


def by_round(row: Row, other: Row, *, whole_calls: bool = False) -> list[float]:
    """The speed-ups of a row over another in the rounds that both have, of their kernels or of whole calls."""
    work = _work(row) / _work(other)
    samples = (each.end_to_end_seconds if whole_calls else each.kernel_seconds for each in (row, other))
    both = zip(*samples, strict=False)  # one may have failed earlier
    return [theirs / ours * work for ours, theirs in both if ours and theirs and min(ours, theirs) > 0]


def speedup(row: Row, other: Row, found: Ratio, verdict: str | None) -> Speedup:
    """The same as results hold it."""
    return Speedup(other.backend, found.median, found.low, found.high, row.shape == other.shape, verdict, found.rounds)


def gflops(row: Row) -> float:
    """The rate of a timed row; 0 for any other."""
    return row.rate.gflops if row.rate and row.timed else 0.0


def _work(row: Row) -> int:
    return registry.problem(row.kernel).work(tuple(row.shape.values()))
