"""Chooses the rows of each round of a sweep, to find the size from which each backend beats the baseline.

First, every backend is sampled at a few sizes. Then it is sampled halfway between two neighbours, if it seems to win at
one and not at the other, until no size is left between them. After that, rounds go to the sizes that decide, each until
it is clear. These are the last size that does not win, and all sampled sizes above it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from py_backends.harness.pairing import Group
from py_backends.harness.running_row import RunningRow
from py_backends.harness.schedule import until_known
from py_backends.results.grouping import grouped
from py_backends.results.verdicts import FASTER, LEAST_ROUNDS, LOOKS, UNCLEAR, WIDEST_SAME, verdicts

KERNEL, WHOLE = MEASURES = ("kernel", "end_to_end")
"""The kernel alone, and whole calls with upload and download."""
_FIRST_SIZES = 5


@dataclass(frozen=True)
class _State:
    """The state of a row, by measure: whether it seems to win so far, and whether that is clear."""

    seems_to_win: dict[str, bool]
    clear: dict[str, bool]


def search(groups: Sequence[Group]) -> list[RunningRow]:
    """The rows of the next round, with their baselines and controls. The result is empty when all is clear.

    If there is nothing to compare, every round has all rows.
    """
    compared = [group for group in groups if group.controls]
    if not compared:
        return until_known(groups)
    states = _states(compared)
    wanted = [row for rows in _lines(compared) for row in _wanted(rows, states)]
    alone = [row for group in groups if not group.controls for row in group.rows if len(row.samples) < LEAST_ROUNDS]
    chosen = [
        row
        for group in compared
        if any(row in wanted for row in group.rows)
        for row in group.sampled
        if row is group.baseline or row in group.controls or row in wanted
    ]
    return chosen + alone


def _lines(groups: Sequence[Group]) -> list[list[RunningRow]]:
    """The compared rows of each backend, by increasing size."""
    by_size = sorted(groups, key=lambda group: group.rows[0].case.sizes)
    compared = (row for group in by_size for row in group.rows if row is not group.baseline and not row.failed)
    return list(grouped((replace(row.spec, sizes=()), row) for row in compared).values())


def _wanted(rows: Sequence[RunningRow], states: Mapping[RunningRow, _State]) -> list[RunningRow]:
    """The rows of the next round. `rows`: those of one backend, by increasing size."""
    last = len(rows) - 1
    first_sizes = {round(last * part / (_FIRST_SIZES - 1)) for part in range(_FIRST_SIZES)}
    # A size that was begun is looked at to the end: what it has counts in the answer.
    unseen = [at for at, row in enumerate(rows) if len(row.samples) < LOOKS and (at in first_sizes or row.samples)]
    if unseen:
        return [rows[at] for at in unseen]
    looked = [at for at, row in enumerate(rows) if len(row.samples) >= LOOKS]
    between = {
        (low + high) // 2
        for measure in MEASURES
        for low, high in pairwise(looked)
        if high - low > 1 and _seems(rows[low], states, measure) != _seems(rows[high], states, measure)
    }
    if between:
        return [rows[at] for at in between]
    return [
        rows[at]
        for at in looked
        if any(at in _deciding(rows, looked, states, each) and not states[rows[at]].clear[each] for each in MEASURES)
    ]


def _deciding(
    rows: Sequence[RunningRow], looked: Sequence[int], states: Mapping[RunningRow, _State], measure: str
) -> list[int]:
    """The indices of the last size that does not seem to win, and of all sizes above it."""
    lost = [at for at in looked if not _seems(rows[at], states, measure)]
    return [at for at in looked if not lost or at >= lost[-1]]


def _seems(row: RunningRow, states: Mapping[RunningRow, _State], measure: str) -> bool:
    return states[row].seems_to_win[measure]


def _states(groups: Sequence[Group]) -> dict[RunningRow, _State]:
    """The state of each row. The test is the one that judges the results in the end."""
    rows = [(row, group) for group in groups for row in group.rows if row is not group.baseline and row.samples]
    of_rows: dict[RunningRow, _State] = {row: _State({}, {}) for row, _ in rows}
    for measure in MEASURES:
        found = [(row, group.ratio(row, whole_calls=measure == WHOLE)) for row, group in rows]
        judged = [(row, ratio) for row, ratio in found if ratio]
        for (row, ratio), verdict in zip(judged, verdicts([ratio for _, ratio in judged]), strict=True):
            clear = verdict != UNCLEAR
            of_rows[row].clear[measure] = clear
            of_rows[row].seems_to_win[measure] = verdict == FASTER if clear else ratio.median > 1 + WIDEST_SAME
    return of_rows
