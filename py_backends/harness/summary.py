"""Makes the rows of the results from what a run found out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from py_backends import registry
from py_backends.harness.pairing import Group
from py_backends.harness.running_row import RunningRow
from py_backends.results.report import Communication, Control, Rate, Row, Seconds, Speedup, Work, by_round
from py_backends.results.spec import Sizes
from py_backends.results.statistics import duration, median
from py_backends.results.verdicts import SAME, UNCLEAR, Ratio, verdicts
from py_backends.workers.runner import Prepared, Sample

FEW_ROUNDS = "of the 6 samples that an interval needs"
"""The end of a row's note, after the number of its samples."""


def row_of(ran: RunningRow, versus: Speedup | None = None) -> Row:
    """The row of the results. `versus`: how it compares with its baseline."""
    spec, notes = ran.spec, list(ran.notes)
    samples = ran.samples if ran.status == "ok" else {}
    seconds = _seconds(ran.prepared, list(samples.values()))
    kernel = seconds.kernel if seconds else None
    work = Work.of(ran.problem, ran.sizes, ran.dtype) if ran.check else None
    if kernel and kernel.low is None:
        notes.append(f"{kernel.samples} {FEW_ROUNDS}")
    return Row(
        spec.kernel,
        *spec.implementation,
        spec.dtype,
        shape=_named(spec.kernel, ran.sizes),
        status=ran.status,
        reason=ran.reason,
        fix=ran.fix,
        note="; ".join(notes) or None,
        device=ran.target.device,
        check=ran.check,
        seconds=seconds,
        rate=Rate(work.flops / kernel.median / 1e9, work.bytes / kernel.median / 1e9) if work and kernel else None,
        versus=versus,
        percent_of_ceiling=ran.percent_of_ceiling,
        requested=None if ran.sizes == spec.sizes else _named(spec.kernel, spec.sizes),
        work=work,
        finished=ran.finished,
        threads=ran.threads,
        statement=spec.statement,
        kernel_seconds=by_round({number: sample.kernel for number, sample in samples.items()}),
        end_to_end_seconds=by_round({number: sample.end_to_end for number, sample in samples.items()}),
        communication=_communication(ran, list(samples.values())),
        stands_for=list(spec.stands_for),
        estimated_seconds=ran.estimated_seconds,
        kept=bool(ran.prepared and ran.prepared.kept),
    )


def _named(kernel: str, sizes: Sizes) -> dict[str, int | float]:
    """The sizes by the names of the kernel's parameters. Rows of a broken kernel have none."""
    return dict(zip(registry.problem(kernel).parameters, sizes, strict=True)) if sizes else {}


def _seconds(prepared: Prepared | None, samples: Sequence[Sample]) -> Seconds | None:
    prepare, first_launch = (prepared.seconds, prepared.first_launch) if prepared else (None, None)
    if not samples:
        return Seconds(prepare, first_launch=first_launch) if prepared else None
    clocks = [sample.clock for sample in samples if sample.clock is not None]
    return Seconds(
        prepare,
        first_launch=first_launch,
        upload=median([sample.upload for sample in samples]).value,
        download=median([sample.download for sample in samples]).value,
        release=median([sample.release for sample in samples]).value,
        kernel=duration([sample.kernel for sample in samples]),
        end_to_end=duration([sample.end_to_end for sample in samples]),
        clock=duration(clocks) if clocks else None,
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


def judge(groups: Sequence[Group]) -> tuple[dict[RunningRow, Speedup], list[Control]]:
    """The speed-up of every row over its baseline, and the controls."""
    compared = [(group, row) for group in groups for row in group.compared()]
    ratios = [(group, row, found) for group, row in compared if (found := group.ratio(row))]
    said = verdicts([found for *_, found in ratios])
    judged = {
        row: _speedup(group, row, found, verdict) for (group, row, found), verdict in zip(ratios, said, strict=True)
    }
    judged |= {each: _itself(each) for group in groups if (each := group.baseline) and each.samples}
    return judged, [
        _control(group, judged) for group in groups if group.controls and judged.keys() >= {*group.controls}
    ]


def _control(group: Group, judged: Mapping[RunningRow, Speedup]) -> Control:
    first, second = group.controls
    kernel = first.spec.kernel
    return Control(kernel, first.spec.dtype, _named(kernel, first.sizes), judged[first], judged[second])


def _speedup(group: Group, row: RunningRow, found: Ratio, verdict: str) -> Speedup:
    assert group.baseline is not None  # nothing is compared without a baseline
    return Speedup(
        baseline=group.baseline.spec.backend,
        speedup=found.median,
        low=found.low,
        high=found.high,
        same_shape=row.case.sizes == group.baseline.case.sizes,
        verdict=verdict,
        rounds=found.rounds,
        converged=verdict != UNCLEAR,
    )


def _itself(baseline: RunningRow) -> Speedup:
    return Speedup(baseline.spec.backend, 1.0, 1.0, 1.0, True, SAME, len(baseline.samples), True)
