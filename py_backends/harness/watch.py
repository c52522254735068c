"""Watches the rounds while they run: which of them other processes disturbed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import product
from typing import Any, Protocol

from py_backends.harness.interference import Interference
from py_backends.results.report import Rounds
from py_backends.results.verdicts import LEAST_ROUNDS


class HasSamples(Protocol):
    """What rounds sample. `samples`: by the number of their round."""

    samples: dict[int, Any]


class Watch:
    """Drops the samples of disturbed rounds, once there are enough others for an interval.

    Until then they stay: schedules go by them, and on a busy machine there may be no others.

    sampled: everything that rounds sample.
    """

    def __init__(self, sampled: Iterable[HasSamples]) -> None:
        self._sampled = list(sampled)
        self._interference = Interference()
        self._disturbed: dict[int, list[str]] = {}
        self._dropped: list[tuple[HasSamples, int, Any]] = []
        self._taken = 0

    def begin(self) -> None:
        """A round begins."""
        self._interference.begin()

    def end(self, number: int) -> None:
        """A round has ended."""
        self._taken = number + 1
        if seen := self._interference.end():
            self._disturbed[number] = seen
        if self.undisturbed >= LEAST_ROUNDS:
            for each, disturbed in product(self._sampled, self._disturbed):
                if disturbed in each.samples:
                    self._dropped.append((each, disturbed, each.samples.pop(disturbed)))

    @property
    def undisturbed(self) -> int:
        """How many rounds were not disturbed so far."""
        return self._taken - len(self._disturbed)

    def finish(self) -> Rounds:
        """The numbers of rounds. All are kept where too few were undisturbed for an interval, or for one row for any.

        A row that was decided in disturbed rounds may have no time for others.
        """
        signals = Counter(signal for seen in self._disturbed.values() for signal in seen)
        if any(not each.samples for each, *_ in self._dropped):
            for each, number, sample in self._dropped:
                each.samples[number] = sample
            return Rounds(self._taken, self._taken, dict(signals))
        kept = self.undisturbed if self.undisturbed >= LEAST_ROUNDS else self._taken
        return Rounds(self._taken, kept, dict(signals))
