"""What the rungs of a ladder gain, each over the one below, beside a published ladder of the same ideas."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from py_backends.commands.ladder.plan import baselines, chains, is_narrower, is_of, ladders
from py_backends.contract import Ladder, Rung
from py_backends.results.grouping import grouped
from py_backends.results.ratios import rate, rate_of, row_ratio, speedup, with_verdicts
from py_backends.results.report import Report, Row, Speedup
from py_backends.results.roofline import percent_of_peak


@dataclass(frozen=True)
class Step:
    """The measurements of a rung. `rung` is None for the baseline beside the ladder.

    over_first, over_below: the speed-up over the first rung, and over the rung below; None if that was not timed, and
        for the first rung itself.
    percent_of_peak: of the multiply-adds of all threads together, or of what the memory allows if the kernel's rate is
        a bandwidth; None if that is not known.
    """

    rung: Rung | None
    row: Row
    over_first: Speedup | None
    over_below: Speedup | None
    percent_of_peak: float | None


@dataclass(frozen=True)
class Climb:
    """The measurements of a ladder in one dtype at one shape.

    steps: the rungs that were timed, in the ladder's order.
    missing: the others, each with the reason.
    baselines: the baseline, if it was timed.
    """

    kernel: str
    dtype: str
    shape: dict[str, int | float]
    ladder: Ladder
    steps: list[Step]
    missing: list[tuple[Rung, str]]
    baselines: list[Step]

    @property
    def together(self) -> float | None:
        """The product of the steps' speed-ups; None if some rung was not timed, or ran at another shape."""
        gains = [step.over_below for step in self.steps[1:]]
        if self.missing or not all(gain and gain.same_shape for gain in gains):
            return None
        return math.prod(gain.speedup for gain in gains if gain)


def climbs(report: Report) -> list[Climb]:
    """The ladders with timed rungs in a report, one for each requested dtype and shape.

    Rungs in a narrower format belong to all wider ladders of their shape, and make no ladder of their own.
    """
    groups = grouped((row.spec.on_any_threads.workload, row) for row in report.rows)
    found = ladders()
    made: list[Climb] = []
    for workload, rows in groups.items():
        held = [each for each in chains().get(workload.kernel, ()) if _holds(rows, each)]
        made += [_climb(each, rows, [], report) for each in held]
        if workload.kernel not in found or not _is_of_more(rows, found[workload.kernel], held):
            continue
        ladder = found[workload.kernel]
        beside = {each.dtype: its for each, its in groups.items() if each == workload._replace(dtype=each.dtype)}
        if not (_on_top(ladder, rows) and any(is_narrower(workload.dtype, dtype) for dtype in beside)):
            narrower = [row for dtype, its in beside.items() if is_narrower(dtype, workload.dtype) for row in its]
            made.append(_climb(ladder, rows, narrower, report))
    return [climb for climb in made if climb.steps]


def _holds(rows: Sequence[Row], ladder: Ladder) -> bool:
    """Whether every rung of a ladder has a row, timed or not."""
    texts = {(row.backend, row.variant) for row in rows}
    return all((rung.backend, rung.variant) in texts for rung in ladder.rungs)


def _is_of_more(rows: Sequence[Row], ladder: Ladder, chains: Sequence[Ladder]) -> bool:
    """Whether the rows include a rung of a ladder that no chain of steps has. If not, the ladder was not requested."""
    of_chains = {(rung.backend, rung.variant) for each in chains for rung in each.rungs}
    texts = {(row.backend, row.variant) for row in rows} - of_chains
    return not chains or any((rung.backend, rung.variant) in texts for rung in ladder.rungs)


def _on_top(ladder: Ladder, rows: Sequence[Row]) -> bool:
    """Whether all rows belong to rungs in a narrower format."""
    texts = {(rung.backend, rung.variant, rung.dtype) for rung in ladder.formats}
    return all((row.backend, row.variant, row.dtype) in texts for row in rows)


def _climb(ladder: Ladder, rows: Sequence[Row], narrower: Sequence[Row], report: Report) -> Climb:
    """The measurements of a ladder in one format. `narrower`: the rows in narrower formats."""
    rungs = [(rung, _rows_of(rung, ladder, rows)) for rung in ladder.rungs]
    for narrow in reversed(ladder.formats):
        if its := _rows_of(narrow, ladder, narrower):
            same = [at for at, rung in enumerate(ladder.rungs) if rung.backend == narrow.backend]
            rungs.insert(same[-1] + 1 if same else len(ladder.rungs), (narrow, its))
    best = [(rung, _best(its)) for rung, its in rungs]
    timed = [(rung, row) for rung, row in best if row is not None]
    first = timed[0][1] if timed and timed[0][0] is ladder.rungs[0] else None
    pairs = [(above, below) for (_, below), (_, above) in pairwise(timed)]
    over_below = [None, *with_verdicts(pairs)]
    steps = [_step(rung, row, first, below, report) for (rung, row), below in zip(timed, over_below, strict=False)]
    beside = [row for name in baselines() for its in _by_variant(rows, name) if (row := _best(its))]
    return Climb(
        rows[0].kernel,
        rows[0].dtype,
        rows[0].asked,
        ladder,
        steps,
        missing=[(rung, _why_not(its)) for rung, its in rungs if _best(its) is None],
        baselines=[_step(None, row, first, None, report) for row in beside],
    )


def _rows_of(rung: Rung, ladder: Ladder, rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if is_of(rung, ladder, row.spec)]


def _best(rows: Sequence[Row]) -> Row | None:
    """The fastest of the timed rows with the most threads; None if none was timed."""
    timed = [row for row in rows if row.status == "ok" and rate(row) > 0]
    return max(timed, key=lambda row: (row.threads or 0, rate(row)), default=None)


def _by_variant(rows: Sequence[Row], backend: str) -> list[list[Row]]:
    its = [row for row in rows if row.backend == backend]
    return [[row for row in its if row.variant == variant] for variant in dict.fromkeys(row.variant for row in its)]


def _why_not(rows: Sequence[Row]) -> str:
    """The reason why the rung of these rows was not timed."""
    return next((row.reason or row.status for row in rows), "it was not requested")


def _step(rung: Rung | None, row: Row, first: Row | None, over_below: Speedup | None, report: Report) -> Step:
    over_first = None if first is None or first is row else speedup(row, first, row_ratio(row, first), None)
    of_arithmetic = rate_of([row]) == "gflops"
    percent = percent_of_peak(row, report.ceilings) if of_arithmetic else row.percent_of_ceiling
    return Step(rung, row, over_first, over_below, percent)
