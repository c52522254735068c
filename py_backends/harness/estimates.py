"""Runs rows at small shapes, to estimate one run of each. Shortens or skips those for which the budget has no time."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from operator import attrgetter

from py_backends import registry
from py_backends.harness import sizing
from py_backends.harness.failures import failures_of
from py_backends.harness.pairing import COPIES
from py_backends.harness.pool import Pool, check_memory
from py_backends.harness.running_row import SHORTEST_SAMPLE, RunningRow, baselines
from py_backends.results.spec import Sizes
from py_backends.system import machine
from py_backends.workers.process import WorkerFailed
from py_backends.workers.runner import Prepared, Runner

_RUNS_IF_CHECKED = 2
"""A row that is checked and never timed must have time for this many runs."""
_SHORTEST_SAMPLING = 0.02
"""Seconds of a round that a row takes at least, however short its kernel: a sample and its warm-up."""
_FOR_BASELINES = 0.5
"""The part of the time that is left which baselines may take with their controls."""
_LONGEST_ESTIMATE, _FLOOR_OF_ESTIMATES = 0.25, 0.2
"""A run for an estimate may take this part of a row's even share of the budget, and always the seconds of the floor.
With less, the delays of a busy machine at a small shape would be extrapolated to a large one."""

Estimated = Sequence[tuple[RunningRow, float]]
"""Rows, with the seconds of one run of each at the shape that was asked for."""


class Estimates:
    """Estimates rows of one comparison. Rows of one kernel on one worker share what their smaller shapes took."""

    def __init__(self, pool: Pool, budget: float, progress: Callable[[float, float, str], None]) -> None:
        """`budget`: seconds of the whole comparison. `progress`: is given what is done, of how much, and its name."""
        self._pool, self._budget, self._progress = pool, budget, progress
        self._known: dict[tuple[str, str, str, Runner], dict[Sizes, float]] = {}

    def of(self, rows: Sequence[RunningRow]) -> Estimated:
        """Prepare all rows, several backends at once. Then estimate the seconds of one run, row by row.

        A row that fails is left out, and says why. No estimate runs beside a compiler: threads that wait for each other
        may take a hundred times as long then. Baselines are estimated a second time when all others were, and the least
        counts: all rows of a kernel are compared with what they run at.
        """
        estimates: dict[RunningRow, float] = {}
        limit = min(_LONGEST_ESTIMATE * self._budget / max(1, len(rows)), sizing.longest_run())
        limit = max(_FLOOR_OF_ESTIMATES, limit)
        self._prepare_all(rows)
        for row in rows:
            self._progress(len(estimates), len(rows), f"estimating {row.title}")
            with failures_of(row):
                estimates[row] = self._estimate(row, limit)
        for row in filter(_has_copies, list(estimates)):
            first = estimates.pop(row)
            with failures_of(row):
                estimates[row] = min(first, self._seconds(row, self._prepare(row)[0], limit, anew=True))
        for row, seconds in estimates.items():
            row.estimated_seconds = seconds
        return [(row, estimates[row]) for row in rows if row in estimates]

    def _prepare_all(self, rows: Sequence[RunningRow]) -> None:
        def of_one_worker(group: list[RunningRow]) -> None:
            for row in group:
                self._progress(0, 1, f"preparing {row.title}")
                with contextlib.suppress(Exception):  # its estimate fails with the same error
                    self._prepare(row)

        worker = attrgetter("worker")
        by_worker = [list(group) for _, group in groupby(sorted(rows, key=worker), key=worker)]
        # What has most to compile comes first: the longest compilation decides when all is ready.
        by_worker.sort(key=lambda group: sum(row.to_compile for row in group), reverse=True)
        with ThreadPoolExecutor(min(4, machine.cpus())) as pool:
            try:
                list(pool.map(of_one_worker, by_worker))
            except KeyboardInterrupt:
                self._pool.kill()  # so that nothing waits for requests that were begun
                raise

    def _prepare(self, row: RunningRow, copy: int = 0) -> tuple[Runner, Prepared]:
        text, dtype = row.text, row.dtype
        assert text is not None  # only rows with a source are prepared
        check_memory(row.problem, row.spec.sizes, dtype)
        runner = self._pool.runner_of(row, copy)
        smallest = next(sizing.growing(row.problem, row.spec.sizes))
        return runner, runner.prepare(text, self._pool.case(row.problem, smallest, dtype, checked=False))

    def _estimate(self, row: RunningRow, limit: float) -> float:
        runner, prepared = self._prepare(row)
        if row.spec.threads and not (prepared.on_cpu and prepared.obeys_threads):
            reason = (
                "it does not run on the CPU, so it has no number of threads" if not prepared.on_cpu else prepared.note
            )
            raise WorkerFailed("skipped", reason or "it ignores the number of threads")
        row.prepared = prepared
        if prepared.note:
            row.notes.append(prepared.note)

        # Controls take every step that the baseline takes. In matmul, copies without these runs were one or two per
        # cent faster than the baseline in run after run.
        for copy in range(1, 1 + _copies(row)):
            self._seconds(row, self._prepare(row, copy)[0], limit)
        return self._seconds(row, runner, limit)

    def _seconds(self, row: RunningRow, runner: Runner, limit: float, *, anew: bool = False) -> float:
        """The estimated seconds of one run, from smaller runs of about `limit` seconds each at most.

        anew: whether each shape runs again, although other rows have run it.
        """
        text, dtype = row.text, row.dtype
        assert text is not None  # only rows with a source are estimated
        known = self._known.setdefault((row.spec.kernel, row.spec.variant, dtype.name, runner), {})
        earlier = {} if anew else dict(known)  # of other rows; a copy, since this estimate may run a shape twice

        def seconds_at(sizes: Sizes) -> float:
            if sizes not in earlier:
                case = self._pool.case(row.problem, sizes, dtype, checked=False)
                known[sizes] = min(known.get(sizes, math.inf), sizing.least(lambda: runner.whole_call(text, case)))
            return known[sizes]

        return sizing.estimate(row.problem, row.spec.sizes, seconds_at, limit)


def shorten(estimates: Estimated, if_timed: int, left: float) -> list[RunningRow]:
    """Give a smaller shape to rows that would take more than their share, and skip those that take too long anyway.

    Baselines get their time first, up to half of what there is: where they are shortened, all others are compared by
    rate.

    if_timed: how many runs a timed row takes.
    left: seconds for all rows.

    Returns the rows to run. A shortened or skipped row says so.
    """
    runs = [_runs(row, if_timed) for row, _ in estimates]
    seconds_of = [
        seconds * row.problem.work(row.sizes) / row.problem.work(row.spec.sizes) for row, seconds in estimates
    ]
    costs = [count * max(seconds, _SHORTEST_SAMPLING) for count, seconds in zip(runs, seconds_of, strict=True)]
    caps, longest = _caps([row for row, _ in estimates], costs, left), sizing.longest_run()
    affordable_rows = []
    for count, cap, seconds, (row, _) in zip(runs, caps, seconds_of, estimates, strict=True):
        wanted = "x".join(map(str, row.sizes))
        sizes = sizing.affordable(row.problem, row.sizes, seconds, min(cap / count, longest))
        if sizes is None:
            row.reason = f"even a small part of {wanted} takes too long for the budget"
            row.fix = sizing.LONGER_BUDGET
            continue
        affordable_rows.append(row)
        if sizes != row.sizes:
            row.sizes = sizes
            row.notes.append(f"shortened from {wanted}, where one run would take {sizing.in_words(seconds)}")
    return affordable_rows


def _caps(rows: Sequence[RunningRow], costs: Sequence[float], left: float) -> list[float]:
    """The cap of each row's cost. Baselines come first; the others share what they leave."""
    kernels, first = [row.spec.kernel for row in rows], [_has_copies(row) for row in rows]
    of_baselines = [cost if is_first else 0.0 for cost, is_first in zip(costs, first, strict=True)]
    caps = sizing.fair_caps(kernels, of_baselines, _FOR_BASELINES * left)
    left -= sum(map(min, of_baselines, caps))
    of_others = [0.0 if is_first else cost for cost, is_first in zip(costs, first, strict=True)]
    caps_of_others = sizing.fair_caps(kernels, of_others, left)
    return [caps[at] if is_first else caps_of_others[at] for at, is_first in enumerate(first)]


