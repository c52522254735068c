"""Which implementation to take for a workload: the one whose whole call from Python is the quickest.

What is timed is the statement that a user writes, over arrays in the host's memory, so that argument checks, copies to
a device and back, and launches count. The kernel alone is timed beside it, to say what a call costs beyond it. Other
sizes show where the answer changes.
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
from py_backends.harness.doctor import BackendTarget
from py_backends.harness.pairing import Group
from py_backends.harness.plan import Plan, Request
from py_backends.harness.results import Report, Row, Speedup
from py_backends.harness.rounds import TimedRow
from py_backends.harness.row_ratios import judged, row_ratio, speedup
from py_backends.harness.sizing import growing
from py_backends.harness.spec import Implementation, Sizes, Spec, Workload
from py_backends.harness.sweep import most_bytes
from py_backends.harness.timeline import KERNEL, Call, timelines
from py_backends.harness.verdicts import (
    FASTER,
    LEAST_ROUNDS,
    NARROWEST_BAND,
    RESAMPLES_TO_STOP,
    UNCLEAR,
    Ratio,
    ratio,
    verdicts,
)

_RUNS = 10
"""For which each row must have time: the fewest rounds that tell two apart among a dozen, and checks."""
_LOOKS = 3
"""Rounds by which one sees who is far behind."""
FAR = 3.0
"""Who takes this many times as long in every one of these rounds is out."""
_ENOUGH = 100
"""Rounds after which two that cannot be told apart are called so."""
_SECONDS_OF_ONE, _SECONDS_OF_ANOTHER = 20.0, 8.0
"""Of the budget, for the size that is asked for, and for each other one: preparing, checking, and ten rounds."""
_MOST_OTHERS = 8
_WORK_OF_LARGER = 8
"""How many times the work the larger size has: in square matrices, twice the size."""


@dataclass(frozen=True)
class Standing:
    """The rows at one size that are compared with one another, the quickest first.

    ahead: by the row's identity how many times as fast the quickest is, with a verdict; of itself nothing.
    """

    sizes: Sizes
    rows: Sequence[Row]
    ahead: Mapping[int, Speedup]

    @property
    def best(self) -> Row:
        """The quickest by its median."""
        return self.rows[0]

    def is_behind(self, row: Row) -> bool:
        """Whether a row is slower than the quickest for certain."""
        return row is not self.best and self.ahead[id(row)].verdict == FASTER

    @property
    def candidates(self) -> list[Row]:
        """The quickest, and those that cannot be told from it."""
        return [row for row in self.rows if not self.is_behind(row)]

    @property
    def names(self) -> set[Implementation]:
        """Of the candidates."""
        return {row.spec.implementation for row in self.candidates}

    def row(self, who: Implementation) -> Row | None:
        """What an implementation did here; None where it was not timed."""
        return next((row for row in self.rows if row.spec.implementation == who), None)

    def times_as_fast(self, names: set[Implementation]) -> float | None:
        """How many times as fast the quickest is as the quickest of these; None where none of them was timed."""
        row = next((row for row in self.rows if row.spec.implementation in names), None)
        return None if row is None else 1.0 if row is self.best else self.ahead[id(row)].speedup


@dataclass(frozen=True)
class Choice:
    """What a run says of one workload.

    calls: whole calls at the size that is asked for.
    kernels: the kernels alone at that size; None where none was timed.
    others: whole calls at other sizes, by rising work.
    too_long: the sizes beyond the one that is asked for which there was no time for.
    missing: a row of each implementation whose call has no time at the size that is asked for.
    """

    asked: Workload
    calls: Standing
    kernels: Standing | None
    others: Sequence[Standing]
    too_long: Sequence[Sizes]
    missing: Sequence[Row]
    _phases: Mapping[Implementation, Call]

    def kernel(self, row: Row) -> Row | None:
        """The row of the kernel alone, of a row of calls."""
        return self.kernels.row(row.spec.implementation) if self.kernels else None

    def beyond_kernel(self, row: Row) -> float | None:
        """Seconds that a call takes longer than its kernel; None where that was not timed."""
        kernel = self.kernel(row)
        return None if kernel is None else max(0.0, seconds(row) - seconds(kernel))

    def phases(self, row: Row) -> dict[str, float]:
        """Seconds of what a call does beside its kernel, as `timeline` has them."""
        call = self._phases.get(row.spec.implementation)
        return {name: each for name, each in call.phases.items() if name != KERNEL} if call else {}

    def change(self, *, upwards: bool) -> tuple[Standing, Sizes] | None:
        """The nearest size in one direction at which the answer is another, and the last one before it; or None.

        It is another where none that may be the quickest here may be the quickest there.
        """
        last = self.calls.sizes
        for standing in self._towards(upwards=upwards):
            if not standing.names & self.calls.names:
                return standing, last
            last = standing.sizes
        return None

    def furthest(self, *, upwards: bool) -> Sizes | None:
        """The last size that was measured in one direction; None where there is none."""
        found = self._towards(upwards=upwards)
        return found[-1].sizes if found else None

    def _towards(self, *, upwards: bool) -> list[Standing]:
        work = registry.problem(self.asked.kernel).work
        here = work(self.calls.sizes)
        if upwards:
            return [each for each in self.others if work(each.sizes) > here]
        return [each for each in reversed(self.others) if work(each.sizes) < here]


def seconds(row: Row) -> float:
    """The median time of what a row timed."""
    kernel = row.seconds.kernel if row.seconds else None
    assert kernel is not None, "only timed rows have a standing"
    return kernel.median


def plan(kernels: Sequence[str], budget: float, threads: int | None = None, **names: Any) -> Plan:
    """What is to run; WrongRequest for unknown names, impossible sizes, and several shapes of one kernel.

    budget: of the whole, in seconds.
    threads: that are asked for; None where they are left to the backends.
    names: backends, shapes and so on of the `Request`.
    """
    request = Request(kernels, **names)
    if crowded := next((kernel for kernel, shapes in request.shapes.items() if len(shapes) > 1), None):
        raise WrongRequest(f"an answer is for one shape: give one of {crowded}, and run the others apart")
    share = budget / max(1, len(kernels) * len(request.dtypes))

    def specs(found: Sequence[BackendTarget]) -> list[Spec]:
        there = {(backend, target.name) for backend, target in found if target.available and not target.emulated}
        made: list[Spec] = []
        for spec in request.specs(found):
            made.append(spec)
            able = spec.variant in registry.kernel_texts(spec.kernel, spec.backend) if spec.sizes else False
            if able and (spec.backend, spec.target) in there:
                call = replace(spec, statement=statement(spec, threads))
                others = other_sizes(registry.problem(spec.kernel), spec.sizes, spec.dtype, share)
                made += [call, *(replace(call, sizes=sizes) for sizes in others)]
        return made

    return request.plan(
        specs, timed_only=True, runs=_RUNS, shorten=False, least_rounds=_RUNS, controls=False, choose=race
    )


def statement(spec: Spec, threads: int | None = None) -> str:
    """What a user writes to call an implementation with its result in an array that is there already.

    Of NumPy that is its own function, unless the number of threads or the result's dtype takes more than that.
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
    """Shapes of about the same proportions, as many as so many seconds suffice for: smaller ones, and one larger."""
    count = min(_MOST_OTHERS, max(0, int((budget - _SECONDS_OF_ONE) / _SECONDS_OF_ANOTHER)))
    if not count or 0 in sizes:
        return []
    factor = _WORK_OF_LARGER ** (1 / len(sizes))
    larger = tuple(round(size * factor) for size in sizes)
    above = [larger] if problem.bytes(larger, np.dtype(dtype)) <= most_bytes(budget) and count > 1 else []
    smaller = list(dict.fromkeys(growing(problem, sizes)))[:-1]
    step = max(1, math.ceil(len(smaller) / (count - len(above))))
    return [*smaller[::-1][::step][::-1], *above]


