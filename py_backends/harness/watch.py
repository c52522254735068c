"""Watches the rounds while they run: which were disturbed, and whether there are enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from py_backends.harness.interference import Interference
from py_backends.harness.pairing import Group
from py_backends.harness.rounds import TimedRow
from py_backends.harness.timed_ceilings import TimedCeiling
from py_backends.results.report import Rounds
from py_backends.results.statistics import duration
from py_backends.results.verdicts import LEAST_ROUNDS, NARROWEST_BAND, RESAMPLES_TO_STOP

_LEAST_ROUNDS_TO_STOP = 30
"""With fewer rounds, the error of the band itself exceeds a quarter."""


class Watch:
    """Drops the samples of disturbed rounds, and ends the rounds when every interval is narrow enough for a verdict.

    ceilings: what rounds sample beside the rows.
    """

    def __init__(self, groups: Sequence[Group], ceilings: Iterable[TimedCeiling]) -> None:
        self._groups = groups
        self._sampled: list[TimedRow | TimedCeiling] = [row for group in groups for row in group.sampled]
        self._sampled += ceilings
        self._interference = Interference()
        self._disturbed: dict[int, list[str]] = {}
        self._taken = 0

    def begin(self) -> None:
        """A round begins."""
        self._interference.begin()

    def end(self, number: int) -> bool:
        """A round has ended. Returns whether there are enough rounds."""
        self._taken = number + 1
        if seen := self._interference.end():
            self._disturbed[number] = seen
        self._drop_disturbed()
        if self._undisturbed < _LEAST_ROUNDS_TO_STOP:
            return False
        return all(_converged(group, row) for group in self._groups for row in group.sampled)

    def finish(self) -> Rounds:
        """The numbers of rounds. If too few were undisturbed for an interval, all of them are kept."""
        signals = Counter(signal for seen in self._disturbed.values() for signal in seen)
        kept = self._undisturbed if self._undisturbed >= LEAST_ROUNDS else self._taken
        return Rounds(self._taken, kept, dict(signals))

    def _drop_disturbed(self) -> None:
        """Remove the samples of disturbed rounds, once there are enough other rounds."""
        if self._undisturbed >= LEAST_ROUNDS:
            for each in self._sampled:
                for number in self._disturbed:
                    each.samples.pop(number, None)

    @property
    def _undisturbed(self) -> int:
        return self._taken - len(self._disturbed)


def _converged(group: Group, row: TimedRow) -> bool:
    """Whether a row needs no more rounds: by its ratio or, if nothing is compared, by its time."""
    band = group.band()
    if row.failed or (row is group.baseline and band is not None):
        return True
    if not row.samples:  # no round has sampled it yet
        return False
    if band is not None:
        compared = group.ratio(row, RESAMPLES_TO_STOP)
        return compared is not None and compared.converged(band)
    time = duration([sample.kernel for sample in row.samples.values()])
    return time.low is not None and time.high is not None and time.high <= time.low * (1 + NARROWEST_BAND)
