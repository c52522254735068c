"""The comparison: probe, plan, estimate, check, time in rounds, check again."""

from __future__ import annotations

import datetime
import importlib
import itertools
import math
import random
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from numbers import Real
from time import monotonic
from typing import Any, Protocol

import py_backends
from py_backends.errors import WrongRequest
from py_backends.harness import roofs
from py_backends.harness.answers import answerable
from py_backends.harness.case import Case
from py_backends.harness.estimates import Estimates, shorten, skip
from py_backends.harness.failures import fail, failures_of
from py_backends.harness.pairing import Group, add_controls, groups
from py_backends.harness.plan import Plan
from py_backends.harness.pool import Pool
from py_backends.harness.request import Request
from py_backends.harness.roofs import Ceilings
from py_backends.harness.rounds import run_rounds
from py_backends.harness.running_row import RunningRow, running_rows
from py_backends.harness.schedule import in_new_processes, placed_anew
from py_backends.harness.summary import judge, row_of
from py_backends.harness.timed_ceilings import TimedCeiling
from py_backends.harness.watch import Watch
from py_backends.limits import LARGEST_SEED, MOST_THREADS, whole_number
from py_backends.results.report import FAILURES, RAN, Report, Rounds
from py_backends.results.spec import Sizes
from py_backends.results.verdicts import NEW_PROCESSES
from py_backends.system import machine, signals, surroundings
from py_backends.wording import shown
from py_backends.workers import probe

DEFAULT_BUDGET = 54.0
CACHES = HOT, COLD = "hot", "cold"
_LEAST_FOR_ROWS, _LEAST_FOR_ROUNDS = 0.5, 0.375
"""The least part of the budget for checking and timing, and for the rounds alone. It is kept even if the steps before
took too long, as the first comparison's do, which compiles. The time that later ones gain by that goes into rounds."""
_FOR_THE_RECORD = 0.1
"""The part of the budget for measurements of the machine that no row is compared with."""


class Progress(Protocol):
    """Shows the progress of the comparison: `done` of `total`, in any unit."""

    def update(self, done: float, total: float, text: str) -> None: ...


class _NoProgress:
    def update(self, done: float, total: float, text: str) -> None:
        pass


def compare(
    kernels: Sequence[str] | None = None,
    backends: Sequence[str] | None = None,
    targets: Sequence[str] | None = None,
    variants: Sequence[str] | None = None,
    dtypes: Sequence[str] | None = None,
    shapes: Mapping[str, Sequence[Sizes]] | None = None,
    threads: int | None = None,
    seed: int = 1,
    budget: float = DEFAULT_BUDGET,
    cache: str = HOT,
    progress: Progress | None = None,
    command: str | None = None,
) -> Report:
    """Run kernels on every backend and target of this machine, check that all agree, and time each.

    kernels: names, or `all`. None: vecadd and matmul, and those that have a shape.
    backends, targets: names. None: all.
    variants: names; `all` takes all that a backend has. None: `tuned` if a backend has it, else `lecture`.
    dtypes: names. None: float32.
    shapes: by kernel, the sizes to run it at. A kernel without an entry runs at its own default sizes.
    threads: for every backend that runs on the CPU. None: all logical CPUs.
    seed: of the generator that draws the inputs.
    budget: seconds for the whole run. A row that would take more than its share runs at a smaller shape.
    cache: `hot` leaves the data where earlier launches left it; `cold` flushes caches before every launch.
    progress: receives what is running.
    command: the command line, for the record.

    Raises ValueError for unknown names and impossible sizes. After Ctrl-C it returns the results so far, with
    `interrupted` set.
    """
    if progress is not None and not callable(getattr(progress, "update", None)):
        raise WrongRequest(f"progress must have a method update(done, total, text); {shown(progress)} has none")
    in_formats = ("float32",) if dtypes is None else dtypes
    request = Request(kernels, backends, targets, variants, in_formats, shapes or {})
    settings = checked_settings(threads, seed, budget, cache, command) | {"request": request.settings()}
    return run(Plan.of(request, request.specs_and_left_out), settings, progress)