def race(groups: Sequence[Group]) -> list[TimedRow]:
    """Who is in the next round: at each size the quickest, and those that cannot be told from it yet.

    Calls race with calls, and kernels with kernels. The size that is asked for, which alone has kernels, comes first;
    the others wait until it is told, or has had its rounds. There are none when all is told.
    """
    first: list[TimedRow] = []
    rest: list[TimedRow] = []
    for group in groups:
        running = [row for row in group.rows if not row.failed]
        kernels = [row for row in running if row.planned.spec.statement is None]
        calls = [row for row in running if row.planned.spec.statement is not None]
        if kernels:
            first += _still_in(calls, _ENOUGH) + _still_in(kernels, _RUNS)
        else:
            rest += _still_in(calls, _ENOUGH)
    if any(len(row.samples) < _RUNS for row in first):
        return first
    return [*first, *rest]


def _still_in(rows: Sequence[TimedRow], most: int) -> list[TimedRow]:
    """Of rows that are compared with one another, those that need another round, of so many at most."""
    if not rows or max(len(row.samples) for row in rows) >= most:
        return []
    best = min(rows, key=_median)
    few = [row for row in rows if len(row.samples) < (_LOOKS if len(rows) > 1 else LEAST_ROUNDS)]
    if few:
        return few if best in few else [best, *few]
    found = [(row, each) for row in rows if row is not best and not _is_far(each := _ratio(best, row))]
    said = verdicts([each for _, each in found], [NARROWEST_BAND] * len(found))
    still = [row for (row, _), verdict in zip(found, said, strict=True) if verdict == UNCLEAR]
    return [best, *still] if still else []


