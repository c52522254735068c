"""Whether a source is right where it is timed, and at the shape that was asked for, and whether its times are true.

A source in Python runs beside the code that times it, and could put another clock in its place. And any source finds
its last result where it is launched again, and could leave it there. Or it keeps results, and looks whether all its
inputs are the same. In a long sum, a lower precision is within the bound of random inputs. And a comparison may have
had no time for the shape that was asked for, at which one launch may be wrong.
"""

from __future__ import annotations

from contextlib import closing
from statistics import median
from threading import Timer
from time import perf_counter
from typing import NamedTuple

import numpy as np

from py_backends.commands.judge import digits
from py_backends.conformance.running import verdict
from py_backends.conformance.trials import answer, blaming
from py_backends.contract import KernelText, Target
from py_backends.harness.case import Case
from py_backends.harness.running_row import RunningRow
from py_backends.results.check import check_outputs
from py_backends.results.nearly_right import leave_nearly_right
from py_backends.results.spec import Sizes, Spec
from py_backends.results.statistics import anytime_p_value
from py_backends.workers.process import WorkerFailed
from py_backends.workers.runner import Runner

_LONG_ENOUGH = 0.3
"""Seconds of launches, beside which what else a request takes is short."""
_MOST_LAUNCHES = 100_000
_OF_A_LAUNCH = 1e-5
"""Seconds that the worker may take between two launches, outside of its clock."""
_TIMES_LONGER, _FEWEST_TRIES, _TRIES = 1.2, 2, 6
_TIMES_FASTER, _CHANGES, _AT_ONCE = 1.05, 100, 6
_FALSE = 1e-4
"""On inputs that it has had, a source is so many times faster more often than by chance, of at most so many changes.

If inputs that it has had made no difference, the other ones would be faster as often, whatever the machine does beside.
So at most this part of judgements would say it. Where so many changes say otherwise, and no more say it, no other
follows.
"""
_MEANWHILE, _FOLLOWED = 2, 0.25
"""Tries, and the part of a request that follows after the result was left. A launch may take half of a request."""
_HELD_MOST = "and its output held most of the result before"
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
) -> Doubt | None:
    """What is wrong with the times of a source, or with its result where the suite has not looked; else None.

    timed: the shape of its times; None where it has none.
    asked: the shape at which its result is checked: the one that was asked for, if that can be run. None for no shape.
    patience: seconds that a launch may take.
    """
    runner = Runner(text.backend, target, threads, patience=_LAUNCHES_AT_LEAST * patience)
    with closing(runner):
        for sizes, wrong in (timed, _of_its_times), (asked, _of_its_results):
            if sizes is None:
                continue
            with closing(Case(text.problem, sizes, np.dtype(dtype), seed)) as case:
                if found := wrong(runner, text, case, seed):
                    return Doubt(*found, sizes)
                runner.unload(case)
    return None


def _of_its_times(runner: Runner, text: KernelText, case: Case, _: int) -> tuple[str, str] | None:
    """What tells that its times are not those of its work: a status with the reason.

    Samples are those of a comparison, since a source in Python sees by its callers how often it will be launched.
    """
    spec = Spec(text.problem.name, text.backend, runner.target.name, text.variant, case.dtype.name, case.sizes)
    row = RunningRow(spec, runner.target, text, sizes=case.sizes, status="ok").on(runner, case)
    try:
        if not row.settle():
            return "impossible", str(row.reason)
        count = _long_enough(row)
        if lie := _disbelief(row, count):
            return "impossible", lie
        if wrong := _left_as_it_was(row, text) or _left_meanwhile(row, count):
            return "mismatch", wrong
        if kept := _keeps_results(runner, text, case):  # which changes the inputs
            return "impossible", kept
        wrong = _of_others(case)
    except WorkerFailed as failed:
        return "impossible", f"its times cannot be checked: {failed.reason}"
    return ("mismatch", wrong) if wrong else None


def _long_enough(row: RunningRow) -> int:
    """The number of launches beside which what else a request takes is short."""
    count = max(1, row.repetitions)
    while count < _MOST_LAUNCHES and sum(_timed(row, count)) < _LONG_ENOUGH:
        count *= 4
    return count


def _of_others(case: Case) -> str | None:
    """What is wrong with the last launch, before which some elements of the inputs became others."""
    wrong = check_outputs(case.outputs, case.answer(), case.problem.rule).reason
    return f"{wrong}, where some elements of the inputs had become others" if wrong else None


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


