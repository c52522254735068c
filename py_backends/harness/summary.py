"""Turns the samples of timed rows into the figures of the results."""

from __future__ import annotations

from collections.abc import Sequence

from py_backends import _discovery
from py_backends.harness.results import Rate, Row, Seconds, Speedup
from py_backends.harness.rounds import TimedRow
from py_backends.harness.statistics import duration, median


def summarise(timed: Sequence[TimedRow]) -> None:
    """Fill in seconds and rate of each row that was sampled, and how it compares with its baseline."""
    for row in timed:
        if row.samples:
            _figures(row)
    for row in timed:
        baseline = _baseline(row, timed)
        if row.samples and baseline is not None:
            row.planned.row.versus = _speedup(row, baseline)


def _figures(timed: TimedRow) -> None:
    row, problem, sizes = timed.planned.row, timed.planned.problem, timed.case.sizes
    samples = list(timed.samples.values())
    kernel = duration([sample.kernel for sample in samples])
    row.seconds = Seconds(
        prepare=row.seconds.prepare if row.seconds else None,
        upload=median([sample.upload for sample in samples]).value,
        download=median([sample.download for sample in samples]).value,
        kernel=kernel,
        end_to_end=duration([sample.end_to_end for sample in samples]),
    )
    if kernel.low is None:
        add_note(row, f"{kernel.samples} of the 6 samples that an interval needs")
    row.rate = Rate(
        gflops=problem.flops(sizes) / kernel.median / 1e9,
        gbytes_per_second=problem.bytes(sizes, timed.planned.dtype) / kernel.median / 1e9,
    )


def _baseline(row: TimedRow, timed: Sequence[TimedRow]) -> TimedRow | None:
    for other in timed:
        same_group = other.planned.group == row.planned.group
        if same_group and other.samples and _discovery.backend(other.planned.row.backend).baseline:
            return other
    return None


def _speedup(row: TimedRow, baseline: TimedRow) -> Speedup | None:
    """Ratios of kernel times round by round; of rates where the two ran at different shapes."""
    problem = row.planned.problem
    work = problem.work(row.case.sizes) / problem.work(baseline.case.sizes)
    rounds = row.samples.keys() & baseline.samples.keys()
    if not rounds:
        return None
    middle = median([baseline.samples[n].kernel / row.samples[n].kernel * work for n in rounds])
    same_shape = row.case.sizes == baseline.case.sizes
    return Speedup(baseline.planned.row.backend, middle.value, middle.low, middle.high, same_shape)


def add_note(row: Row, note: str) -> None:
    """Add a sentence to what a row already says."""
    row.note = f"{row.note}; {note}" if row.note else note