def _ratio(best: TimedRow, row: TimedRow) -> Ratio:
    """How many times as fast the first is, by the rounds that both have."""
    both = sorted(best.samples.keys() & row.samples.keys())
    ratios = [row.samples[number].kernel / best.samples[number].kernel for number in both]
    return ratio(ratios or [1.0], RESAMPLES_TO_STOP)


def _is_far(found: Ratio) -> bool:
    return found.rounds >= _LOOKS and bool(found.logarithms.min() >= math.log(FAR))


def _median(row: TimedRow) -> float:
    return median(sample.kernel for sample in row.samples.values()) if row.samples else math.inf


def choices(report: Report) -> list[Choice]:
    """What the rows say of each workload that was asked for; nothing of one without a timed call."""
    asked: dict[Workload, list[Row]] = {}
    for row in report.rows:
        if row.statement is None:
            asked.setdefault(row.spec.on_any_threads.workload, []).append(row)
    return [choice for workload, rows in asked.items() if (choice := _choice(workload, rows, report))]


def _choice(asked: Workload, rows: Sequence[Row], report: Report) -> Choice | None:
    calls = [row for row in report.rows if row.statement and (row.kernel, row.dtype) == (asked.kernel, asked.dtype)]
    at_sizes: dict[Sizes, list[Row]] = {}
    for row in filter(_is_timed, calls):
        at_sizes.setdefault(row.spec.sizes, []).append(row)
    if asked.sizes not in at_sizes:
        return None
    work = registry.problem(asked.kernel).work
    standings = {sizes: _standing(sizes, at_sizes[sizes]) for sizes in sorted(at_sizes, key=work)}
    called = standings.pop(asked.sizes)
    kernels = [row for row in rows if _is_timed(row)]
    last_rows = {row.spec.implementation: row for row in [*rows, *calls] if row.spec.sizes == asked.sizes}
    return Choice(
        asked,
        called,
        _standing(asked.sizes, kernels) if kernels else None,
        list(standings.values()),
        sorted({row.spec.sizes for row in calls if work(row.spec.sizes) > work(asked.sizes)} - at_sizes.keys()),
        [row for who, row in last_rows.items() if called.row(who) is None],
        {
            call.row.spec.implementation: call
            for each in timelines(replace(report, rows=kernels))
            for call in each.calls
        },
    )


def _is_timed(row: Row) -> bool:
    return row.status == "ok" and row.seconds is not None and row.seconds.kernel is not None


def _standing(sizes: Sizes, rows: Sequence[Row]) -> Standing:
    best, *others = sorted(rows, key=seconds)
    found = [(row, row_ratio(best, row)) for row in others]
    ahead = {id(row): speedup(best, row, each, FASTER) for row, each in found if _is_far(each)}
    near = [row for row, _ in found if id(row) not in ahead]
    ahead |= {id(row): each for row, each in zip(near, judged([(best, row) for row in near]), strict=True)}
    return Standing(sizes, [best, *others], ahead)
