"""Pairs rows with their baseline: which are compared with which, and the controls.

A control is one more copy of the baseline, in a worker of its own, sampled in every round as the rows are. The
first sets the band within which two equal things lie in this run; the second is judged by it like any row.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter

from py_backends import registry
from py_backends.harness.bench import Bench
from py_backends.harness.rounds import TimedRow
from py_backends.harness.verdicts import RESAMPLES, Ratio, band, ratio
from py_backends.harness.workers import WorkerFailed

COPIES = 2
"""Controls of a baseline."""


@dataclass
class Group:
    """The rows of one workload. If their baseline cannot run, nothing is compared."""

    rows: list[TimedRow]
    baseline: TimedRow | None
    controls: list[TimedRow] = field(default_factory=list)

    @property
    def sampled(self) -> list[TimedRow]:
        """All that a round samples."""
        return [*self.rows, *self.controls]

    def band(self) -> float | None:
        """What the first control says so far; None where it cannot."""
        if not self.controls or any(control.failed for control in self.controls):
            return None
        return band(self._ratios(self.controls[0]))

    def ratio(self, row: TimedRow, resamples: int = RESAMPLES) -> Ratio | None:
        """How a row compares with the baseline in the rounds so far; None where there is nothing to compare."""
        ratios = self._ratios(row)
        return ratio(ratios, resamples) if ratios else None

    def _ratios(self, row: TimedRow) -> list[float]:
        """Ratios of kernel times, round by round; of rates where the two ran at different shapes."""
        baseline = self.baseline
        if baseline is None:
            return []
        problem = row.planned.problem
        work = problem.work(row.case.sizes) / problem.work(baseline.case.sizes)
        rounds = sorted(row.samples.keys() & baseline.samples.keys())
        return [baseline.samples[n].kernel / row.samples[n].kernel * work for n in rounds]

    def keep_right(self) -> None:
        """Leave out the rows that failed or went wrong in the meantime; without its baseline nothing is compared."""
        self.rows = [row for row in self.rows if row.planned.row.status == "ok"]
        if self.baseline not in self.rows:
            self.baseline = None

    def compared(self) -> list[TimedRow]:
        """All that is judged: every row but the baseline, and the second control where the first was ever sampled."""
        judged = [row for row in self.rows if row is not self.baseline]
        return [*judged, *self.controls[1:]] if self.controls and self.controls[0].samples else judged


def groups(timed: Sequence[TimedRow]) -> list[Group]:
    """The rows by workload, each group with its baseline."""
    made = []
    for _, rows in groupby(sorted(timed, key=attrgetter("workload")), key=attrgetter("workload")):
        members = list(rows)
        baselines = [row for row in members if registry.is_baseline(row.planned.row.backend)]
        # Where it runs on several numbers of threads, the most are what a user would take.
        made.append(Group(members, max(baselines, key=lambda row: row.planned.row.threads or 0, default=None)))
    return made


def add_controls(group: Group, bench: Bench) -> None:
    """Start the copies of a group's baseline and check them; without both, nothing of it is judged."""
    baseline = group.baseline
    if baseline is None or len(group.rows) < 2 or not baseline.planned.controls:
        return
    planned = baseline.planned
    for number in range(1, COPIES + 1):
        runner = bench.runner(planned.row.backend, planned.target, planned.row.threads, number)
        control = TimedRow(copy(planned), runner, baseline.case, baseline.repetitions, baseline.warm_up)
        control.planned.row = copy(planned.row)
        try:
            control.check()
            control.sample()  # brings in code and pages, as `settle` did for the baseline
        except (WorkerFailed, MemoryError):
            group.controls.clear()
            return
        group.controls.append(control)
