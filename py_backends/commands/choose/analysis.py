"""Finds the implementation to take for a workload: the one whose whole call from Python is the fastest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from py_backends import registry
from py_backends.commands.choose.plan import budget_for_others
from py_backends.results.grouping import grouped
from py_backends.results.ratios import row_ratio, speedup
from py_backends.results.report import Report, Row, Speedup
from py_backends.results.spec import Implementation, Sizes, Workload
from py_backends.results.timeline import KERNEL, Call, timelines
from py_backends.results.verdicts import FASTER, leads


@dataclass(frozen=True)
class Standing:
    """The rows at one size that are compared with one another.

    rows: the fastest by its median, those that cannot be told from it, and the others; both in the order of `ahead`.
    ahead: by the `id` of a row, the speed-up of the fastest row over it, with a verdict. The fastest has no entry.
    """

    sizes: Sizes
    rows: Sequence[Row]
    ahead: Mapping[int, Speedup]

    @property
    def best(self) -> Row:
        """The row with the smallest median time."""
        return self.rows[0]

    def is_behind(self, row: Row) -> bool:
        """Whether a row is certainly slower than the fastest."""
        return row is not self.best and self.ahead[id(row)].verdict == FASTER

    @property
    def candidates(self) -> list[Row]:
        """The fastest row, and those that cannot be told from it."""
        return [row for row in self.rows if not self.is_behind(row)]

    @property
    def names(self) -> set[Implementation]:
        """The implementations of the candidates."""
        return {row.spec.implementation for row in self.candidates}

    def row(self, who: Implementation) -> Row | None:
        """The row of an implementation; None if it was not timed."""
        return next((row for row in self.rows if row.spec.implementation == who), None)

    def times_as_fast(self, names: set[Implementation]) -> float | None:
        """The speed-up of the fastest row over the fastest of these; None if none of them was timed."""
        row = next((row for row in self.rows if row.spec.implementation in names), None)
        return None if row is None else 1.0 if row is self.best else self.ahead[id(row)].speedup


@dataclass(frozen=True)
class Choice:
    """The answer of a run for one workload.

    calls: whole calls at the requested size.
    kernels: the kernels alone at that size; None if none was timed.
    others: whole calls at other sizes, by increasing work.
    too_long: the sizes above the requested one for which there was no time.
    budget, budget_for_others: seconds of the whole run: that it had, and the least with which it tries other sizes.
        None if it has none to try.
    missing: a row of each implementation whose call was not timed at the requested size.
    """

    asked: Workload
    calls: Standing
    kernels: Standing | None
    others: Sequence[Standing]
    too_long: Sequence[Sizes]
    budget: float
    budget_for_others: float | None
    missing: Sequence[Row]
    _phases: Mapping[Implementation, Call]

    def kernel(self, row: Row) -> Row | None:
        """The row of the kernel alone that belongs to a row of whole calls."""
        return self.kernels.row(row.spec.implementation) if self.kernels else None

    def beyond_kernel(self, row: Row) -> float | None:
        """Seconds by which a call takes longer than its kernel; None if the kernel was not timed."""
        kernel = self.kernel(row)
        return None if kernel is None else max(0.0, seconds(row) - seconds(kernel))

    def phases(self, row: Row) -> dict[str, float]:
        """Seconds of each phase of a call but the kernel, as in `timeline`."""
        call = self._phases.get(row.spec.implementation)
        return {name: each for name, each in call.phases.items() if name != KERNEL} if call else {}

    def change(self, *, upwards: bool) -> tuple[Standing, Sizes] | None:
        """The nearest size in one direction with another answer, and the last size before it; None without one.

        The answer is another one if no candidate here is a candidate there.
        """
        last = self.calls.sizes
        for standing in self._towards(upwards=upwards):
            if not standing.names & self.calls.names:
                return standing, last
            last = standing.sizes
        return None

    def furthest(self, *, upwards: bool) -> Sizes | None:
        """The last size that was measured in one direction; None without one."""
        found = self._towards(upwards=upwards)
        return found[-1].sizes if found else None

    def _towards(self, *, upwards: bool) -> list[Standing]:
        work = registry.problem(self.asked.kernel).work
        here = work(self.calls.sizes)
        if upwards:
            return [each for each in self.others if work(each.sizes) > here]
        return [each for each in reversed(self.others) if work(each.sizes) < here]


def seconds(row: Row) -> float:
    """The median time of a row, in seconds: of its statement or of its kernel."""
    assert row.timed, "only timed rows have a standing"
    return row.timed.median


def choices(report: Report) -> list[Choice]:
    """The answer for each requested workload that has a timed call."""
    asked = _requested(report)
    return [choice for workload, rows in asked.items() if (choice := _choice(workload, rows, report))]


def unanswered(report: Report, found: Sequence[Choice]) -> dict[Workload, list[Row]]:
    """Each requested workload that has no timed call, with its rows without a time. `found`: those of `choices`."""
    answered = {choice.asked for choice in found}
    without: dict[Workload, list[Row]] = {workload: [] for workload in _requested(report) if workload not in answered}
    for row in report.rows:
        workload = row.spec.on_any_threads.workload
        if workload in without and not row.timed:
            without[workload].append(row)
    return without


def _requested(report: Report) -> dict[Workload, list[Row]]:
    """The rows of kernels by their workload. Only the requested sizes have such rows."""
    return grouped((row.spec.on_any_threads.workload, row) for row in report.rows if row.statement is None)


def _choice(asked: Workload, rows: Sequence[Row], report: Report) -> Choice | None:
    calls = [row for row in report.rows if row.statement and (row.kernel, row.dtype) == (asked.kernel, asked.dtype)]
    at_sizes = grouped((row.spec.sizes, row) for row in calls if row.timed)
    if asked.sizes not in at_sizes:
        return None
    problem = registry.problem(asked.kernel)
    work, needed = problem.work, budget_for_others(problem, asked.sizes, asked.dtype)
    standings = {sizes: _standing(sizes, at_sizes[sizes]) for sizes in sorted(at_sizes, key=work)}
    called = standings.pop(asked.sizes)
    kernels = [row for row in rows if row.timed]
    last_rows = {row.spec.implementation: row for row in [*rows, *calls] if row.spec.sizes == asked.sizes}
    return Choice(
        asked,
        called,
        _standing(asked.sizes, kernels) if kernels else None,
        list(standings.values()),
        sorted({row.spec.sizes for row in calls if work(row.spec.sizes) > work(asked.sizes)} - at_sizes.keys()),
        report.settings["budget_seconds"],
        None if needed is None else needed * len(_requested(report)),
        [row for who, row in last_rows.items() if called.row(who) is None],
        {
            call.row.spec.implementation: call
            for each in timelines(replace(report, rows=kernels))
            for call in each.calls
        },
    )


def _standing(sizes: Sizes, rows: Sequence[Row]) -> Standing:
    best, *others = sorted(rows, key=seconds)
    said = leads([row_ratio(best, row) for row in others])
    ahead = {
        id(row): speedup(best, row, row_ratio(best, row), verdict) for row, verdict in zip(others, said, strict=True)
    }
    others.sort(key=lambda row: (ahead[id(row)].verdict == FASTER, ahead[id(row)].speedup))
    return Standing(sizes, [best, *others], ahead)
