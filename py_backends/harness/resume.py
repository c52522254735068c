"""Goes on with an interrupted comparison: runs the rows that are missing in its results, and puts both together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import py_backends
from py_backends import _discovery
from py_backends._contract import WrongRequest
from py_backends.harness import machine
from py_backends.harness.compare import Progress, run
from py_backends.harness.plan import PlannedRow, Request
from py_backends.harness.results import Control, Report, Rounds, Row

Key = tuple[Any, ...]
T = TypeVar("T")
_NEEDED = ("request", "seed", "threads", "budget_seconds", "cache")
"""The settings without which a comparison cannot be gone on with."""


def resume(
    path: Path, budget: float | None = None, progress: Progress | None = None, command: str | None = None
) -> Report:
    """The results in a file with what was missing in them.

    Rows that are finished stay as they are. The others run as they were asked for, together with the baseline, for
    their ratios, whose own row stays too if it is finished. `settings` are those of the file, with `resumed` telling
    of each time that it was gone on with.

    budget: seconds for what is missing; that of the file where None.

    Raises WrongRequest, with one clear line, where the file holds no such results, nothing is missing in them, or they
    are of another machine or version.
    """
    old = Report.read(path)
    request = _request(old, path)
    finished = {_key(row): row for row in old.rows if row.finished}
    settings = old.settings | {"budget_seconds": budget or old.settings["budget_seconds"], "command": command}

    def missing(rows: Sequence[PlannedRow]) -> list[PlannedRow]:
        """What is to run; the baseline too, where a row is to be compared with it."""
        groups = {row.group for row in rows if _key(row.row) not in finished}
        return [
            row
            for row in rows
            if _key(row.row) not in finished or (row.group in groups and _discovery.is_baseline(row.row.backend))
        ]

    return _together(old, run(request, settings, progress, missing), finished)


def _request(old: Report, path: Path) -> Request:
    """What the comparison was asked for, once it is sure that it can be gone on with here."""
    if not old.interrupted and all(row.finished for row in old.rows):
        raise WrongRequest(f"nothing is missing in {path}: its comparison came to its end")
    if old.package_version != py_backends.__version__:
        versions = f"{old.package_version}, and this is {py_backends.__version__}"
        raise WrongRequest(f"{path} is of py-backends {versions}: run the comparison anew")
    cpu = machine.describe()["cpu"]
    if old.machine.get("cpu") != cpu:
        raise WrongRequest(f"{path} is of another machine ({old.machine.get('cpu')}, and this is {cpu})")
    try:
        asked: dict[str, Any] = {name: old.settings[name] for name in _NEEDED}["request"]
        shapes = {kernel: [tuple(sizes) for sizes in given] for kernel, given in asked["shapes"].items()}
        return Request(**asked | {"shapes": shapes})
    except (AttributeError, KeyError, TypeError) as error:
        raise WrongRequest(f"{path} does not say what was asked for: run the comparison anew") from error


def _together(old: Report, new: Report, finished: dict[Key, Row]) -> Report:
    """Both runs as one, in the order of the plan."""
    unfinished = {_key(row): row for row in old.rows if not row.finished}
    rows = {_key(row): row for row in new.rows}
    merged = {key: finished.get(key) or _further(row, unfinished.get(key)) for key, row in rows.items()}
    left = {_key(row): row for row in old.rows}  # all of them, where it was interrupted again before there was a plan
    resumed = [*old.settings.get("resumed", []), {name: new.settings[name] for name in ("command", "budget_seconds")}]
    return replace(
        new,
        created=old.created,
        settings=old.settings | {"resumed": resumed},
        rows=list((merged | {key: row for key, row in left.items() if key not in merged}).values()),
        control=_latest(old.control, new.control, _key_of_control),
        ceilings=_latest(old.ceilings, new.ceilings, lambda each: replace(each, rate=0.0, low=None, high=None)),
        rounds=_sum(old.rounds, new.rounds),
        seconds_taken=(old.seconds_taken or 0.0) + (new.seconds_taken or 0.0),
    )


def _further(new: Row, old: Row | None) -> Row:
    """Of two rows that are the same but for their run, the one that came further."""
    if old is None or new.finished or (new.seconds and new.seconds.kernel):
        return new
    return old


def _latest(old: Sequence[T], new: Sequence[T], key: Any) -> list[T]:
    """What both measured, and of what both have the newer."""
    measured_anew = [key(each) for each in new]
    return [*(each for each in old if key(each) not in measured_anew), *new]


def _key_of_control(control: Control) -> Key:
    return control.kernel, control.dtype, control.shape


def _sum(old: Rounds | None, new: Rounds | None) -> Rounds | None:
    if old is None or new is None:
        return old or new
    signals = old.disturbed.keys() | new.disturbed.keys()
    disturbed = {signal: old.disturbed.get(signal, 0) + new.disturbed.get(signal, 0) for signal in sorted(signals)}
    return Rounds(old.taken + new.taken, old.kept + new.kept, disturbed)


def _key(row: Row) -> Key:
    """What a row was asked for."""
    shape = row.requested or row.shape
    return row.kernel, row.backend, row.target, row.variant, row.dtype, tuple(shape.items())