def skip(estimates: Estimated, if_timed: int, left: float, budget: float) -> list[RunningRow]:
    """Skip the slowest rows until the others fit the time left at their own shapes, and return the others.

    A baseline is skipped with the last row that is compared with it. The parameters are those of `shorten`, and the
    budget of the whole comparison.
    """
    # A sample repeats a short kernel, so it has a least length.
    costs = [_runs(row, if_timed) * max(sizing.possible(each), SHORTEST_SAMPLE) for row, each in estimates]
    kept = sizing.cheapest(costs, baselines([row for row, _ in estimates]), left)
    for at, (row, seconds) in enumerate(estimates):
        if at not in kept:
            wanted = "x".join(map(str, row.spec.sizes))
            row.reason, row.fix = sizing.too_long(wanted, seconds, budget)
    return [estimates[at][0] for at in kept]


def _runs(row: RunningRow, if_timed: int) -> int:
    """The number of runs for which a row must have time. A baseline's number includes its controls."""
    if row.target.emulated:
        return _RUNS_IF_CHECKED
    return if_timed * (1 + _copies(row))


def _copies(row: RunningRow) -> int:
    """The number of controls of a row, if it is timed."""
    return COPIES if _has_copies(row) else 0


def _has_copies(row: RunningRow) -> bool:
    """Whether it is a baseline, with controls if it is timed."""
    return row.controls and registry.is_baseline(row.spec.backend) and not row.target.emulated
