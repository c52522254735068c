"""Runs many mutants, several at a time, and keeps what came out of each as soon as it is known."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Lock
from time import monotonic

from .judge import Judge, JudgeFailed, Verdict
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
    """

    def __init__(self, folder: Path, machines: dict[str, Machine], results: Results, file: Path | None) -> None:
        self._folder, self._machines, self._results, self._file = folder, machines, results, file
        self._lock = Lock()
        self.failures: list[str] = []
        """Why mutants could not be judged."""

    def run(self, mutants: Sequence[Mutant], jobs: int, seconds: float, tell: Tell) -> None:
        """Judge mutants with so many jobs at once, and begin none after so many seconds."""
        end = monotonic() + seconds
        # Jobs take from both ends, so that they rarely need a copy of the same backend.
        waiting = deque(sorted(mutants, key=lambda each: (each.backend, self._instruction_set(each) or "")))

        def work(job: int) -> None:
            with ExitStack() as closing:
                judges: dict[tuple[str, str | None], Judge] = {}
                while monotonic() < end:
                    try:
                        mutant = waiting.pop() if job % 2 else waiting.popleft()
                    except IndexError:
                        return
                    self._run(mutant, job, judges, closing, tell)

        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(work, range(jobs)))

    def _run(
        self, mutant: Mutant, job: int, judges: dict[tuple[str, str | None], Judge], closing: ExitStack, tell: Tell
    ) -> None:
        backend, instruction_set = key = mutant.backend, self._instruction_set(mutant)
        if key not in judges:
            folder = self._folder / str(job) / "-".join(filter(None, key))
            scratch = Scratch(folder, backend, instruction_set)
            judges[key] = Judge(scratch, self._machines[backend], self._results.times)
            closing.callback(judges[key].close)
        try:
            verdict = judges[key].judge(mutant)
        except JudgeFailed as failed:
            self.failures.append(f"{mutant.identifier}: {failed}")
        else:
            self._keep(mutant, verdict, tell)

    def _instruction_set(self, mutant: Mutant) -> str | None:
        return self._machines[mutant.backend].place(mutant.text, mutant.context).instruction_set

    def _keep(self, mutant: Mutant, verdict: Verdict, tell: Tell) -> None:
        with self._lock:
            self._results.keep(mutant.identifier, verdict)
            if self._file:
                self._results.write(self._file)
            tell(mutant, verdict)
