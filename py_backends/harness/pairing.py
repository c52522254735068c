"""Pairs rows with their baseline, and adds the controls.

A control is a further copy of the baseline in a worker of its own. It is sampled and judged like any row, and shows how
far apart two equal rows lie in this run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter

from py_backends import registry
from py_backends.harness.pool import Pool
from py_backends.harness.running_row import RunningRow
from py_backends.results.ratios import speedups
from py_backends.results.report import by_round
from py_backends.results.verdicts import Ratio, ratio
from py_backends.workers.process import WorkerFailed

COPIES = 2
"""The number of controls of a baseline."""


@dataclass
class Group:
    """The rows of one workload. If their baseline cannot run, nothing is compared."""

    rows: list[RunningRow]
    baseline: RunningRow | None
    controls: list[RunningRow] = field(default_factory=list)

    @property
    def sampled(self) -> list[RunningRow]:
        """The rows and controls that a round samples."""
        return [*self.rows, *self.controls]

    def ratio(self, row: RunningRow, *, whole_calls: bool = False) -> Ratio | None:
        """The speed-up of a row over the baseline in the rounds so far; None if there is nothing to compare."""
        ratios = self.ratios(row, whole_calls=whole_calls)
        return ratio(ratios) if ratios else None

    def ratios(self, row: RunningRow, *, whole_calls: bool = False) -> dict[int, float]:
        """What the function `ratios` says of a row over the baseline; empty without one."""
        return ratios(row, self.baseline, whole_calls=whole_calls) if self.baseline else {}

    def keep_right(self) -> None:
        """Remove the rows that are no longer `ok`. Without the baseline, nothing is compared."""
        self.rows = [row for row in self.rows if row.status == "ok"]
        if self.baseline not in self.rows:
            self.baseline = None

    def compared(self) -> list[RunningRow]:
        """The rows to judge: all but the baseline, and the controls."""
        return [row for row in self.sampled if row is not self.baseline]


def ratios(row: RunningRow, other: RunningRow, *, whole_calls: bool = False) -> dict[int, float]:
    """The speed-up of a row over another in each round that both have: of rates, if they ran at different shapes.

    whole_calls: times from upload to release in place of the kernel's.
    """
    seconds = attrgetter("end_to_end" if whole_calls else "kernel")
    ours, theirs = (by_round({n: seconds(each) for n, each in one.samples.items()}) for one in (row, other))
    return speedups(ours, theirs, row.work.amount / other.work.amount)


def groups(timed: Sequence[RunningRow]) -> list[Group]:
    """The rows by workload, each group with its baseline."""
    made = []
    for _, rows in groupby(sorted(timed, key=attrgetter("workload")), key=attrgetter("workload")):
        members = list(rows)
        baselines = [row for row in members if registry.is_baseline(row.spec.backend)]
        # If it runs on several numbers of threads, a user would take the most.
        made.append(Group(members, max(baselines, key=lambda row: row.threads or 0, default=None)))
    return made


def add_controls(group: Group, pool: Pool) -> None:
    """Start the copies of a group's baseline and check them. If one fails, the group has no controls."""
    baseline = group.baseline
    if baseline is None or len(group.rows) < 2 or not baseline.controls:
        return
    for number in range(1, COPIES + 1):
        control = baseline.copy_on(pool.runner_of(baseline, number))
        try:
            control.try_once()
            control.sample()  # so that code and pages are loaded, as after the baseline's `settle`
        except (WorkerFailed, MemoryError):
            group.controls.clear()
            return
        group.controls.append(control)
