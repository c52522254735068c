"""Times rows in rounds: each round samples every row once, in a fresh random order.

Speed-ups are ratios of samples of one round, so that the drift of a shared machine cancels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from statistics import median
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from py_backends.harness.case import Case
from py_backends.harness.plan import PlannedRow
from py_backends.kernel_text import KernelText
from py_backends.results.check import Verdict
from py_backends.results.grouping import grouped
from py_backends.results.spec import Workload
from py_backends.workers.process import WorkerFailed
from py_backends.workers.runner import Runner, Sample

if TYPE_CHECKING:
    from py_backends.harness.watch import Watch

SHORTEST_SAMPLE = 0.010
"""Seconds. Shorter kernels are repeated within a sample, to stay well above the clock's resolution."""
_MOST_REPETITIONS, _FEW_REPETITIONS = 10_000, 20
_MOST_CALLS = 9
"""Whole calls of a sample. After a pause, the threads of some runtimes share one core for a while. A single call would
meet that in up to a third of the rounds."""
_SHORTEST_DRAIN = 0.005
"""Seconds by which two equal downloads may differ on a busy machine."""
SAMPLES_TO_CONDEMN = 7
"""Further samples of a row that seems to launch work without waiting for it. A short budget leaves one round, and there
a single disturbed download would condemn a row."""
_BRIEF, LONG = 0.005, 0.050
"""Seconds of a kernel. Below the first, three uncounted launches begin a sample; from the second on, none; else one.

While a process was stopped, other processes filled the caches. This does not affect a long kernel.
"""


def warm_up(seconds: float) -> int:
    """The number of uncounted launches before a sample, for a kernel that takes so many seconds."""
    return 3 if seconds < _BRIEF else int(seconds < LONG)


def calls_of_a_sample(seconds: float) -> int:
    """The number of whole calls of a sample, for one that takes so many seconds: odd, so that one is the median."""
    return min(_MOST_CALLS, int(SHORTEST_SAMPLE / max(seconds, 1e-9)) | 1)


S = TypeVar("S")
R = TypeVar("R", bound="Sampled[Any]")


@dataclass(eq=False)
class TimedRow:
    """A row that is checked and timed. `samples`: by the number of their round."""

    planned: PlannedRow
    runner: Runner
    case: Case
    repetitions: int = 0
    warm_up: int = 1
    calls: int = 1
    samples: dict[int, Sample] = field(default_factory=dict)
    failed: WorkerFailed | None = None
    checked_again: bool = False

    def check(self) -> None:
        """Run once on an output of NaN with guard zones. The row becomes `ok`, `emulated` or `mismatch`."""
        self.case.poison()
        if self.planned.spec.statement is None:
            self._judge(self.runner.run(self._text, self.case))
        else:
            self._sample(poisoned=True)
            self._judge()

    def check_timed(self) -> None:
        """Take one more sample as it was timed, on an output of NaN, and judge its result and all times."""
        self.case.poison()
        self._sample(poisoned=True)
        self._judge()
        self.checked_again = True
        if self.planned.row.status == "ok":
            self._judge_times(list(self.samples.values()))

    def _judge(self, wrong: str | None = None) -> None:
        """Judge the output. `wrong`: another fault of the run, if any."""
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
        assert self.planned.text is not None  # rows without a source are never timed
        return self.planned.text

    @property
    def title(self) -> str:
        """What runs, in a few words."""
        return self.planned.title

    @property
    def workload(self) -> Workload:
        """The workload: rows with the same one are compared."""
        return self.planned.spec.on_any_threads.workload

    def sample(self) -> Sample:
        """Take one timed sample, with the warm-up and repetitions that `settle` chose."""
        return self._sample()

    def _sample(self, *, poisoned: bool = False) -> Sample:
        how, statement = (self.warm_up, self.repetitions), self.planned.spec.statement
        return self.runner.sample(self._text, self.case, *how, calls=self.calls, poisoned=poisoned, statement=statement)

    def settle(self) -> bool:
        """Warm up, and choose how often a sample repeats the kernel and the whole call.

        Returns False if its times are impossible.
        """
        self.repetitions, self.calls = 0, 1
        first = self.sample()
        if self.runner.cold:  # a cold sample is always one launch
            return True
        samples = [first]
        if first.on_the_host < LONG:  # the first one may have loaded pages and code, or been disturbed
            samples += [self.sample(), self.sample()]
        seconds = min(sample.on_the_host for sample in samples)
        self.warm_up = warm_up(seconds)
        self.calls = calls_of_a_sample(min(sample.end_to_end for sample in samples))
        if seconds < SHORTEST_SAMPLE:
            wanted = min(_MOST_REPETITIONS, math.ceil(SHORTEST_SAMPLE / max(seconds, 1e-9)))
            # A few first: with a wait that does not wait, many launches would queue hours of work.
            self.repetitions = min(wanted, _FEW_REPETITIONS)
            if not self._judge_times([self.sample() for _ in range(3)]):
                return False
            self.repetitions = wanted
        return True

    def _judge_times(self, samples: list[Sample]) -> bool:
        """Whether the work of a sample ended within its launches. If not, the row becomes `impossible`.

        If it seems not to have, further samples decide.
        """
        if self._left_over(samples) is None:
            return True
        left_over = self._left_over([self.sample() for _ in range(SAMPLES_TO_CONDEMN)])
        if left_over is None:
            return True
        self.planned.row.status = "impossible"
        self.planned.row.reason = f"its wait does not wait: {left_over}"
        return False

    def _left_over(self, samples: Sequence[Sample]) -> str | None:
        """How much of the work ended in the download, if more than launches or a busy machine explain; else None.

        Work that is left over shows in every sample, and what else the machine does only in some.
        """
        drained = sorted(sample.drain for sample in samples)[len(samples) // 4] if samples else 0.0
        launched = self.repetitions * median(sample.on_the_host for sample in samples) if samples else 0.0
        if drained <= max(launched, _SHORTEST_DRAIN):
            return None
        return (
            f"{self.repetitions} launches seemed to take {launched:.3g} s, "
            f"and the download after them {drained:.3g} s longer than after one"
        )


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
    choose: Callable[[], Sequence[R]],
    deadline: float,
    order: Random,
    progress: Callable[[int, R], None],
    *,
    most: int,
    least: int = 1,
    watcher: Watch | None = None,
) -> int:
    """Sample rows round by round, until one of these: `deadline`, `most` rounds, or enough for `watcher`.

    Rows of one workload are sampled right after one another. Workloads, and the rows of each, are in random order. A
    round that would end after the deadline is not begun, but there are always `least` rounds. A row that fails is left
    out of later rounds. Returns the number of rounds.

    choose: returns the rows of the next round; no rows end the rounds.
    deadline: by the monotonic clock.
    """
    longest: dict[int, float] = {}  # seconds, by `id` of the row, since rounds may have different rows
    for number in range(most):
        active = [row for row in choose() if row.failed is None]
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


def _shuffled(rows: Sequence[R], order: Random) -> list[R]:
    """The rows in random order, but those of one workload together."""
    groups = list(grouped((row.workload, row) for row in rows).values())
    order.shuffle(groups)
    for group in groups:
        order.shuffle(group)
    return [row for group in groups for row in group]
