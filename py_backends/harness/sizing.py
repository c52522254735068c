"""How large a shape each row can afford: times are extrapolated from small shapes, budgets shared fairly."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from py_backends.contract import Problem
from py_backends.harness.spec import Sizes

_SMALLEST_WORK = 4096
"""Work of the shape at which estimates begin: Python's slowest programming models take well under a second."""
LONGER_BUDGET = "give a longer --budget"
"""The fix of what there was no time for."""
_STEP = 8
"""Growth of the work from one estimate to the next."""
_FAR_LONGER = 2
_MOST_RUNS, _SHORT = 5, 0.1
"""Runs of one shape for an estimate, and seconds after which there are no more than two."""


def growing(problem: Problem, sizes: Sizes) -> Iterator[Sizes]:
    """Shapes from a small one up to `sizes`, each with about 8 times the work of the one before."""
    steps = max(0, math.ceil(math.log(problem.work(sizes) / _SMALLEST_WORK, _STEP)))
    for step in range(steps, 0, -1):
        shrink = _STEP ** (-step / len(sizes))
        yield tuple(min(size, max(1, round(size * shrink))) for size in sizes)
    yield sizes


def estimate(problem: Problem, sizes: Sizes, seconds_at: Callable[[Sizes], float], limit: float) -> float:
    """Seconds that one run at `sizes` takes, or would take if that is beyond `limit`.

    Runs ever larger shapes through `seconds_at` until the next might take longer than `limit`. The
    first is run twice, since what compiles at its first launch only does so then. So is one that takes
    far longer than was to be expected: a pool whose threads others keep from running takes hundreds of
    times as long for a moment, and its row must not be shortened for that.
    """
    seconds_at(next(growing(problem, sizes)))
    pace = math.inf  # seconds for a unit of work; not known yet
    for shape in growing(problem, sizes):
        expected = pace * problem.work(shape)
        if limit < expected < math.inf:
            break
        seconds = seconds_at(shape)
        if seconds > _FAR_LONGER * expected:
            seconds = min(seconds, seconds_at(shape))
        pace = seconds / problem.work(shape)
    return pace * problem.work(sizes)


def least(seconds: Callable[[], float]) -> float:
    """The least of a few runs: of 2, since the first of a shape faults its pages in, and of more if they are short.

    Threads that wait for one another take a hundred times as long while a neighbour has one of the CPUs, for some
    hundredths of a second: a row must not be skipped for that.
    """
    runs = [seconds(), seconds()]
    while len(runs) < _MOST_RUNS and sum(runs) < _SHORT:
        runs.append(seconds())
    return min(runs)


def fair_cap(costs: Sequence[float], budget: float) -> float:
    """The largest cap for which sum(min(cost, cap)) stays within the budget.

    Cheap rows leave what they do not need to the dear ones.
    """
    left, cap = budget, math.inf
    for index, cost in enumerate(sorted(costs)):
        share = left / (len(costs) - index)
        if cost > share:
            return share
        left -= cost
    return cap


def cheapest(costs: Sequence[float], baselines: Mapping[int, int], budget: float) -> list[int]:
    """The indices of those to keep, ascending: the cheapest ones that fit into the budget together.

    What is compared comes together with its baseline, which stays as long as any of it does: where the two do not fit,
    neither is kept, nor anything dearer. The cheapest is kept whatever the budget.

    baselines: by the place of a row that of its baseline, where it has one.
    """
    kept: list[int] = []
    left = budget
    for at in sorted(range(len(costs)), key=costs.__getitem__):
        new = [each for each in dict.fromkeys((baselines.get(at, at), at)) if each not in kept]
        if at in baselines.values() and at not in kept:  # it comes with the first that is compared with it
            continue
        needed = sum(costs[each] for each in new)
        if kept and needed > left:
            break
        kept += new
        left -= needed
    return sorted(kept)


def affordable(problem: Problem, sizes: Sizes, seconds: float, cap: float) -> Sizes | None:
    """The shape, `sizes` or smaller, that takes at most about `cap` seconds where `sizes` takes `seconds`.

    Halves all dimensions until it fits: coarse steps, so that two runs on one machine choose alike. Halves are
    odd, so that the edges of vectors, tiles and work groups are seen at a smaller shape too.
    None where that leaves a shape too small to show anything.
    """
    shape, least = sizes, min(_SMALLEST_WORK, problem.work(sizes)) / _STEP
    while seconds * problem.work(shape) / problem.work(sizes) > cap:
        half = tuple(size // 2 | 1 if size > 1 else size for size in shape)
        if half == shape or problem.work(half) < least:  # nothing and one have no half
            return None
        shape = half
    return shape


def in_words(seconds: float) -> str:
    """A duration in words."""
    for unit, name in ((86_400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * unit:
            return f"about {seconds / unit:.0f} {name}"
    return f"about {seconds:.2g} s"
