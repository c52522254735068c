"""Runs many mutants, several at a time, and keeps what came out of each as soon as it is known."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Lock
from time import monotonic

from .judge import QUICK, SURVIVED, TESTS, Judge, JudgeFailed, Verdict
from .mutant import Mutant
from .results import Results
from .scratch import Scratch
from .texts import Machine

Tell = Callable[[Mutant, Verdict], None]
"""Called with each mutant that was judged."""


def sample(mutants: Iterable[Mutant], most: int | None, seed: int) -> list[Mutant]:
    """At most so many of each backend, drawn by their identifiers: the same ones while their lines stay."""
    by_backend: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        by_backend.setdefault(mutant.backend, []).append(mutant)
    return [
        mutant
        for of_backend in by_backend.values()
        for mutant in sorted(of_backend, key=lambda each: _lot(each.identifier, seed))[:most]
    ]


def _lot(identifier: str, seed: int) -> str:
    return hashlib.sha256(f"{seed} {identifier}".encode()).hexdigest()


class Session:
    """Judges mutants in scratch copies under a folder, until all are judged or the time is up.

    file: where results are written, after every mutant.
    by: as a `Judge` takes it.
    """

    def __init__(
        self,
        folder: Path,
        machines: dict[str, Machine],
        results: Results,
        file: Path | None,
        by: str = QUICK,
    ) -> None:
        self._folder, self._machines, self._results, self._file = folder, machines, results, file
        self._by = by
        self._lock = Lock()
        self.failures: list[str] = []
        """Why mutants could not be judged."""

    def run(self, mutants: Sequence[Mutant], jobs: int, seconds: float, tell: Tell) -> None:
        """Judge mutants with so many jobs at once, and begin none after so many seconds."""
        end = monotonic() + seconds
        # Jobs take from both ends, so that they rarely need a copy of the same backend.
        waiting = deque(sorted(mutants, key=lambda each: each.backend))

        def work(job: int) -> None:
            with ExitStack() as closing:
                judges = Judges(self._folder / str(job), self._machines, self._results, self._by, closing)
                while monotonic() < end:
                    try:
                        mutant = waiting.pop() if job % 2 else waiting.popleft()
                    except IndexError:
                        return
                    self._run(mutant, judges, tell)

        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(work, range(jobs)))

    def _run(self, mutant: Mutant, judges: Judges, tell: Tell) -> None:
        try:
            verdict = judges.judge(mutant)
        except JudgeFailed as failed:
            self.failures.append(f"{mutant.identifier}: {failed}")
        else:
            self._keep(mutant, verdict, tell)

    def _keep(self, mutant: Mutant, verdict: Verdict, tell: Tell) -> None:
        with self._lock:
            self._results.keep(mutant.identifier, verdict)
            if self._file:
                self._results.write(self._file)
            tell(mutant, verdict)


class Judges:
    """The judges of one job: each has a copy of the clone for one backend and instruction set."""

    def __init__(
        self, folder: Path, machines: dict[str, Machine], results: Results, by: str, closing: ExitStack
    ) -> None:
        self._folder, self._machines, self._results, self._closing = folder, machines, results, closing
        self._by = by
        self._judges: dict[tuple[str, str | None], Judge] = {}

    def judge(self, mutant: Mutant) -> Verdict:
        """The verdict on a mutant: that of the first instruction set with which it is caught."""
        place = self._machines[mutant.backend].place(mutant.text, mutant.context)
        verdicts = (self._judge(mutant.backend, name).judge(mutant) for name in place.instruction_sets)
        told, seconds = Verdict(SURVIVED, "", 0.0), 0.0
        for told in verdicts:
            seconds += told.seconds
            if told.outcome != SURVIVED:
                break
        return replace(told, seconds=seconds)

    def _judge(self, backend: str, instruction_set: str | None) -> Judge:
        key = backend, instruction_set
        if key not in self._judges:
            folder = self._folder / "-".join(filter(None, key))
            scratch = Scratch(folder, backend, instruction_set, with_tests=self._by == TESTS)
            # Of tests nothing is taken from an earlier run: what they try depends on what they have seen in this copy.
            kept = self._results if self._by != TESTS else Results()
            times, unfit = kept.times, kept.unfit
            self._judges[key] = Judge(scratch, self._machines[backend], times, unfit, self._by)
            self._closing.callback(self._judges[key].close)
        return self._judges[key]
