"""Measures: opens every contender, checks it at each size, and samples all of them in rounds.

A round samples every entry once. Sizes come in random order, and the contenders at one size (with its neighbours)
right after one another, in random order too, so that the ratios within a round are of times close to each other.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import groupby
from time import monotonic
from typing import Any, NamedTuple, Self

import numpy as np

from benchmarks.goals import Contender, Entry, Goal
from benchmarks.process import Process
from py_backends import _discovery
from py_backends._contract import Target
from py_backends.harness import doctor, machine
from py_backends.harness.case import Case
from py_backends.harness.rounds import LONG, SHORTEST_SAMPLE, run_rounds, warm_up
from py_backends.harness.workers import WorkerFailed

_LONGEST_CALL = 5.0
"""Seconds: what would take longer is not measured, so that one slow kernel does not take everybody's time."""
_SHORTEST_WARM_UP = 0.001
"""Seconds of uncounted calls before the sample of a brief one."""
_MOST_REPETITIONS = 1_000_000
_MEMORY_TO_LEAVE = 2**31
"""Bytes."""
_SHARED_COPIES = 4
"""Memory of a case in the harness, over its own arrays: those, the reference and its bound. Every contender has one
copy more, and a device may have another."""
_LEAST_ROUNDS = 6
"""So many samples an interval needs."""

Progress = Callable[[str], None]


@dataclass
class Timed:
    """An entry that was found right: `samples` are seconds of one call, by the number of their round."""

    entry: Entry
    process: Process
    case: Case
    repetitions: int = 1
    warm_up: int = 1
    samples: dict[int, float] = field(default_factory=dict)
    failed: WorkerFailed | None = None

    def sample(self) -> float:
        """Seconds of one call, as `settle` froze its conditions."""
        return self.process.sample(self.case, self.warm_up, self.repetitions)

    def settle(self) -> float:
        """Choose warm-up and repetitions; seconds of one call."""
        seconds = self.process.sample(self.case, 0, 1)
        if seconds < LONG:  # the first calls bring in pages, and may meet a neighbour
            seconds = min(seconds, *(self.process.sample(self.case, 1, 1) for _ in range(2)))
        if seconds < SHORTEST_SAMPLE:  # so that reading the clock does not count
            seconds = self.process.sample(self.case, 3, max(1, int(_SHORTEST_WARM_UP / seconds)))
        self.repetitions = min(_MOST_REPETITIONS, math.ceil(SHORTEST_SAMPLE / max(seconds, 1e-9)))
        self.warm_up = warm_up(seconds)
        if self.repetitions > 1:
            self.warm_up = max(self.warm_up, min(self.repetitions, math.ceil(_SHORTEST_WARM_UP / max(seconds, 1e-9))))
        return seconds


class Reason(NamedTuple):
    """Why something was not measured, as a sentence without full stop, and what would change that."""

    text: str
    fix: str | None = None


