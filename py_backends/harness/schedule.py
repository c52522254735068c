"""Schedules: which rows the next round samples. Commands may bring others than the one here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from py_backends.harness.pairing import Group
from py_backends.harness.running_row import RunningRow
from py_backends.results.statistics import duration
from py_backends.results.verdicts import NARROWEST_BAND, RESAMPLES_TO_STOP

Schedule: TypeAlias = Callable[[Sequence[Group], int], Sequence[RunningRow]]
"""Returns the rows of the next round, from what the rounds before have sampled and from how many of them nothing
disturbed. No rows end the rounds."""
_LEAST_ROUNDS = 30
"""With fewer rounds, the error of the band itself exceeds a quarter."""


def until_known(groups: Sequence[Group], undisturbed: int) -> list[RunningRow]:
    """All rows and controls, until every interval is narrow enough for a verdict."""
    sampled = [(group, row) for group in groups for row in group.sampled]
    if undisturbed >= _LEAST_ROUNDS and all(_is_known(group, row) for group, row in sampled):
        return []
    return [row for _, row in sampled]


def _is_known(group: Group, row: RunningRow) -> bool:
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