def checked_settings(
    threads: int | None = None,
    seed: int = 1,
    budget: float = DEFAULT_BUDGET,
    cache: str = HOT,
    command: str | None = None,
) -> dict[str, Any]:
    """The settings of a comparison as its results hold them. Raises WrongRequest for an impossible one.

    The parameters are those of `compare`.
    """
    try:
        seconds = float(budget) if isinstance(budget, Real) else math.nan
    except OverflowError:
        seconds = math.inf
    if not 0 < seconds < math.inf:
        raise WrongRequest(f"budget must be a number of seconds above 0, not {shown(budget)}")
    if cache not in CACHES:
        raise WrongRequest(f"cache must be {' or '.join(CACHES)}, not {shown(cache)}")
    return {
        "seed": whole_number("seed", seed, 0, LARGEST_SEED),
        "threads": machine.cpus() if threads is None else whole_number("threads", threads, 1, MOST_THREADS),
        "budget_seconds": seconds,
        "cache": cache,
        "command": command,
    }


@surroundings.comparing()
def run(plan: Plan, settings: dict[str, Any], progress: Progress | None = None) -> Report:
    """Run a planned comparison. `settings`: as `checked_settings` returns them.

    SciPy is imported first, and in another thread, which no signal reaches. An interrupted import would leave it
    unusable, and with it what was measured.
    """
    threads, seed, budget = settings["threads"], settings["seed"], settings["budget_seconds"]
    state = machine.state() | {"busy_cpus": machine.busy_cpus()}
    pool = Pool(threads, seed, cold=settings["cache"] == COLD, patience=plan.patience)
    with pool, ThreadPoolExecutor(1) as background:
        loaded = background.submit(importlib.import_module, "scipy.stats")
        described = background.submit(machine.describe)
        progress = _NoProgress() if progress is None else progress
        comparison = Comparison(pool, threads, budget, random.Random(seed), progress)
        try:
            loaded.result()
            comparison.run(plan)
        except KeyboardInterrupt:
            comparison.interrupt()
        signals.hold_off()
        return comparison.report(settings, {**described.result(), **comparison.machine(state)})


