"""A contender's process, from outside: started when it is first needed, stopped between its turns."""

from __future__ import annotations

from contextlib import suppress

from benchmarks.goals import Contender
from py_backends._contract import Target
from py_backends.harness import machine
from py_backends.harness.case import Case
from py_backends.harness.workers import Worker, WorkerFailed

_MODULE = "benchmarks.worker"
_BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""What limits NumPy's BLAS, which is called directly and has no parameter for it."""


class Process:
    """The way to a contender. Every method may raise WorkerFailed."""

    def __init__(self, contender: Contender, target: Target, threads: int | None) -> None:
        """`target` is where it runs; `threads` as many as it was asked for, None for all."""
        asked = contender.threads or threads
        limits = dict.fromkeys(_BLAS_THREADS, str(asked)) if contender.way == "library" and asked else {}
        self._worker = Worker({**target.environment, **limits, **dict(contender.environment)}, _MODULE)
        self._loaded: set[int] = set()
        self._worker.ask(
            "become",
            way=contender.way,
            backend=contender.backend,
            named=contender.target,
            target=target.name,
            threads=asked,
            all_threads=machine.cpus(),
        )

    def check(self, case: Case) -> str | None:
        """One call, judged by the case's reference: what is wrong with its result, None where nothing is."""
        case.poison()
        self._load(case)
        return case.judge().reason if self._worker.ask("check", case=id(case))["computes"] else None

    def sample(self, case: Case, warm_up: int, repetitions: int) -> float:
        """Seconds of one call."""
        self._load(case)
        seconds: float = self._worker.ask("sample", case=id(case), warm_up=warm_up, repetitions=repetitions)["seconds"]
        return seconds

    def unload(self, case: Case) -> None:
        """Give a case's memory back."""
        if id(case) in self._loaded:
            self._loaded.remove(id(case))
            with suppress(WorkerFailed):  # it may have died on it
                self._worker.ask("unload", case=id(case))

    def close(self) -> None:
        """End the process."""
        self._worker.close()

    def _load(self, case: Case) -> None:
        if id(case) in self._loaded:
            return
        self._worker.ask(
            "load",
            descriptors=case.descriptors,
            case=id(case),
            kernel=case.problem.name,
            sizes=list(case.sizes),
            capacities=case.capacities,
            spans=case.spans,
            dtype=case.dtype.name,
        )
        self._loaded.add(id(case))
