"""Computes the figures of the results from the samples of timed rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from py_backends.harness.pairing import Group
from py_backends.harness.running_row import RunningRow
from py_backends.results.report import Communication, Control, Rate, Row, Seconds, Speedup, by_round
from py_backends.results.statistics import duration, median
from py_backends.results.verdicts import SAME, UNCLEAR, Ratio, verdicts
from py_backends.workers.runner import Sample

FEW_ROUNDS = "of the 6 samples that an interval needs"
"""The end of a row's note, after the number of its samples."""


def summarise(groups: Sequence[Group]) -> list[Control]:
    """Fill in seconds, rate and speed-up of each sampled row, and return the controls."""
    for row in (row for group in groups for row in group.rows):
        if row.samples:
            _figures(row)
    return _fill_speedups(groups)


def _figures(timed: RunningRow) -> None:
    row, problem, sizes = timed.result, timed.problem, timed.case.sizes
    samples = list(timed.samples.values())
    kernel = duration([sample.kernel for sample in samples])
    clocks = [sample.clock for sample in samples if sample.clock is not None]
    row.seconds = Seconds(
        prepare=row.seconds.prepare if row.seconds else None,
        first_launch=row.seconds.first_launch if row.seconds else None,
        upload=median([sample.upload for sample in samples]).value,
        download=median([sample.download for sample in samples]).value,
        release=median([sample.release for sample in samples]).value,
        kernel=kernel,
        end_to_end=duration([sample.end_to_end for sample in samples]),
        clock=duration(clocks) if clocks else None,
    )
    row.kernel_seconds = by_round({number: sample.kernel for number, sample in timed.samples.items()})
    row.end_to_end_seconds = by_round({number: sample.end_to_end for number, sample in timed.samples.items()})
    row.communication = _communication(timed, samples)
    if kernel.low is None:
        add_note(row, f"{kernel.samples} {FEW_ROUNDS}")
    row.rate = Rate(
        gflops=problem.flops(sizes) / kernel.median / 1e9,
        gbytes_per_second=problem.bytes(sizes, timed.dtype) / kernel.median / 1e9,
    )


def _communication(timed: RunningRow, samples: Sequence[Sample]) -> Communication | None:
    seconds = [sample.communicating for sample in samples if sample.communicating is not None]
    if not seconds:
        return None
    sent = list(samples[-1].bytes_sent)
    least = timed.problem.least_communication(timed.case.sizes, timed.dtype, len(sent))
    by_rank = ([sample.communicating_by_rank for sample in samples], [sample.kernel_by_rank for sample in samples])
    return Communication(median(seconds).value, sent, least, *map(_of_each_rank, by_rank))


def _of_each_rank(samples: Sequence[Sequence[float]]) -> list[float]:
    """The median of each rank's samples."""
    return [median(seconds).value for seconds in zip(*samples, strict=True)]


def _fill_speedups(groups: Sequence[Group]) -> list[Control]:
    """Fill in the speed-up of every row over its baseline. Returns the controls that were judged, too."""
    compared = [(group, row) for group in groups for row in group.compared()]
    ratios = [(group, row, found) for group, row in compared if (found := group.ratio(row))]
    said = verdicts([found for *_, found in ratios])
    for group in groups:
        if group.baseline and group.baseline.samples:
            group.baseline.result.versus = _itself(group.baseline)
    judged = {
        row: _speedup(group, row, found, verdict) for (group, row, found), verdict in zip(ratios, said, strict=True)
    }
    for group in groups:
        for row in group.rows:
            row.result.versus = judged.get(row, row.result.versus)
    return [_control(group, judged) for group in groups if group.controls and judged.keys() >= {*group.controls}]


def _control(group: Group, judged: Mapping[RunningRow, Speedup]) -> Control:
    first, second = group.controls
    row = first.result
    return Control(row.kernel, row.dtype, row.shape, judged[first], judged[second])


def _speedup(group: Group, row: RunningRow, found: Ratio, verdict: str) -> Speedup:
    assert group.baseline is not None  # nothing is compared without a baseline
    return Speedup(
        baseline=group.baseline.result.backend,
        speedup=found.median,
        low=found.low,
        high=found.high,
        same_shape=row.case.sizes == group.baseline.case.sizes,
        verdict=verdict,
        rounds=found.rounds,
        converged=verdict != UNCLEAR,
    )


def _itself(baseline: RunningRow) -> Speedup:
    return Speedup(baseline.result.backend, 1.0, 1.0, 1.0, True, SAME, len(baseline.samples), True)


def add_note(row: Row, note: str) -> None:
    """Add a sentence to the note of a row."""
    row.note = f"{row.note}; {note}" if row.note else note
