"""Times rows in rounds: each round samples every row once, in a fresh random order.

Speed-ups are ratios of samples of one round, so that the drift of a shared machine cancels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import monotonic
from typing import Any, Protocol, TypeVar

from py_backends.harness.case import Case
from py_backends.harness.check import Verdict
from py_backends.harness.plan import PlannedRow
from py_backends.harness.runner import Runner, Sample
from py_backends.harness.spec import Workload
from py_backends.harness.workers import WorkerFailed
from py_backends.kernel_text import KernelText

SHORTEST_SAMPLE = 0.010
"""Seconds; shorter kernels are repeated within a sample, to stay well above the clock's grain."""
_MOST_REPETITIONS, _FEW_REPETITIONS = 10_000, 20
_SHORTEST_DRAIN = 0.005
"""Seconds by which one download may take longer than another on a busy machine, for no particular reason."""
_BRIEF, LONG = 0.005, 0.050
"""Seconds of a kernel below which three uncounted launches begin a sample, and above which none does.

A process that was stopped finds the caches full of its neighbours' data; a long kernel does not care.
"""


def warm_up(seconds: float) -> int:
    """How many uncounted launches begin a sample of a kernel that takes so long."""
    return 3 if seconds < _BRIEF else int(seconds < LONG)


S = TypeVar("S")
R = TypeVar("R", bound="Sampled[Any]")


@dataclass(eq=False)
class TimedRow:
    """A row that was found right and is to be timed: `samples` by the number of their round."""

    planned: PlannedRow
    runner: Runner
    case: Case
    repetitions: int = 0
    warm_up: int = 1
    samples: dict[int, Sample] = field(default_factory=dict)
    failed: WorkerFailed | None = None
    checked_again: bool = False

    def check(self) -> None:
        """One run on an output of NaN, guard zones and all; its row becomes ok, emulated or mismatch."""
        self.case.poison()
        if self.planned.spec.statement is None:
            self._judge(self.runner.run(self._text, self.case))
        else:
            self._sample(poisoned=True)
            self._judge()

    def check_timed(self) -> None:
        """One more sample, of the very kind that was timed, on an output of NaN; and were the times possible?"""
        self.case.poison()
        self._sample(poisoned=True)
        self._judge()
        self.checked_again = True
        if self.planned.row.status == "ok":
            self._judge_times(list(self.samples.values()))

    def _judge(self, wrong: str | None = None) -> None:
        """Judge what stands in the output. `wrong`: what the run did beside that, if anything."""
        row, verdict = self.planned.row, self.case.judge()
        if wrong is not None and verdict.check.passed:
            verdict = Verdict.wrong(verdict.check.rule, wrong)
        row.check, row.reason = verdict.check, verdict.reason
        if not verdict.check.passed:
            row.status = "mismatch"
        elif self.planned.target.emulated:
            row.status, row.reason, row.fix = "emulated", self.planned.target.reason, self.planned.target.fix
        else:
            row.status = "ok"

    @property
    def _text(self) -> KernelText:
        assert self.planned.text is not None  # rows without a text never get here
        return self.planned.text

    @property
    def title(self) -> str:
        """What runs, in a few words."""
        return self.planned.title

    @property
    def workload(self) -> Workload:
        """What is computed, by which rows are compared."""
        return self.planned.spec.on_any_threads.workload

    def sample(self) -> Sample:
        """One timed sample as `settle` froze it."""
        return self._sample()

    def _sample(self, *, poisoned: bool = False) -> Sample:
        how = self.warm_up, self.repetitions
        return self.runner.sample(self._text, self.case, *how, poisoned=poisoned, statement=self.planned.spec.statement)

    def settle(self) -> bool:
        """Warm up, and freeze how often a sample repeats the kernel; False where its times are impossible."""
        self.repetitions = 0
        seconds = self.sample().on_the_host
        if self.runner.cold:  # a sample is one launch
            return True
        if seconds < LONG:  # the first one may have brought in pages and code, or met a neighbour
            seconds = min(seconds, self.sample().on_the_host, self.sample().on_the_host)
        self.warm_up = warm_up(seconds)
        if seconds < SHORTEST_SAMPLE:
            wanted = min(_MOST_REPETITIONS, math.ceil(SHORTEST_SAMPLE / max(seconds, 1e-9)))
            # A few first: a wait that does not wait would heap up hours of work.
            self.repetitions = min(wanted, _FEW_REPETITIONS)
            if not self._judge_times([self.sample() for _ in range(3)]):
                return False
            self.repetitions = wanted
        return True

    def _judge_times(self, samples: list[Sample]) -> bool:
        """Whether the work of a sample was done within its launches; else its row becomes impossible."""
        drained = median(sample.drain for sample in samples) if samples else 0.0
        launched = self.repetitions * median(sample.on_the_host for sample in samples) if samples else 0.0
        if drained <= max(launched, _SHORTEST_DRAIN):
            return True
        row = self.planned.row
        row.status = "impossible"
        row.reason = (
            f"its wait does not wait: {self.repetitions} launches seemed to take {launched:.3g} s, "
            f"and the download after them {drained:.3g} s longer than after one"
        )
        return False


class Sampled(Protocol[S]):
    """What rounds sample: `samples` by the number of their round, and how it failed."""

    samples: dict[int, S]
    failed: WorkerFailed | None

    @property
    def workload(self) -> Workload | None:
        """What is sampled right after one another."""

    def sample(self) -> S:
        """One timed sample; WorkerFailed where that fails."""


class Order(Protocol):
    """Brings the rows into the order of the next round; `random.Random` is one."""

    def shuffle(self, rows: list[Any], /) -> None: ...


class Watcher(Protocol):
    """Sees rounds begin and end."""

    def begin(self) -> None:
        """A round begins."""

    def end(self, number: int) -> bool:
        """The round of this number has ended; whether there are enough."""


def run_rounds(
    rows: Sequence[R],
    deadline: float,
    order: Order,
    progress: Callable[[int, R], None],
    *,
    most: int,
    least: int = 1,
    watcher: Watcher | None = None,
    choose: Callable[[], Sequence[R]] | None = None,
) -> int:
    """Sample all rows round by round until `deadline` (of the monotonic clock), `most` rounds, or enough for `watcher`.

    What is compared is sampled right after one another, workloads and the rows of each in random order.
    A round that would not end in time is not begun, but there are always `least`. A row that fails is
    left out of what follows. Returns how many rounds there were.

    choose: tells before each round who is in it, none where there are enough; else all are.
    """
    longest: dict[int, float] = {}  # seconds, by the row's identity: rounds need not have the same rows
    for number in range(most):
        active = [row for row in (choose() if choose else rows) if row.failed is None]
        needed = sum(longest.get(id(row), 0.0) for row in active)
        if not active or (number >= least and monotonic() + needed > deadline):
            return number
        active = _shuffled(active, order)
        if watcher:
            watcher.begin()
        for row in active:
            begin = monotonic()
            progress(number, row)
            try:
                row.samples[number] = row.sample()
            except WorkerFailed as failed:
                row.failed = failed
            longest[id(row)] = max(longest.get(id(row), 0.0), monotonic() - begin)
        if watcher and watcher.end(number):
            return number + 1
    return most


def _shuffled(rows: Sequence[R], order: Order) -> list[R]:
    """In random order, those of one workload together."""
    together: dict[Workload | None, list[R]] = {}
    for row in rows:
        together.setdefault(row.workload, []).append(row)
    groups = list(together.values())
    order.shuffle(groups)
    for group in groups:
        order.shuffle(group)
    return [row for group in groups for row in group]
