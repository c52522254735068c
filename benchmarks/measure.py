"""Measures what the goals need: one comparison of the harness for each of their conditions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

from benchmarks.contenders import Conditions, Entry, Goal
from py_backends import registry
from py_backends.harness.compare import Progress, run
from py_backends.harness.plan import Plan
from py_backends.results.grouping import grouped
from py_backends.results.report import Report
from py_backends.results.spec import Spec
from py_backends.workers.probe import BackendTarget

Reports = Mapping[Conditions, Report]

_RUNS = 8
"""Those of the fewest rounds that have an interval, and a check before and after."""
_FLOPS_OF_A_BYTE, _FLOPS_OF_A_TURN = 40, 2e10
"""About what one byte of memory traffic, and the waking of a process with its shortest sample, take as long as."""
_BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""What limits NumPy's BLAS, whose functions have no parameter for it."""


def measure(
    goals: Sequence[Goal], settings: Mapping[str, Any], rounds: int, progress: Progress | None
) -> dict[Conditions, Report]:
    """A report for each of the goals' conditions; those that an interruption left to be done are missing.

    settings: as of `checked_settings`, whose budget is shared by the work there is to do.
    """
    entries = grouped((goal.conditions, entry) for goal in goals for entry in goal.entries())
    work = {conditions: _work(conditions, set(wanted)) for conditions, wanted in entries.items()}
    reports: dict[Conditions, Report] = {}
    for conditions, wanted in entries.items():
        share = settings["budget_seconds"] * work[conditions] / sum(work.values())
        own = {**settings, "threads": conditions.threads or settings["threads"], "budget_seconds": share}
        with _environment(conditions), _drawn(conditions):
            reports[conditions] = run(_plan(conditions, list(dict.fromkeys(wanted)), rounds), own, progress)
        if reports[conditions].interrupted:
            break
    return reports


def _plan(conditions: Conditions, entries: Sequence[Entry], rounds: int) -> Plan:
    timed = [entry for entry in entries if not entry.contender.is_ceiling]
    backends = sorted({entry.contender.backend for entry in timed} & set(registry.backend_names()))

    def specs(found: Sequence[BackendTarget]) -> list[Spec]:
        return [spec for entry in timed if (spec := _spec(conditions, entry, found))]

    return Plan(backends, specs, timed_only=True, runs=_RUNS, shorten=False, rounds=rounds)


def _spec(conditions: Conditions, entry: Entry, found: Sequence[BackendTarget]) -> Spec | None:
    """What an entry is on this machine; None where there is no such target, or none that has the number format."""
    kernel, dtype, backend = conditions.kernel, entry.dtype(conditions), entry.contender.backend
    targets = [target for name, target in found if name == backend and entry.contender.target in (None, target.name)]
    if not targets:
        return None
    able = [each for each in targets if registry.texts_in(dtype, kernel, backend, each)]
    if not able:
        return None
    target = next((each for each in able if each.available and not each.emulated), able[0])
    variant = entry.contender.variant or next(iter(registry.texts_in(dtype, kernel, backend, target)))
    return Spec(kernel, backend, target.name, variant, dtype, sizes(conditions, entry),
                statement=entry.statement(conditions))  # fmt: skip


def sizes(conditions: Conditions, entry: Entry) -> tuple[int, ...]:
    """The sizes of an entry."""
    problem = registry.problem(conditions.kernel)
    return problem.equal_sizes(entry.size) if isinstance(entry.size, int) else problem.whole_sizes(entry.size)


def _work(conditions: Conditions, entries: set[Entry]) -> float:
    """A number that the time of a round is about proportional to."""
    problem, found = registry.problem(conditions.kernel), 0.0
    for entry in entries:
        shape, dtype = sizes(conditions, entry), np.dtype(entry.dtype(conditions))
        flops = problem.flops(shape) * problem.sum_dtype(dtype).itemsize
        found += max(flops, _FLOPS_OF_A_BYTE * problem.bytes(shape, dtype)) + _FLOPS_OF_A_TURN
    return found


def _drawn(conditions: Conditions) -> AbstractContextManager[None]:
    """Within, inputs are drawn as the conditions say."""
    if not conditions.skew:
        return nullcontext()
    problem: Any = registry.problem(conditions.kernel)
    skewed: AbstractContextManager[None] = problem.skewed(lambda _: conditions.skew)
    return skewed


@contextmanager
def _environment(conditions: Conditions) -> Iterator[None]:
    """Variables that workers are started with."""
    before = dict(os.environ)
    if conditions.threads:
        os.environ.update(dict.fromkeys(_BLAS_THREADS, str(conditions.threads)))
    os.environ.update(conditions.environment)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
