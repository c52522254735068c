"""Speed-ups inside rounds, which the drift of a shared machine does not reach: of samples, and of rows of a report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from py_backends.results.report import Row, Speedup
from py_backends.results.verdicts import Ratio, ratio, verdicts


def in_common(*samples: Sequence[float | None]) -> list[tuple[float, ...]]:
    """The samples of each round that all have. `samples`: by round, as results hold them, which may hold anything."""
    return [each for each in zip(*samples, strict=False) if all(one is not None and one > 0 for one in each)]


def speedups(ours: Sequence[float | None], theirs: Sequence[float | None], work: float = 1.0) -> dict[int, float]:
    """How many times as fast the first is in each round that both have, by the round's number.

    work: its work over that of the second.
    """
    pairs = enumerate(zip(ours, theirs, strict=False))
    return {at: other / own * work for at, (own, other) in pairs if own and other and min(own, other) > 0}


def with_verdicts(pairs: Sequence[tuple[Row, Row]]) -> list[Speedup]:
    """The speed-up of the first row of each pair over the second, with verdicts."""
    ratios = [row_ratio(row, other) for row, other in pairs]
    said = verdicts(ratios)
    return [
        speedup(row, other, found, verdict) for (row, other), found, verdict in zip(pairs, ratios, said, strict=True)
    ]


def row_ratio(row: Row, other: Row) -> Ratio:
    """The speed-up of a row over another, from ratios inside rounds. If the shapes differ, rates are compared.

    Results without the samples of their rounds give the ratio of the medians, without an interval.
    """
    return ratio(by_round(row, other) or [rate(row) / rate(other)])


def by_round(row: Row, other: Row, *, whole_calls: bool = False) -> dict[int, float]:
    """The speed-ups of a row over another in the rounds that both have, of their kernels or of whole calls."""
    ours, theirs = (each.end_to_end_seconds if whole_calls else each.kernel_seconds for each in (row, other))
    return speedups(ours, theirs, _amount(row) / _amount(other))


def speedup(row: Row, other: Row, found: Ratio, verdict: str | None) -> Speedup:
    """The same as results hold it."""
    return Speedup(other.backend, found.median, found.low, found.high, row.shape == other.shape, verdict, found.rounds)


def rate(row: Row) -> float:
    """The rate of a timed row by which rows of its kernel are compared; 0 for any other."""
    return float(getattr(row.rate, rate_of([row]))) if row.rate and row.timed else 0.0


def rate_of(rows: Iterable[Row]) -> str:
    """The name of the rate by which rows of one kernel are compared."""
    return next((row.work.rate for row in rows if row.work), "gflops")


def _amount(row: Row) -> int:
    assert row.work, "it has samples, so it ran"
    return row.work.amount
