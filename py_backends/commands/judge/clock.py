"""Whether a worker's clock can be believed: this process's own clock says how long its launches took.

A source in Python runs beside the code that times it, and could put another clock in its place.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from py_backends.contract import KernelText, Target
from py_backends.harness.case import Case
from py_backends.results.spec import Sizes
from py_backends.workers.process import WorkerFailed
from py_backends.workers.runner import Runner

_LONG_ENOUGH = 0.3
"""Seconds of launches, beside which what else a request takes is short."""
_MOST_LAUNCHES = 100_000
_OF_A_LAUNCH = 2e-5
"""Seconds that the worker may take between two launches, outside of its clock."""
_TIMES_LONGER, _TRIES = 2.0, 3


def disbelief(text: KernelText, target: Target, dtype: str, sizes: Sizes, threads: int, seed: int) -> str | None:
    """What is wrong with the times of a source; None where this process's clock agrees."""
    case = Case(text.problem, sizes, np.dtype(dtype), seed)
    runner = Runner(text.backend, target, threads)
    try:
        _timed(runner, text, case, 1)  # which starts the worker and compiles
        count = 1
        while count < _MOST_LAUNCHES and _timed(runner, text, case, count)[0] < _LONG_ENOUGH:
            count *= 4
        found = [_compared(runner, text, case, count) for _ in range(_TRIES)]
    except WorkerFailed as failed:
        return f"its times cannot be checked: {failed.reason}"
    finally:
        runner.close()
        case.close()
    if all(own > _TIMES_LONGER * said + _OF_A_LAUNCH for own, said in found):
        own, said = found[0]
        return f"its clock is wrong: a launch took {own:.3g} s, and its process says {said:.3g} s"
    return None


def _compared(runner: Runner, text: KernelText, case: Case, count: int) -> tuple[float, float]:
    """Seconds of a launch by this process's clock, and by the worker's.

    Both are means, since a pause of the worker counts by both. What else a request takes cancels.
    """
    few, more = (_timed(runner, text, case, times * count) for times in (1, 2))
    return (more[0] - few[0]) / count, (more[1] - few[1]) / count


def _timed(runner: Runner, text: KernelText, case: Case, count: int) -> tuple[float, float]:
    """Seconds of a request for so many launches, and those of all launches by the worker."""
    begin = perf_counter()
    sample = runner.sample(text, case, 0, count)
    return perf_counter() - begin, sample.together
