"""Finds the implementation to take for a workload: the one whose whole call from Python is the fastest.

The statement that a user writes is timed, on arrays in the host's memory. So argument checks, launches, and copies to
and from a device count. The kernel alone is timed as well, which shows the overhead of a call. Other sizes show where
the answer changes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from string import ascii_lowercase
from typing import Any

import numpy as np

from py_backends import registry
from py_backends.contract import Problem
from py_backends.errors import WrongRequest
from py_backends.functions import this_process
from py_backends.harness.pairing import Group, ratios
from py_backends.harness.plan import Plan
from py_backends.harness.request import Request
from py_backends.harness.running_row import RunningRow
from py_backends.harness.sizing import growing
from py_backends.harness.sweep import most_bytes
from py_backends.results.grouping import grouped
from py_backends.results.ratios import by_round, row_ratio, speedup
from py_backends.results.report import Report, Row, Speedup
from py_backends.results.spec import Implementation, Sizes, Spec, Workload
from py_backends.results.timeline import KERNEL, Call, timelines
from py_backends.results.verdicts import FASTER, LEAST_ROUNDS, LOOKS, UNCLEAR, leads
from py_backends.workers.probe import BackendTarget, timed_targets

_RUNS = 14
"""Each row must have time for this many runs: its checks, and the fewest rounds that tell two of a dozen rows apart."""
_ENOUGH = 100
"""Rounds after which two rows count as equal if they still cannot be told apart."""
_SECONDS_OF_ONE, _SECONDS_OF_ANOTHER = 20.0, 8.0
"""Seconds of the budget for the requested size, and for each other size: preparing, checking, and the first rounds."""
_MOST_OTHERS = 8
_WORK_OF_LARGER = 8
"""The work of the larger size over that of the requested one. For square matrices, 8 is twice the size."""


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


def plan(kernels: Sequence[str], budget: float, threads: int | None = None, **names: Any) -> Plan:
    """The plan. Raises WrongRequest for unknown names, impossible sizes, and several shapes of one kernel.

    budget: seconds for the whole run.
    threads: the requested number; None leaves it to the backends.
    names: backends, shapes and so on, as `Request` takes them.
    """
    request = Request(kernels, **names)
    if crowded := next((kernel for kernel, shapes in request.shapes.items() if len(shapes) > 1), None):
        raise WrongRequest(f"an answer is for one shape: give one of {crowded}, and run the others separately")

    def specs(found: Sequence[BackendTarget]) -> list[Spec]:
        there = timed_targets(found)
        # What needs variables would refuse the call in a process that was started without them, as this one may be.
        usual = [each for each in found if each.target.emulated or this_process.has_variables_of(each.target)]
        _check_targets(request.targets or (), found, usual)
        requested, made = request.specs(usual), list[Spec]()
        share = budget / max(1, len({spec.workload for spec in requested}))
        for spec in requested:
            made.append(spec)
            able = spec.variant in registry.kernel_texts(spec.kernel, spec.backend) if spec.sizes else False
            if able and (spec.backend, spec.target) in there:
                call = replace(spec, statement=statement(spec, threads))
                others = other_sizes(registry.problem(spec.kernel), spec.sizes, spec.dtype, share)
                made += [call, *(replace(call, sizes=sizes) for sizes in others)]
        return made

    return Plan.of(
        request, specs, timed_only=True, runs=_RUNS, shorten=False, least_rounds=_RUNS, controls=False, schedule=race
    )


def _check_targets(names: Sequence[str], found: Sequence[BackendTarget], usual: Sequence[BackendTarget]) -> None:
    """Raise WrongRequest for a named target that only a process with other variables than this one can use."""
    left = {target.name for _, target in usual}
    for backend, target in found:
        if target.name in names and target.name not in left:
            raise WrongRequest(f"{backend} {target.name} is not available: {this_process.usable(target).reason}")


def statement(spec: Spec, threads: int | None = None) -> str:
    """What a user writes to call an implementation that puts its result into an existing array.

    For NumPy this is its own function, unless a number of threads is requested, or the result has another dtype.
    """
    problem, dtype = registry.problem(spec.kernel), np.dtype(spec.dtype)
    own = problem.in_numpy if registry.is_baseline(spec.backend) else None
    if own and threads is None and problem.result_dtype(dtype) == dtype:
        return own
    *inputs, output = list(ascii_lowercase[: len(problem.inputs) + 1])
    options = {"backend": spec.backend, "target": spec.target, "variant": spec.variant, "threads": threads}
    given = "".join(f", {name}={value!r}" for name, value in options.items() if value is not None)
    return f"pb.{spec.kernel}({', '.join(inputs)}, out={output}{given})"


def other_sizes(problem: Problem, sizes: Sizes, dtype: str, budget: float) -> list[Sizes]:
    """Shapes of about the same proportions, smaller ones and one larger: as many as `budget` seconds suffice for."""
    count = min(_MOST_OTHERS, max(0, int((budget - _SECONDS_OF_ONE) / _SECONDS_OF_ANOTHER)))
    if not count or 0 in sizes:
        return []
    factor = _WORK_OF_LARGER ** (1 / len(sizes))
    larger = tuple(round(size * factor) for size in sizes)
    above = [larger] if problem.bytes(larger, np.dtype(dtype)) <= most_bytes(budget) and count > 1 else []
    smaller = list(dict.fromkeys(growing(problem, sizes)))[:-1]
    step = max(1, math.ceil(len(smaller) / (count - len(above))))
    return [*smaller[::-1][::step][::-1], *above]


def _budget_for_others(problem: Problem, sizes: Sizes, dtype: str) -> float | None:
    """The least budget with which `other_sizes` finds some; None if it never does."""
    budgets = (_SECONDS_OF_ONE + count * _SECONDS_OF_ANOTHER for count in range(1, 1 + _MOST_OTHERS))
    return next((budget for budget in budgets if other_sizes(problem, sizes, dtype, budget)), None)


def race(groups: Sequence[Group]) -> list[RunningRow]:
    """The rows of the next round: at each size the fastest row, and those that cannot be told from it yet.

    Calls are compared with calls, and kernels with kernels. Only the requested size has kernels, and it comes first.
    The other sizes wait until it is decided, or has had its rounds. The result is empty when everything is decided.
    """
    first: list[RunningRow] = []
    rest: list[RunningRow] = []
    for group in groups:
        running = [row for row in group.rows if not row.failed]
        kernels = [row for row in running if row.spec.statement is None]
        calls = [row for row in running if row.spec.statement is not None]
        if kernels:
            first += _undecided(calls, _ENOUGH) + _undecided(kernels, _RUNS)
        else:
            rest += _undecided(calls, _ENOUGH)
    if any(len(row.samples) < _RUNS for row in first):
        return first
    return [*first, *rest]


def _undecided(rows: Sequence[RunningRow], most: int) -> list[RunningRow]:
    """The rows that need another round, of rows that are compared with one another. No row gets more than `most`."""
    if not rows or max(len(row.samples) for row in rows) >= most:
        return []
    best = min(rows, key=_median)
    few = [row for row in rows if len(row.samples) < (LOOKS if len(rows) > 1 else LEAST_ROUNDS)]
    if few:
        return few if best in few else [best, *few]
    others = [row for row in rows if row is not best]
    said = leads([ratios(best, row) for row in others])
    still = [row for row, verdict in zip(others, said, strict=True) if verdict == UNCLEAR]
    return [best, *still] if still else []


def _median(row: RunningRow) -> float:
    return median(sample.kernel for sample in row.samples.values()) if row.samples else math.inf


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
    work, needed = problem.work, _budget_for_others(problem, asked.sizes, asked.dtype)
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
    said = leads([by_round(best, row) for row in others])
    ahead = {
        id(row): speedup(best, row, row_ratio(best, row), verdict) for row, verdict in zip(others, said, strict=True)
    }
    others.sort(key=lambda row: (ahead[id(row)].verdict == FASTER, ahead[id(row)].speedup))
    return Standing(sizes, [best, *others], ahead)
