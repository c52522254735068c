"""Whether a source's times are true.

One in Python runs beside the code that times it, and could put another clock in its place.
"""

from __future__ import annotations

from statistics import median
from time import perf_counter

from py_backends.harness.running_row import RunningRow

LONG_ENOUGH = 0.3
"""Seconds of launches, beside which what else a request takes is short."""
_MOST_LAUNCHES = 100_000
_OF_A_LAUNCH = 1e-5
"""Seconds that the worker may take between two launches, outside of its clock."""
_TIMES_LONGER, _FEWEST_TRIES, _TRIES = 1.2, 2, 6


def launches_of_a_sample(row: RunningRow) -> int:
    """The number of launches beside which what else a request takes is short."""
    count = max(1, row.repetitions)
    while count < _MOST_LAUNCHES and sum(timed(row, count)) < LONG_ENOUGH:
        count *= 4
    return count


def disbelief(row: RunningRow, count: int) -> str | None:
    """What is wrong with the times of a source; None where this process's clock agrees.

    It looks at samples of so many launches, and of twice as many. What else a request takes cancels. The seconds that
    the worker does not tell are the fewest of some tries, since a pause of this process only adds to them.
    """
    few: list[tuple[float, float]] = []
    more: list[tuple[float, float]] = []
    while len(more) < _TRIES:
        few.append(timed(row, count))
        more.append(timed(row, 2 * count))
        untold = (min(untold for untold, _ in more) - min(untold for untold, _ in few)) / count
        told = median(seconds for _, seconds in more) / (2 * count + 1)
        if len(more) >= _FEWEST_TRIES and untold <= (_TIMES_LONGER - 1) * told + _OF_A_LAUNCH:
            return None
    return f"its clock is wrong: a launch took {told + untold:.3g} s, and its process says {told:.3g} s"


def timed(row: RunningRow, count: int) -> tuple[float, float]:
    """Seconds of a sample of so many launches: those that the worker does not tell of, and those of its last call.

    A pause of the worker counts by both clocks.
    """
    begin = perf_counter()
    assert row.text is not None
    sample = row.runner.sample(row.text, row.case, row.warm_up, count, calls=row.calls)
    seconds, told = perf_counter() - begin, sample.end_to_end + sample.together
    return seconds - told, told