class Comparison:
    """One run of `compare`. A row without a source, or with a reason, is not run."""

    def __init__(self, pool: Pool, threads: int, budget: float, order: random.Random, progress: Progress) -> None:
        self._pool, self._threads, self._budget = pool, threads, budget
        self._order, self._progress = order, progress
        self._begin = monotonic()
        self._deadline = self._begin + budget
        self._created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        self._found: list[probe.BackendTarget] = []
        self._rows: list[RunningRow] = []
        self._timed: list[RunningRow] = []
        self._groups: list[Group] = []
        self._ceilings: Ceilings | None = None
        self._rounds: Rounds | None = None
        self._interrupted = False

    def run(self, plan: Plan) -> None:
        """Run all of it. After an exception, finished rows keep their results."""
        self._progress.update(0, 1, "looking for backends")
        self._found = probe.probe(plan.backends, plan.targets, plan.threads)
        how = {"timed_only": plan.timed_only, "controls": plan.controls}
        self._rows = running_rows(plan.specs(self._found), self._found, self._threads, **how)
        self._check_and_settle(self._affordable(plan))
        self._add_controls()
        self._progress.update(0, 1, "measuring the machine's ceilings")
        with roofs.ceilings(self._timed, self._threads, _FOR_THE_RECORD * self._budget) as self._ceilings:
            self._time(self._ceilings, plan)
            self._check_what_timing_left()
        never_sampled = [row for row in self._timed if not row.samples and not row.failed]
        self._rows = [row for row in self._rows if row not in never_sampled]

    def interrupt(self) -> None:
        """Give each unfinished row its reason."""
        self._interrupted = True
        for each in self._timed:
            if each.failed:  # it has ended, if badly
                fail(each, each.failed)
        for row in self._rows:
            if row.status == "skipped" and row.reason is None:
                row.reason, row.finished = "interrupted before it ran", False
        for row in self._rows:
            if row.status == "ok" and not row.checked_again:
                row.finished = False
                row.notes.append(f"interrupted before it was {'checked again' if row in self._timed else 'timed'}")

    def machine(self, state: dict[str, Any]) -> dict[str, Any]:
        """The part of the machine's description that belongs to this run: its state before and after, and versions."""
        since = machine.state(state)
        return {
            "busy_cpus": state.pop("busy_cpus"),
            "state": {"begin": state, "end": since},
            "versions": machine.versions(self._found),
        }

    def report(self, settings: dict[str, Any], machine: dict[str, Any]) -> Report:
        """The results so far."""
        ceilings = roofs.place_under(self._timed, self._ceilings) if self._ceilings else []
        for group in self._groups:
            group.keep_right()
        versus, control = judge(self._groups)
        self._tell_what_no_row_tells()
        return Report(
            created=self._created,
            package_version=py_backends.__version__,
            machine=machine,
            settings=settings,
            rows=[row_of(row, versus.get(row)) for row in self._rows],
            control=control,
            ceilings=ceilings,
            without_ceilings=self._ceilings.why_none if self._ceilings else None,
            rounds=self._rounds,
            seconds_taken=monotonic() - self._begin,
            interrupted=self._interrupted,
        )

    def _tell_what_no_row_tells(self) -> None:
        """Note in each row that has results how its workers ended, unless that is another row's reason.

        A worker that ends while several are prepared, or when nobody waits for it, is started again.
        """
        told = {row.reason for row in self._rows}
        for row in self._rows:
            if row.status in RAN - FAILURES:
                ended = self._pool.runner_of(row).ended
                for reason in dict.fromkeys(each for each in ended if each not in told):
                    row.notes.append(f"its worker ended, and another was started: {reason}")

    def _affordable(self, plan: Plan) -> list[RunningRow]:
        """The rows with a source for which there is time, some of them at a smaller shape."""
        sources = [row for row in self._rows if row.text is not None]
        rows = answerable(sources, self._case_to_estimate, self._budget, shorten=plan.shorten)
        estimated = Estimates(self._pool, self._budget, self._progress.update).of(rows)
        self._deadline = max(self._deadline, monotonic() + _LEAST_FOR_ROWS * self._budget)
        left = self._deadline - monotonic()
        if plan.shorten:
            return shorten(estimated, plan.runs, left)
        return skip(estimated, plan.runs, left, self._budget)

    def _case_to_estimate(self, row: RunningRow, sizes: Sizes) -> Case:
        return self._pool.case(row.problem, sizes, row.dtype, checked=False)

    def _check_and_settle(self, rows: Sequence[RunningRow]) -> None:
        """Check each row at its shape. Prepare those that are right and not emulated for timing."""
        cases = [(row, self._case(row)) for row in rows]
        placed = [row.on(self._pool.runner_of(row), case) for row, case in cases if case]
        self._pool.keep_only([row.case for row in placed])
        for number, row in enumerate(placed):
            self._progress.update(number, len(placed), f"checking {row.title}")
            with failures_of(row):
                row.try_once()
                if row.status == "ok" and row.settle():
                    self._timed.append(row)

    def _case(self, row: RunningRow) -> Case | None:
        with failures_of(row):
            return self._pool.case(row.problem, row.sizes, row.dtype)
        return None

    def _add_controls(self) -> None:
        self._groups = groups(self._timed)
        for number, group in enumerate(self._groups):
            self._progress.update(number, len(self._groups), "starting controls")
            add_controls(group, self._pool)

    def _time(self, ceilings: Ceilings, plan: Plan) -> None:
        def progress(number: int, row: RunningRow | TimedCeiling) -> None:
            done = (monotonic() - begin) / max(1e-9, self._deadline - begin)
            self._progress.update(min(done, 1.0), 1, f"round {number + 1}: {row.title}")

        def next_rows() -> list[RunningRow | TimedCeiling]:
            rows = plan.schedule(self._groups)
            if next(numbers) in NEW_PROCESSES and 2 * monotonic() - begin < self._deadline:  # else few would follow
                self._progress.update(0, 1, "starting new processes")
                in_new_processes(rows)
            placed_anew(rows, self._order)
            return [*rows, *ceilings] if rows or not self._groups else []

        begin, numbers = monotonic(), itertools.count()
        self._deadline = max(self._deadline, begin + _LEAST_FOR_ROUNDS * self._budget)
        watch = Watch([*(row for group in self._groups for row in group.sampled), *ceilings])
        try:
            least, most = plan.least_rounds, plan.rounds
            run_rounds(next_rows, self._deadline, self._order, progress, most=most, least=least, watch=watch)
        finally:
            self._rounds = watch.finish()

    def _check_what_timing_left(self) -> None:
        """Take one more timed sample of each row, on an output of NaN, and judge it like the first run."""
        for number, timed in enumerate(self._timed):
            self._progress.update(number, len(self._timed), f"checking again {timed.title}")
            with failures_of(timed):
                if timed.failed:
                    raise timed.failed
                if timed.samples:
                    timed.check_timed()
