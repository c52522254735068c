"""Resumes an interrupted comparison: runs the missing rows, and combines both results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec

import py_backends
from py_backends import registry
from py_backends.errors import WrongRequest
from py_backends.harness.compare import Progress, checked_settings, run
from py_backends.harness.plan import Plan
from py_backends.harness.request import Request
from py_backends.results.report import FUNCTIONS, Report, Rounds, Row
from py_backends.results.spec import Spec
from py_backends.system import machine
from py_backends.system.files import printable
from py_backends.workers.probe import BackendTarget

T = TypeVar("T")


@dataclass(frozen=True)
class _Asked:
    """What `Request.settings` writes, in the types of JSON."""

    kernels: list[str] | None
    backends: list[str] | None
    targets: list[str] | None
    variants: list[str] | None
    dtypes: list[str]
    shapes: dict[str, list[list[int | float]]]


@dataclass(frozen=True)
class _Settings:
    """The settings that are needed to resume a comparison, and the list of earlier resumptions."""

    request: _Asked
    seed: int
    threads: int
    budget_seconds: float
    cache: str
    resumed: list[dict[str, Any]] = field(default_factory=list)


def resume(
    path: Path, budget: float | None = None, progress: Progress | None = None, command: str | None = None
) -> Report:
    """Complete the results in a file by running its missing rows.

    Finished rows stay as they are. The others run as requested, beside the baseline that their ratios need. A finished
    row of the baseline stays too. `settings` are those of the file; `resumed` in them lists each resumption.

    budget: seconds for the missing rows. None: that of the file.

    Raises WrongRequest, with one clear line, if the file holds no such results, or is complete. It does so too if they
    are from another machine or version.
    """
    old = Report.read(path)
    _check_origin(old, path)
    request, settings = _asked(old, path, budget, command)
    finished = {row.spec.on_any_threads for row in old.rows if row.finished}

    def missing(found: Sequence[BackendTarget]) -> list[Spec]:
        """The missing rows, and each baseline that one of them is compared with."""
        specs = request.specs_and_left_out(found)
        workloads = {spec.workload for spec in specs if spec not in finished}
        return [
            spec
            for spec in specs
            if spec not in finished or (spec.workload in workloads and registry.is_baseline(spec.backend))
        ]

    return _combined(old, run(Plan.of(request, missing), settings, progress))


def _check_origin(old: Report, path: Path) -> None:
    """Raise WrongRequest for a complete comparison, and for one of another version or machine."""
    shown = printable(path)
    if not old.interrupted and all(row.finished for row in old.rows):
        raise WrongRequest(f"nothing is missing in {shown}: its comparison is complete")
    if FUNCTIONS in old.settings:
        raise WrongRequest(f"{shown} was a race, whose functions are in no file of results: run it again")
    if old.package_version != py_backends.__version__:
        versions = f"{old.package_version}, but this is {py_backends.__version__}"
        raise WrongRequest(f"{shown} was written by py-backends {versions}: run the comparison again")
    cpu = machine.describe()["cpu"]
    if old.machine.get("cpu") != cpu:
        raise WrongRequest(f"{shown} was written on another machine ({old.machine.get('cpu')}, but this is {cpu})")


def _asked(old: Report, path: Path, budget: float | None, command: str | None) -> tuple[Request, dict[str, Any]]:
    """The request of the comparison, and its settings. Raises WrongRequest, which names an invalid one."""
    settings = _structured(old.settings, path)
    asked = settings.request
    try:
        if not asked.dtypes:
            raise WrongRequest("settings.request.dtypes is empty")
        shapes = {kernel: [tuple(sizes) for sizes in given] for kernel, given in asked.shapes.items()}
        request = Request(asked.kernels, asked.backends, asked.targets, asked.variants, asked.dtypes, shapes)
        budget = budget or settings.budget_seconds
        checked = checked_settings(settings.threads, settings.seed, budget, settings.cache, command)
    except WrongRequest as error:
        raise WrongRequest(f"{printable(path)} cannot be resumed: {error}") from error
    return request, checked


def _structured(settings: dict[str, Any], path: Path) -> _Settings:
    """The settings in a file. Raises WrongRequest if one is missing or has the wrong type."""
    try:
        return msgspec.convert(settings, _Settings)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at ")
        wrong = f"{where.strip('`').replace('$', 'settings') or 'settings'}: {what}"
        shown = printable(path)
        raise WrongRequest(f"{shown} does not say what was requested ({wrong}): run the comparison again") from error


def _combined(old: Report, new: Report) -> Report:
    """Both runs as one. The rows keep the old run's order, and further ones follow.

    The new run's rounds are numbered after those of the old one: samples of one number are paired, and two runs share
    no round.
    """
    earlier = _rounds_with_samples(old)
    rows = {row.spec: row for row in old.rows}
    for row in new.rows:
        rows[row.spec] = _more_complete(_renumbered(row, earlier), rows.get(row.spec))
    ceilings = [replace(each, by_round=_after(earlier, each.by_round)) for each in new.ceilings]
    resumed = [*old.settings.get("resumed", []), {name: new.settings[name] for name in ("command", "budget_seconds")}]
    return replace(
        new,
        created=old.created,
        settings=old.settings | {"resumed": resumed},
        rows=list(rows.values()),
        control=_latest(old.control, new.control, lambda each: (each.kernel, each.dtype, each.shape)),
        ceilings=_latest(
            old.ceilings, ceilings, lambda each: replace(each, rate=0.0, low=None, high=None, by_round=[])
        ),
        rounds=_sum(old.rounds, new.rounds),
        seconds_taken=(old.seconds_taken or 0.0) + (new.seconds_taken or 0.0),
    )


def _rounds_with_samples(report: Report) -> int:
    """How many rounds a run has up to its last sample, which may be of one that an interruption cut off."""
    of_rows = (samples for row in report.rows for samples in (row.kernel_seconds, row.end_to_end_seconds))
    return max(map(len, (*of_rows, *(each.by_round for each in report.ceilings))), default=0)


def _renumbered(row: Row, earlier: int) -> Row:
    """The row with its rounds numbered after so many others."""
    kernel, end_to_end = (_after(earlier, samples) for samples in (row.kernel_seconds, row.end_to_end_seconds))
    return replace(row, kernel_seconds=kernel, end_to_end_seconds=end_to_end)


def _after(earlier: int, samples: list[float | None]) -> list[float | None]:
    """The samples by round, after so many rounds without one."""
    return [*[None] * earlier, *samples] if samples else []


def _more_complete(new: Row, old: Row | None) -> Row:
    """The more complete of the same row in two runs; the old one if both are finished."""
    if old is None or (not old.finished and (new.finished or (new.seconds and new.seconds.kernel))):
        return new
    return old


def _latest(old: Sequence[T], new: Sequence[T], key: Any) -> list[T]:
    """The entries of both runs. If both have an entry with the same key, the newer one is kept."""
    measured_anew = [key(each) for each in new]
    return [*(each for each in old if key(each) not in measured_anew), *new]


def _sum(old: Rounds | None, new: Rounds | None) -> Rounds | None:
    if old is None or new is None:
        return old or new
    signals = old.disturbed.keys() | new.disturbed.keys()
    disturbed = {signal: old.disturbed.get(signal, 0) + new.disturbed.get(signal, 0) for signal in sorted(signals)}
    return Rounds(old.taken + new.taken, old.kept + new.kept, disturbed)
