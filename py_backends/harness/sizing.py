"""Finds the largest shape that each row can afford: extrapolates times from small shapes, and shares the budget."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from py_backends.contract import Problem
from py_backends.harness.pool import COPIES
from py_backends.limits import LARGEST_SIZE
from py_backends.results.grouping import grouped
from py_backends.results.spec import Sizes
from py_backends.system import machine
from py_backends.workers import process

_SMALLEST_WORK = 4096
"""Work of the shape at which estimates begin. Even the slowest backend takes well under a second for it."""
LONGER_BUDGET = "give a longer --budget"
"""The fix for rows for which there was no time."""
_STEP = 8
"""Factor of the work from one estimate to the next."""
_FAR_LONGER, _MUCH_SHORTER = 2, 4
_OF_A_REQUEST = 0.4
"""The part of a request that one run may take: some requests hold two, and an estimate may be a little low."""
_MOST_RUNS, _SHORT = 5, 0.1
"""The most runs of one shape for an estimate, and seconds after which two are enough. A delay by other processes may
make up all of a shorter run."""
_PART_OF_FREE_MEMORY = 2
"""The largest size may use the free memory divided by this: the arrays of all sizes exist at once."""
_BYTES_A_SECOND = 5e6
"""Bytes of the arrays at the largest size, for each second of the budget. Making and checking them takes a fifth of the
budget."""


def most_bytes(budget: float) -> int:
    """The most bytes of all arrays at the largest size, by memory, and by the time to make and check them."""
    free = machine.free_memory() // _PART_OF_FREE_MEMORY // COPIES
    return int(min(free, _BYTES_A_SECOND * budget))  # the product may be infinite


def size_of(problem: Problem, dtype: str, count: int) -> int:
    """The largest size at which all arrays together take at most `count` bytes."""
    element = np.dtype(dtype)
    return (
        bisect_right(range(LARGEST_SIZE), count, key=lambda size: problem.bytes(problem.equal_sizes(size), element)) - 1
    )


def growing(problem: Problem, sizes: Sizes) -> Iterator[Sizes]:
    """Shapes from a small one up to `sizes`. Each has about 8 times the work of the one before.

    Arrays of lengths that never change have one shape.
    """
    steps = max(0, math.ceil(math.log(problem.work(sizes) / _SMALLEST_WORK, _STEP))) if problem.dimensions else 0
    for step in range(steps, 0, -1):
        shrink = _STEP ** (-step / len(problem.dimensions))
        yield problem.resized(sizes, partial(_shrunk, shrink))
    yield sizes


def grown(problem: Problem, sizes: Sizes, times: float) -> Sizes:
    """The shape with about the same proportions whose work is nearest to `times` that of `sizes`.

    No size is larger than the kernel takes.
    """
    count = len(problem.dimensions)
    growth = times ** (1 / count)
    most = [problem.largest_sizes.get(name, math.inf) for name in problem.dimensions]
    choices = [
        sorted({int(min(whole(size * growth), limit)) for whole in (math.floor, math.ceil)})
        for size, limit in zip(sizes, most, strict=False)
    ]
    wanted = times * problem.work(sizes)
    shapes = [(*shape, *sizes[count:]) for shape in itertools.product(*choices)]
    return min(shapes, key=lambda shape: abs(problem.work(shape) - wanted))


def _shrunk(by: float, size: int) -> int:
    return min(size, max(1, round(size * by)))


def estimate(problem: Problem, sizes: Sizes, seconds_at: Callable[[Sizes], float], limit: float) -> float:
    """Estimate the seconds of one run at `sizes`.

    Run larger and larger shapes through `seconds_at`, until the next one might take longer than `limit`; then
    extrapolate. Shapes are left out whose successors take much less than that at the pace of the last one. The first
    shape runs twice, since some backends compile at their first launch. A shape that takes far longer than expected
    runs twice too. If other processes stop a thread pool for a moment, it takes hundreds of times as long, and its row
    must not be shortened for that. So a short run is extrapolated only if it took about as long as the one before let
    expect. Otherwise the next shape may show that it was only delayed, and costs about a second at most.
    """
    shapes = list(growing(problem, sizes))
    if problem.dimensions:  # else the first launch was at the one shape that there is
        seconds_at(shapes[0])
    at, pace = 0, math.inf  # pace: seconds for a unit of work; not known yet
    while True:
        expected = pace * problem.work(shapes[at])
        seconds = seconds_at(shapes[at])
        if seconds > _FAR_LONGER * expected:
            seconds = min(seconds, seconds_at(shapes[at]))
        as_expected = expected / _FAR_LONGER <= seconds <= expected * _FAR_LONGER
        pace = seconds / problem.work(shapes[at])
        longer = [pace * problem.work(shape) for shape in shapes[at + 1 :]]
        if not longer or (longer[0] > limit and (as_expected or seconds >= _SHORT)):
            return pace * problem.work(sizes)
        at += max(1, sum(each <= limit / _MUCH_SHORTER for each in longer))


def least(seconds: Callable[[], float]) -> float:
    """The smallest time of a few runs: of 2, and of more if they are short. The first run pays for page faults.

    Threads that wait for one another take a hundred times as long while another process uses one of their CPUs. This
    lasts some hundredths of a second, and a row must not be skipped for it.
    """
    runs = [seconds(), seconds()]
    while len(runs) < _MOST_RUNS and sum(runs) < _SHORT:
        runs.append(seconds())
    return min(runs)


def longest_run() -> float:
    """The most seconds that one run may take. A worker that is busy for longer would count as hung."""
    return _OF_A_REQUEST * process.ANSWER_WITHIN


def possible(seconds: float) -> float:
    """The seconds of one run; infinite if it may not take so many."""
    return seconds if seconds <= longest_run() else math.inf


def too_long(sizes: str, seconds: float, budget: float) -> tuple[str, str]:
    """Why a row is skipped that would take so many seconds for one run, and what would change that."""
    reason = f"one run {f'of {sizes} ' if sizes else ''}would take {in_words(seconds)}"
    if longest_run() < seconds <= budget:
        return f"{reason}, and none may take more than {in_words(longest_run())}", "give a smaller size"
    why = "too long for the budget" if seconds > budget else "and no time was left for it"
    return f"{reason}, {why}", LONGER_BUDGET


def fair_cap(costs: Sequence[float], budget: float) -> float:
    """The largest cap for which sum(min(cost, cap)) stays within the budget.

    Cheap rows leave the rest of their share to expensive ones.
    """
    left, cap = budget, math.inf
    for index, cost in enumerate(sorted(costs)):
        share = left / (len(costs) - index)
        if cost > share:
            return share
        left -= cost
    return cap


def fair_caps(kernels: Sequence[str], costs: Sequence[float], budget: float) -> list[float]:
    """The cap of each row's cost: kernels share the budget evenly, and so do the rows of a kernel its share.

    kernels: of each row. A kernel of many or slow rows leaves the others what is theirs.
    """
    of_each = grouped(zip(kernels, costs, strict=True))
    share = fair_cap([sum(own) for own in of_each.values()], budget)
    caps = {kernel: fair_cap(own, share) if sum(own) > share else math.inf for kernel, own in of_each.items()}
    return [caps[kernel] for kernel in kernels]


def cheapest(costs: Sequence[float], baselines: Mapping[int, int], budget: float) -> list[int]:
    """The ascending indices of the rows to keep: the cheapest ones that fit into the budget together.

    The first compared row adds its baseline. If the two do not fit, neither is kept, nor any row that costs more. The
    cheapest row is kept whatever the budget, unless its cost is infinite.

    baselines: by the index of a row, that of its baseline if it has one.
    """
    kept: list[int] = []
    left = budget
    for at in sorted(range(len(costs)), key=costs.__getitem__):
        new = [each for each in dict.fromkeys((baselines.get(at, at), at)) if each not in kept]
        if at in baselines.values() and at not in kept:  # the first row that is compared with it adds it
            continue
        needed = sum(costs[each] for each in new)
        if needed == math.inf or (kept and needed > left):
            break
        kept += new
        left -= needed
    return sorted(kept)


def affordable(problem: Problem, sizes: Sizes, seconds: float, cap: float) -> Sizes | None:
    """The shape, `sizes` or smaller, that takes at most about `cap` seconds. `seconds`: the time of `sizes`.

    All sizes of arrays are halved until the shape fits. The steps are coarse, so that two runs on one machine choose
    the same shape. Halves are odd, so that a smaller shape also tests the edges of vectors, tiles and work groups. The
    result is None if the shape would be too small to show anything.
    """
    shape, least = sizes, min(_SMALLEST_WORK, problem.work(sizes)) / _STEP
    while seconds * problem.work(shape) / problem.work(sizes) > cap:
        half = problem.resized(shape, lambda size: size // 2 | 1 if size > 1 else size)
        if half == shape or problem.work(half) < least:  # sizes of 0 and 1 cannot be halved
            return None
        shape = half
    return shape


def in_words(seconds: float) -> str:
    """A duration in words, such as "about 3 hours"."""
    for unit, name in ((86_400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * unit:
            return f"about {seconds / unit:.0f} {name}"
    return f"about {seconds:.0f} s" if seconds >= 10 else f"about {seconds:.2g} s"