class NotMeasured(Exception):
    """Something cannot be measured."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.text)
        self.reason = reason


@dataclass
class Measurement:
    """What was measured: the samples of every entry, and why there are none of the others."""

    samples: dict[Entry, dict[int, float]] = field(default_factory=dict)
    reasons: dict[Entry, Reason] = field(default_factory=dict)
    rounds: dict[tuple[str, str], int] = field(default_factory=dict)
    """By kernel and dtype."""

    def reason(self, entry: Entry) -> Reason:
        """Why there are no samples of an entry."""
        return self.reasons.get(entry, Reason("interrupted before its turn"))


class _SizesTogether:
    """Shuffles entries so that those of one size, and of its neighbours, stay together."""

    def __init__(self, order: random.Random) -> None:
        self._order = order

    def shuffle(self, rows: list[Timed], /) -> None:
        rows.sort(key=lambda row: row.entry.size)
        clusters: list[list[Timed]] = []
        for row in rows:
            if clusters and row.entry.size - clusters[-1][-1].entry.size <= 1:
                clusters[-1].append(row)
            else:
                clusters.append([row])
        self._order.shuffle(clusters)
        for cluster in clusters:
            self._order.shuffle(cluster)
        rows[:] = [row for cluster in clusters for row in cluster]


class Run:
    """One run of the benchmarks; leaving it ends the processes."""

    def __init__(self, threads: int | None, seed: int, progress: Progress, measurement: Measurement) -> None:
        """`measurement` is filled as the run proceeds, so that what is finished stays when it is interrupted."""
        self._threads, self._seed, self._progress = threads, seed, progress
        self._order = random.Random(seed)
        self._processes: dict[Contender, Process] = {}
        self._targets: dict[str, list[Target]] = {}
        self.measurement = measurement

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for process in self._processes.values():
            process.close()

    def measure(self, goals: Sequence[Goal], rounds: int, budget: float) -> None:
        """Measure what the goals need, in at most so many rounds, which take about `budget` seconds.

        There are always rounds enough for an interval. Starting, checking and settling come on top.
        """
        entries = list(dict.fromkeys(entry for goal in goals for entry in goal.entries()))
        self._find({entry.contender.backend for entry in entries})
        entries = [entry for entry in entries if self._is_there(entry)]
        sections = {key: list(group) for key, group in _sections(entries)}
        weights = {key: _work(section) for key, section in sections.items()}
        for key, section in sections.items():
            share = budget * weights[key] / sum(weights.values())
            del weights[key]
            budget -= self._section(key, section, rounds, share)

    def _find(self, backends: Iterable[str]) -> None:
        self._progress("looking for backends")
        known = [name for name in sorted(backends) if name in _discovery.backend_names()]
        for backend, target in doctor.probe(known):
            self._targets.setdefault(backend, []).append(target)

    def _is_there(self, entry: Entry) -> bool:
        """Whether a contender can run here; else the reason is noted."""
        try:
            self._target(entry.contender)
        except NotMeasured as missing:
            self.measurement.reasons[entry] = missing.reason
            return False
        return True

    def _section(self, key: tuple[str, str], entries: Sequence[Entry], rounds: int, budget: float) -> float:
        """Prepare and sample the entries of one kernel and dtype; the seconds that the rounds took."""

        def progress(number: int, row: Timed) -> None:
            self._progress(f"{' '.join(key)}: round {number + 1}, {row.entry.contender.label} {row.entry.size}")

        with ExitStack() as cleanup:
            timed = self._prepare(entries, cleanup)
            begin, order = monotonic(), _SizesTogether(self._order)
            try:
                run_rounds(timed, begin + budget, order, progress, min(rounds, _LEAST_ROUNDS), rounds)
            finally:
                self.measurement.rounds[key] = max((len(row.samples) for row in timed), default=0)
                self._keep(timed)
            return monotonic() - begin

    def _keep(self, timed: Sequence[Timed]) -> None:
        for row in timed:
            if row.failed:
                self.measurement.reasons[row.entry] = Reason(row.failed.reason, row.failed.fix)
            elif row.samples:
                self.measurement.samples[row.entry] = dict(sorted(row.samples.items()))

    def _prepare(self, entries: Sequence[Entry], cleanup: ExitStack) -> list[Timed]:
        """Check every entry, small sizes first, and settle how it is timed."""
        by_size = defaultdict(list)
        for entry in entries:
            by_size[entry.size].append(entry)
        timed: list[Timed] = []
        before: dict[Contender, tuple[float, float]] = {}
        for size in sorted(by_size):
            case = self._case(by_size[size])
            if case is None:
                continue
            cleanup.callback(case.close)
            for entry in by_size[size]:
                self._progress(f"{entry.kernel} {entry.dtype} {size}: checking {entry.contender.label}")
                try:
                    row = self._ready(entry, case, before)
                except WorkerFailed as failed:
                    self.measurement.reasons[entry] = Reason(failed.reason, failed.fix)
                    continue
                except NotMeasured as failed:
                    self.measurement.reasons[entry] = failed.reason
                    continue
                cleanup.callback(row.process.unload, case)
                timed.append(row)
            vars(case).pop("reference", None)  # it is as large as the case, and not needed again
        return timed

    def _ready(self, entry: Entry, case: Case, before: dict[Contender, tuple[float, float]]) -> Timed:
        """Check and settle an entry; NotMeasured where it is wrong, or too slow by its work and seconds `before`."""
        work = case.problem.work(case.sizes)
        smaller, seconds = before.get(entry.contender, (work, 0.0))
        if (expected := seconds * work / smaller) > _LONGEST_CALL:
            raise NotMeasured(Reason(f"a call at {entry.size} would take about {expected:.0f} s"))
        process = self._process(entry.contender)
        if wrong := process.check(case):
            raise NotMeasured(Reason(f"its result at {entry.size} is wrong: {wrong}"))
        row = Timed(entry, process, case)
        before[entry.contender] = work, row.settle()
        return row

    def _case(self, entries: Sequence[Entry]) -> Case | None:
        """The inputs for all that is measured at one size; None, with the reason noted, where memory is short."""
        entry = entries[0]
        problem, dtype = _discovery.problem(entry.kernel), np.dtype(entry.dtype)
        sizes = (entry.size,) * len(problem.dimensions)
        copies = _SHARED_COPIES + sum(2 if each.contender.way == "kernel" else 1 for each in entries)
        needed = copies * problem.bytes(sizes, dtype) + _MEMORY_TO_LEAVE
        if needed > machine.free_memory():
            reason = Reason(
                f"n = {entry.size} needs {needed / 1e9:.0f} GB of memory for all of them", "take fewer: --only"
            )
            self.measurement.reasons.update(dict.fromkeys(entries, reason))
            return None
        return Case(problem, sizes, dtype, self._seed)

    def _process(self, contender: Contender) -> Process:
        if contender not in self._processes:
            target = self._target(contender)
            self._processes[contender] = Process(contender, target, self._threads)
        return self._processes[contender]

    def _target(self, contender: Contender) -> Target:
        """Where a contender runs; NotMeasured, with doctor's reason, where that is not there."""
        targets = self._targets.get(contender.backend)
        if targets is None:
            raise NotMeasured(Reason(f"there is no backend {contender.backend}"))
        named = [target for target in targets if contender.target in (None, target.name)]
        for target in named:
            if target.available and not target.emulated:
                return target
        if not named:
            raise NotMeasured(Reason(f"{contender.backend} has no target {contender.target} here"))
        raise NotMeasured(Reason(named[0].reason or "it is not available", named[0].fix))