def _left_as_it_was(row: RunningRow, text: KernelText) -> str | None:
    """What is wrong with a launch whose output held most of the result before, as that of a timed one does.

    Launched as in a check, and as it is timed.
    """
    _leave_nearly_right(row.case)
    wrong = row.runner.run(text, row.case) or row.case.check_output().reason
    if not wrong:
        _leave_nearly_right(row.case)
        row.sample()
        wrong = row.case.check_output().reason
    return f"{wrong}, {_HELD_MOST}" if wrong else None


def _left_meanwhile(row: RunningRow, count: int) -> str | None:
    """What is wrong after a sample during which its output came to hold most of the result, in each of some tries.

    Launches of a sample find the result of the first one. On a device with memory of its own this changes nothing. A
    try counts if enough launches followed: a busy machine may leave too late what has to be overwritten.
    """
    wrong = None
    for _ in range(_MEANWHILE):
        left: list[float] = []

        def leave(to: list[float] = left) -> None:
            _leave_nearly_right(row.case)
            to.append(perf_counter())

        leaving = Timer(_LONG_ENOUGH / 2, leave)
        begin = perf_counter()
        leaving.start()
        _timed(row, count)
        end = perf_counter()
        leaving.cancel()
        leaving.join()
        wrong = row.case.check_output().reason
        if not left or end - left[0] < _FOLLOWED * (end - begin) or wrong is None:
            return None
    return f"{wrong}, {_HELD_MOST}"


def _leave_nearly_right(case: Case) -> None:
    leave_nearly_right(case.outputs, case.references, np.random.default_rng())  # by lot: nobody knows the places


def _keeps_results(runner: Runner, text: KernelText, case: Case) -> str | None:
    """What tells that a source keeps results: it is faster on inputs that it has had. It changes the inputs.

    Each launch is the only one of a like request, after one element of each input was written. The requests differ in
    nothing but in whether that is another value, by which no source that computes becomes faster.
    """
    generator = np.random.default_rng()  # by lot: nobody knows the places, or which of two launches comes first

    def launched(*, other: bool) -> float:
        for array in (each for at, each in enumerate(case.inputs) if each.size and text.problem.own_dtype(at) is None):
            place, source = generator.integers(array.size, size=2)
            array[place] = array[source if other else place]  # another value that such inputs have
        return runner.sample(text, case, 0, 0).on_the_host

    on_new: list[float] = []
    on_had: list[float] = []
    faster: list[bool] = []
    while len(faster) < _CHANGES and not _AT_ONCE <= faster.count(False) >= faster.count(True):
        for other in generator.permutation([True, False]):
            (on_new if other else on_had).append(launched(other=bool(other)))
        faster.append(on_new[-1] > _TIMES_FASTER * on_had[-1])
        if anytime_p_value(np.array(faster)) <= _FALSE:
            new, had = median(on_new), median(on_had)
            return f"it keeps results: a launch takes {had:.3g} s on inputs that it has had, and {new:.3g} s on others"
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


def _disbelief(row: RunningRow, count: int) -> str | None:
    """What is wrong with the times of a source; None where this process's clock agrees.

    It looks at samples of so many launches, and of twice as many. What else a request takes cancels. The seconds that
    the worker does not tell are the fewest of some tries, since a pause of this process only adds to them.
    """
    few: list[tuple[float, float]] = []
    more: list[tuple[float, float]] = []
    while len(more) < _TRIES:
        few.append(_timed(row, count))
        more.append(_timed(row, 2 * count))
        untold = (min(untold for untold, _ in more) - min(untold for untold, _ in few)) / count
        told = median(seconds for _, seconds in more) / (2 * count + 1)
        if len(more) >= _FEWEST_TRIES and untold <= (_TIMES_LONGER - 1) * told + _OF_A_LAUNCH:
            return None
    return f"its clock is wrong: a launch took {told + untold:.3g} s, and its process says {told:.3g} s"


def _timed(row: RunningRow, count: int) -> tuple[float, float]:
    """Seconds of a sample of so many launches: those that the worker does not tell of, and those of its last call.

    A pause of the worker counts by both clocks.
    """
    begin = perf_counter()
    assert row.text is not None
    sample = row.runner.sample(row.text, row.case, row.warm_up, count, calls=row.calls)
    seconds, told = perf_counter() - begin, sample.end_to_end + sample.together
    return seconds - told, told
