"""Times rows in rounds: each round samples every row once, in a fresh random order.

Speed-ups are ratios of samples of one round, so that the drift of a shared machine cancels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from time import monotonic
from typing import Any, Protocol, TypeVar

from py_backends.harness.watch import Watch
from py_backends.results.grouping import grouped
from py_backends.results.spec import Workload
from py_backends.workers.process import WorkerFailed

S = TypeVar("S")
R = TypeVar("R", bound="Sampled[Any]")


class Sampled(Protocol[S]):
    """Anything that rounds sample. `samples`: by the number of their round. `failed`: its error, if any."""

    samples: dict[int, S]
    failed: WorkerFailed | None

    @property
    def workload(self) -> Workload | None:
        """Rows with the same workload are sampled right after one another."""

    def sample(self) -> S:
        """Take one timed sample. Raises WorkerFailed if that fails."""


def run_rounds(
    next_rows: Callable[[], Sequence[R]],
    deadline: float,
    order: Random,
    progress: Callable[[int, R], None],
    *,
    most: int,
    least: int = 1,
    watch: Watch | None = None,
) -> int:
    """Sample rows round by round, until there are no next rows, until `deadline`, or until there are `most` rounds.

    Rows of one workload are sampled right after one another. Workloads, and the rows of each, are in random order. A
    round that would end after the deadline is not begun, but there are always `least` rounds. A row that fails is left
    out of later rounds. Returns the number of rounds.

    next_rows: returns the rows of the next round; no rows end the rounds.
    deadline: by the monotonic clock.
    watch: is told when a round begins and ends.
    """
    longest: dict[int, float] = {}  # seconds, by `id` of the row, since rounds may have different rows
    for number in range(most):
        active = [row for row in next_rows() if row.failed is None]
        needed = sum(longest.get(id(row), 0.0) for row in active)
        if not active or (number >= least and monotonic() + needed > deadline):
            return number
        active = _shuffled(active, order)
        if watch:
            watch.begin()
        for row in active:
            begin = monotonic()
            progress(number, row)
            try:
                row.samples[number] = row.sample()
            except WorkerFailed as failed:
                row.failed = failed
            longest[id(row)] = max(longest.get(id(row), 0.0), monotonic() - begin)
        if watch:
            watch.end(number)
    return most


def _shuffled(rows: Sequence[R], order: Random) -> list[R]:
    """The rows in random order, but those of one workload together."""
    groups = list(grouped((row.workload, row) for row in rows).values())
    order.shuffle(groups)
    for group in groups:
        order.shuffle(group)
    return [row for group in groups for row in group]
