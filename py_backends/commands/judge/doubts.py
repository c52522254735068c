"""What tells against a source that holds in the suite: its times, and its results where the suite has not looked.

In a long sum, a lower precision is within the bound of random inputs. And a comparison may have had no time for the
shape that was asked for, at which one launch may be wrong.
"""

from __future__ import annotations

from contextlib import closing
from functools import partial
from time import perf_counter
from typing import NamedTuple

import numpy as np

from py_backends.commands.judge import clock, digits, reused
from py_backends.conformance.running import verdict
from py_backends.conformance.trials import answer, blaming
from py_backends.contract import KernelText, Target
from py_backends.harness.case import Case
from py_backends.harness.running_row import RunningRow
from py_backends.results.spec import Sizes, Spec
from py_backends.workers.process import WorkerFailed
from py_backends.workers.runner import Runner

_MOST_LAUNCHES_ALIKE, _LAUNCHES_FOR = 16, 1.0
"""Launches on the same inputs, and seconds after which no other one begins."""
_LATE = "and all were right in a like launch before: it may leave work for after the call"
_LAUNCHES_AT_LEAST = 3
"""Of the longest request, with the launch that begins each."""


class Doubt(NamedTuple):
    """The status of a source that holds in the suite, and not here, with the reason and the shape."""

    status: str
    reason: str
    sizes: Sizes


def doubt(
    text: KernelText,
    target: Target,
    dtype: str,
    timed: Sizes | None,
    asked: Sizes | None,
    threads: int,
    seed: int,
    patience: float,
    compared_for: float,
) -> Doubt | None:
    """What is wrong with the times of a source, or with its result where the suite has not looked; else None.

    timed: the shape of its times; None where it has none.
    asked: the shape at which its result is checked: the one that was asked for, if that can be run. None for no shape.
    patience: seconds that a launch may take.
    compared_for: seconds that its comparison took. The process of its times was not older.
    """
    runner = Runner(text.backend, target, threads, patience=_LAUNCHES_AT_LEAST * patience)
    with closing(runner):
        of_its_times = partial(_of_its_times, compared_for=compared_for)
        for sizes, wrong in (timed, of_its_times), (asked, _of_its_results):
            if sizes is None:
                continue
            with closing(Case(text.problem, sizes, np.dtype(dtype), seed)) as case:
                if found := wrong(runner, text, case, seed):
                    return Doubt(*found, sizes)
                runner.unload(case)
    return None


def _of_its_times(runner: Runner, text: KernelText, case: Case, _: int, compared_for: float) -> tuple[str, str] | None:
    """What tells that its times are not those of its work: a status with the reason.

    Samples are those of a comparison, since a source in Python sees by its callers how often it will be launched. It
    may also see how old its process is, and keep results only later. So it is launched for as long as it was compared.
    """
    end = perf_counter() + compared_for
    spec = Spec(text.problem.name, text.backend, runner.target.name, text.variant, case.dtype.name, case.sizes)
    row = RunningRow(spec, runner.target, text, sizes=case.sizes, status="ok").on(runner, case)
    try:
        if not row.settle():
            return "impossible", str(row.reason)
        count = clock.launches_of_a_sample(row)
        if lie := clock.disbelief(row, count):
            return "impossible", lie
        if wrong := reused.leaves_what_it_finds(row, text) or reused.leaves_what_comes_meanwhile(row, count):
            return "mismatch", wrong
        while perf_counter() < end:
            clock.timed(row, count)
        if kept := reused.keeps_results(runner, text, case):  # which changes the inputs
            return "impossible", kept
        wrong = reused.misses_changes(case)
    except WorkerFailed as failed:
        return "impossible", f"its times cannot be checked: {failed.reason}"
    return ("mismatch", wrong) if wrong else None


def _of_its_results(runner: Runner, text: KernelText, case: Case, seed: int) -> tuple[str, str] | None:
    """What is wrong with results on the inputs of a comparison, or on those that need all digits."""
    try:
        with blaming(text.problem, case.sizes):
            wrong = _of_some_launches(runner, text, case)
        wrong = wrong or _of_few_digits(runner, text, case, seed)
    except WorkerFailed as failed:
        return failed.status, failed.reason
    return ("mismatch", wrong) if wrong else None


def _of_some_launches(runner: Runner, text: KernelText, case: Case) -> str | None:
    """What is wrong with one of some launches, of which a long one is the only one.

    A worker is stopped as soon as it answers, and work that it left for after the call is missing. A thread that had
    half of the work may be there first, in every second launch.
    """
    end = perf_counter() + _LAUNCHES_FOR
    for number in range(_MOST_LAUNCHES_ALIKE):
        case.poison()
        if wrong := runner.run(text, case) or case.check_output().reason:
            return f"{wrong}, {_LATE}" if number else wrong
        if perf_counter() > end:
            break
    return None


def _of_few_digits(runner: Runner, text: KernelText, case: Case, seed: int) -> str | None:
    """What is wrong with results of numbers that need all digits. They take the place of the case's inputs."""
    for trial in digits.trials(text.problem, case.sizes, seed):
        answered = answer(text.problem, trial, case.dtype)
        for place, array in zip(case.inputs, answered.inputs, strict=True):
            place[...] = array.reshape(-1)
        case.poison()
        changed = runner.run(text, case)
        if wrong := case.trespass() or changed or verdict(case.outputs, answered, text.problem.rule):
            return f"{wrong}, where its inputs need all digits of {case.dtype}"
    return None