def _sections(entries: Sequence[Entry]) -> Iterable[tuple[tuple[str, str], Iterable[Entry]]]:
    """Entries by kernel and dtype: what shares rounds and memory."""
    return groupby(sorted(entries, key=_section_of), key=_section_of)


def _section_of(entry: Entry) -> tuple[str, str]:
    return entry.kernel, entry.dtype


def _work(entries: Iterable[Entry]) -> float:
    """A number that the time of a round is about proportional to."""
    return sum(_work_of(entry) for entry in entries)


def _work_of(entry: Entry) -> float:
    problem, dtype = _discovery.problem(entry.kernel), np.dtype(entry.dtype)
    sizes = (entry.size,) * len(problem.dimensions)
    operations = max(problem.flops(sizes) * dtype.itemsize, _FLOPS_OF_A_BYTE * problem.bytes(sizes, dtype))
    return operations + _FLOPS_OF_A_TURN


_FLOPS_OF_A_BYTE, _FLOPS_OF_A_TURN = 40, 2e10
"""About what one byte of memory traffic, and the waking of a process with its shortest sample, take as long as."""


def rates(measurement: Measurement, entry: Entry) -> Mapping[int, float]:
    """Operations (or, of vecadd, elements) a second of an entry, by round; empty where it was not measured."""
    problem = _discovery.problem(entry.kernel)
    work: Any = problem.work((entry.size,) * len(problem.dimensions))
    return {number: work / seconds for number, seconds in measurement.samples.get(entry, {}).items()}
