"""Times rows in rounds: each round samples every row once, in a fresh random order.

Speed-ups are ratios of samples of one round, so that the drift of a shared machine cancels.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic

from py_backends._contract import KernelText
from py_backends.harness.case import Case
from py_backends.harness.plan import PlannedRow
from py_backends.harness.runner import Runner, Sample
from py_backends.harness.workers import WorkerFailed

MOST_ROUNDS = 30
_SHORTEST_SAMPLE = 0.010
"""Seconds; shorter kernels are repeated within a sample, to stay well above the clock's grain."""
_MOST_REPETITIONS = 10_000
_BRIEF, _LONG = 0.005, 0.050
"""Seconds of a kernel below which three uncounted launches begin a sample, and above which none does.

A process that was stopped finds the caches full of its neighbours' data; a long kernel does not care.
"""


@dataclass
class TimedRow:
    """A row that was found right and is to be timed: `samples` by the number of their round."""

    planned: PlannedRow
    runner: Runner
    case: Case
    repetitions: int = 0
    warm_up: int = 1
    samples: dict[int, Sample] = field(default_factory=dict)
    failed: WorkerFailed | None = None

    def check(self) -> None:
        """One run on an output of NaN, guard zones and all; its row becomes ok, emulated or mismatch."""
        self.case.poison()
        self.runner.run(self._text, self.case)
        self._judge()

    def check_timed(self) -> None:
        """One more sample, of the very kind that was timed, on an output of NaN."""
        self.case.poison()
        self.sample()
        self._judge()

    def _judge(self) -> None:
        row, verdict = self.planned.row, self.case.judge()
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

    def sample(self) -> Sample:
        """One timed sample as `settle` froze it."""
        return self.runner.sample(self._text, self.case, self.warm_up, self.repetitions)

    def settle(self) -> None:
        """Warm up, and freeze how often a sample repeats the kernel."""
        self.repetitions = 0
        seconds = self.sample().kernel
        if seconds < _LONG:  # the first one may have brought in pages and code
            seconds = self.sample().kernel
        self.warm_up = 3 if seconds < _BRIEF else int(seconds < _LONG)
        if seconds < _SHORTEST_SAMPLE:
            self.repetitions = min(_MOST_REPETITIONS, math.ceil(_SHORTEST_SAMPLE / max(seconds, 1e-9)))


def run_rounds(
    rows: Sequence[TimedRow], deadline: float, order: random.Random, progress: Callable[[int, TimedRow], None]
) -> int:
    """Sample all rows round by round until `deadline` (of the monotonic clock) or MOST_ROUNDS.

    A round that would not end in time is not begun, but there is always a first. A row that fails is
    left out of what follows. Returns how many rounds there were.
    """
    active = [row for row in rows if row.failed is None]
    longest = 0.0
    for number in range(MOST_ROUNDS):
        begin = monotonic()
        if not active or (number and begin + longest > deadline):
            return number
        order.shuffle(active)
        for row in active:
            progress(number, row)
            try:
                row.samples[number] = row.sample()
            except WorkerFailed as failed:
                row.failed = failed
        active = [row for row in active if row.failed is None]
        longest = max(longest, monotonic() - begin)
    return MOST_ROUNDS
