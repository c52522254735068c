"""What is run to choose: whole calls and kernels at the requested size, calls at others, in a race.

The statement that a user writes is timed, on arrays in the host's memory. So argument checks, launches, and copies to
and from a device count. The kernel alone is timed as well, which shows the overhead of a call. Other sizes show where
the answer changes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
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
from py_backends.harness.sizing import growing, most_bytes
from py_backends.results.spec import Sizes, Spec
from py_backends.results.verdicts import LEAST_ROUNDS, LOOKS, is_decided, leads, ratio
from py_backends.workers.probe import BackendTarget, timed_targets

_RUNS = 14
"""Each row must have time for this many runs: its checks, and the fewest rounds that tell two of a dozen rows apart."""
_ENOUGH = 100
"""Rounds after which two rows count as equal if they still cannot be told apart."""

_WORK_OF_LARGER = 8
"""The work of the larger size over that of the requested one. For square matrices, 8 is twice the size."""

_SECONDS_OF_ONE, _SECONDS_OF_ANOTHER = 20.0, 8.0
"""Seconds of the budget for the requested size, and for each other size: preparing, checking, and the first rounds."""
_MOST_OTHERS = 8


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
    arrays = ascii_lowercase[: len(problem.inputs) + problem.outputs]
    inputs, outputs = arrays[: len(problem.inputs)], arrays[len(problem.inputs) :]
    options = {"backend": spec.backend, "target": spec.target, "variant": spec.variant, "threads": threads}
    numbers = dict(zip(problem.numbers, spec.sizes[len(problem.dimensions) :], strict=False))
    others = {name: number for name, number in numbers.items() if number != problem.numbers[name]}
    given = "".join(f", {name}={value!r}" for name, value in (others | options).items() if value is not None)
    output = outputs if len(outputs) == 1 else f"({', '.join(outputs)})"
    return f"pb.{spec.kernel}({', '.join(inputs)}, out={output}{given})"


def other_sizes(problem: Problem, sizes: Sizes, dtype: str, budget: float) -> list[Sizes]:
    """Shapes of about the same proportions, smaller ones and one larger: as many as `budget` seconds suffice for."""
    count = min(_MOST_OTHERS, max(0, int((budget - _SECONDS_OF_ONE) / _SECONDS_OF_ANOTHER)))
    dimensions = len(problem.dimensions)
    if not count or 0 in sizes[:dimensions]:
        return []
    factor = _WORK_OF_LARGER ** (1 / dimensions)
    larger = problem.resized(sizes, lambda size: round(size * factor))
    above = [larger] if problem.bytes(larger, np.dtype(dtype)) <= most_bytes(budget) and count > 1 else []
    smaller = list(dict.fromkeys(growing(problem, sizes)))[:-1]
    step = max(1, math.ceil(len(smaller) / (count - len(above))))
    return [*smaller[::-1][::step][::-1], *above]


def budget_for_others(problem: Problem, sizes: Sizes, dtype: str) -> float | None:
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
    found = [ratio(ratios(best, row)) for row in others]
    told = zip(others, found, leads(found), strict=True)
    still = [row for row, ahead, verdict in told if not is_decided(ahead, verdict)]
    return [best, *still] if still else []


def _median(row: RunningRow) -> float:
    return median(sample.kernel for sample in row.samples.values()) if row.samples else math.inf
