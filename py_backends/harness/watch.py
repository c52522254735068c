"""Watches the rounds while they run: which of them other processes disturbed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Protocol

from py_backends.harness.interference import Interference
from py_backends.results.report import Rounds
from py_backends.results.verdicts import LEAST_ROUNDS


class HasSamples(Protocol):
    """What rounds sample. `samples`: by the number of their round."""

    samples: dict[int, Any]


class Watch:
    """Drops the samples of disturbed rounds. If too few others are left for an interval, `finish` restores them.

    sampled: everything that rounds sample.
    """

    def __init__(self, sampled: Iterable[HasSamples]) -> None:
        self._dropped: list[tuple[HasSamples, dict[int, Any]]] = [(each, {}) for each in sampled]
        self._interference = Interference()
        self._signals: Counter[str] = Counter()
        self._taken = self._disturbed = 0

    def begin(self) -> None:
        """A round begins."""
        self._interference.begin()

    def end(self, number: int) -> None:
        """A round has ended."""
        self._taken = number + 1
        if seen := self._interference.end():
            self._signals.update(seen)
            self._disturbed += 1
            for each, dropped in self._dropped:
                if number in each.samples:
                    dropped[number] = each.samples.pop(number)

    def finish(self) -> Rounds:
        """The numbers of rounds."""
        kept = self._taken - self._disturbed
        if kept < LEAST_ROUNDS:
            kept = self._taken
            for each, dropped in self._dropped:
                each.samples.update(dropped)
        return Rounds(self._taken, kept, dict(self._signals))
