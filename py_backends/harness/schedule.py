"""Schedules: which rows the next round samples. Commands may bring others than the one here."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import TypeAlias

from py_backends.harness.pairing import Group
from py_backends.harness.running_row import RunningRow
from py_backends.results.grouping import grouped
from py_backends.results.statistics import duration
from py_backends.results.verdicts import LEAST_ROUNDS, MARGIN, is_decided, verdicts
from py_backends.system import machine
from py_backends.workers.process import WorkerFailed

Schedule: TypeAlias = Callable[[Sequence[Group]], Sequence[RunningRow]]
"""Returns the rows of the next round, from what the rounds before have sampled. No rows end the rounds."""


def until_known(groups: Sequence[Group]) -> list[RunningRow]:
    """The rows that are not yet decided, each with its baseline."""
    decided, chosen = _decided(groups), list[RunningRow]()
    for group in groups:
        rows = [row for row in group.compared() or group.rows if row not in decided and not row.failed]
        chosen += [group.baseline, *rows] if rows and group.baseline and group.baseline not in rows else rows
    return chosen


def placed_anew(rows: Sequence[RunningRow], order: Random) -> Sequence[RunningRow]:
    """The rows, after all arrays of each of their cases have moved: where they lie is noise that averages out."""
    for case in dict.fromkeys(row.case for row in rows):
        case.move(order)
    return rows


def in_new_processes(rows: Sequence[RunningRow]) -> None:
    """Replace the worker of each row by another one, and run each row once there.

    Several start at once. What fails does so again in its round, and is told there.
    """

    def renew(own: Sequence[RunningRow]) -> None:
        own[0].runner.close()
        for row in own:
            with contextlib.suppress(WorkerFailed):
                row.sample()

    by_runner = list(grouped((row.runner, row) for row in rows).values())
    with ThreadPoolExecutor(machine.cpus()) as pool:
        list(pool.map(renew, by_runner))


def _decided(groups: Sequence[Group]) -> set[RunningRow]:
    """Rows with enough samples: by their verdict, by the width of their interval or, alone, of their time.

    What is not `FASTER` or `SLOWER` yet may become so, unless its interval says that it hardly differs.
    """
    sampled = [(group, row) for group in groups for row in group.sampled if len(row.samples) >= LEAST_ROUNDS]
    ratios = [(row, found) for group, row in sampled if row is not group.baseline and (found := group.ratio(row))]
    said = verdicts([found for _, found in ratios])
    compared = {row for row, _ in ratios}
    told = zip(ratios, said, strict=True)
    return {row for (row, found), verdict in told if is_decided(found, verdict)} | {
        row for _, row in sampled if row not in compared and _has_known_time(row)
    }


def _has_known_time(row: RunningRow) -> bool:
    time = duration([sample.kernel for sample in row.samples.values()])
    return time.low is not None and time.high is not None and time.high <= time.low * (1 + MARGIN)
