"""Whether a source reuses what an earlier launch left: its results, or the output that it finds.

Any source finds its last result where it is launched again, and could leave it there. Or it keeps results, and looks
whether all its inputs are the same. A thread of it may prepare them after the launch.
"""

from __future__ import annotations

from statistics import median
from threading import Timer
from time import perf_counter

import numpy as np

from py_backends.commands.judge.clock import LONG_ENOUGH, timed
from py_backends.contract import KernelText
from py_backends.harness.case import Case
from py_backends.harness.running_row import RunningRow
from py_backends.results.check import check_outputs
from py_backends.results.nearly_right import leave_nearly_right
from py_backends.results.statistics import anytime_p_value
from py_backends.workers.runner import Runner

_TIMES_FASTER, _CHANGES, _AT_ONCE = 1.05, 100, 6
_FALSE, _LOOKS_FOR = 1e-4, 100.0
"""On inputs that it has had, a source is so many times faster more often than by chance, of at most so many changes.

If inputs that it has had made no difference, the other ones would be faster as often, whatever the machine does beside.
So at most this part of judgements would say it. Where so many changes say otherwise, and no more say it, no other
follows. Nor does one after so many seconds.
"""
_MEANWHILE, _FOLLOWED = 2, 0.25
"""Tries, and the part of a request that follows after the result was left. A launch may take half of a request."""
_HELD_MOST = "and its output held most of the result before"


def leaves_what_it_finds(row: RunningRow, text: KernelText) -> str | None:
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


def leaves_what_comes_meanwhile(row: RunningRow, count: int) -> str | None:
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

        leaving = Timer(LONG_ENOUGH / 2, leave)
        begin = perf_counter()
        leaving.start()
        timed(row, count)
        end = perf_counter()
        leaving.cancel()
        leaving.join()
        wrong = row.case.check_output().reason
        if not left or end - left[0] < _FOLLOWED * (end - begin) or wrong is None:
            return None
    return f"{wrong}, {_HELD_MOST}"


def _leave_nearly_right(case: Case) -> None:
    leave_nearly_right(case.outputs, case.references, np.random.default_rng())  # by lot: nobody knows the places


def keeps_results(runner: Runner, text: KernelText, case: Case) -> str | None:
    """What tells that a source keeps results: it is faster on inputs that it has had. It changes the inputs.

    Each launch is the only one of a like request, after one element of each input was written. The requests differ in
    nothing but in whether that is another value, by which no source that computes becomes faster. A launch that does
    not count comes first, in which a thread of the source may end its work, since a worker is stopped between requests.
    """
    generator = np.random.default_rng()  # by lot: nobody knows the places, or which of two launches comes first

    def launched(*, other: bool) -> float:
        runner.sample(text, case, 0, 0)
        for array in (each for at, each in enumerate(case.inputs) if each.size and text.problem.own_dtype(at) is None):
            place, source = generator.integers(array.size, size=2)
            array[place] = array[source if other else place]  # another value that such inputs have
        return runner.sample(text, case, 0, 0).on_the_host

    on_new: list[float] = []
    on_had: list[float] = []
    faster: list[bool] = []
    end = perf_counter() + _LOOKS_FOR
    while len(faster) < _CHANGES and not _AT_ONCE <= faster.count(False) >= faster.count(True) and perf_counter() < end:
        for other in generator.permutation([True, False]):
            (on_new if other else on_had).append(launched(other=bool(other)))
        faster.append(on_new[-1] > _TIMES_FASTER * on_had[-1])
        if anytime_p_value(np.array(faster)) <= _FALSE:
            new, had = median(on_new), median(on_had)
            return f"it keeps results: a launch takes {had:.3g} s on inputs that it has had, and {new:.3g} s on others"
    return None


def misses_changes(case: Case) -> str | None:
    """What is wrong with the last launch, before which some elements of the inputs became others."""
    wrong = check_outputs(case.outputs, case.answer(), case.problem.rule).reason
    return f"{wrong}, where some elements of the inputs had become others" if wrong else None
