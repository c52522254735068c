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
_TIMES_LONGER, _TRIES = 1.2, 10


def launches_of_a_sample(row: RunningRow) -> int:
    """The number of launches beside which what else a request takes is short."""
    count = max(1, row.repetitions)
    while count < _MOST_LAUNCHES and sum(timed(row, count)) < LONG_ENOUGH:
        count *= 4
    return count


def disbelief(row: RunningRow, count: int) -> str | None:
    """What is wrong with the times of a source; None where this process's clock agrees.

    The seconds of a sample that the worker does not tell are the fewest of some tries, since a pause of this process
    only adds to them. Where they are few, its clock is right, whatever else they are. Else samples of half as many
    launches are looked at too, as what else a request takes cancels. A pause in these would hide a wrong clock, so all
    tries are made before the source is believed by them.
    """
    more: list[tuple[float, float]] = []
    few: list[tuple[float, float]] = []
    while len(more) < _TRIES:
        more.append(timed(row, 2 * count))
        told = median(seconds for _, seconds in more) / (2 * count + 1)
        believable = (_TIMES_LONGER - 1) * told + _OF_A_LAUNCH
        if min(untold for untold, _ in more) <= 2 * count * believable:
            return None
        few.append(timed(row, count))
    untold = (min(untold for untold, _ in more) - min(untold for untold, _ in few)) / count
    if untold <= believable:
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
