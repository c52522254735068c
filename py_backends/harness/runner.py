"""Runs kernels of one backend on one target through its worker, and starts that one anew after a crash."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from py_backends._contract import KernelText, Target
from py_backends.harness.case import Case
from py_backends.harness.workers import Worker, WorkerFailed


@dataclass(frozen=True)
class Sample:
    """One sample of a row, in seconds; `kernel` is one launch until it has ended."""

    upload: float
    kernel: float
    download: float
    end_to_end: float
    drain: float
    """By how much the last download took longer than that after a single launch: 0 where waiting waits."""


@dataclass(frozen=True)
class Prepared:
    """What it took to prepare a kernel, in seconds, and what its rows should say."""

    seconds: float
    note: str | None


class Runner:
    """The way to a (backend, target): opens it, loads cases and prepares kernels when they are needed."""

    def __init__(self, backend: str, target: Target, threads: int) -> None:
        self.backend, self.target, self._threads = backend, target, threads
        self._worker: Worker | None = None
        self._loaded: set[int] = set()
        self._prepared: dict[tuple[str, str, str], Prepared] = {}
        self._cannot_open: WorkerFailed | None = None

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Prepared:
        """Compile a kernel, once; WorkerFailed where that fails."""
        key = (text.kernel, text.variant, dtype.name)
        worker = self._open()
        if key not in self._prepared:
            answer = self._ask(worker, "prepare", kernel=text.kernel, variant=text.variant, dtype=dtype.name)
            self._prepared[key] = Prepared(answer["seconds"], answer["note"])
        return self._prepared[key]

    def run(self, text: KernelText, case: Case) -> float:
        """One checked run that leaves its result in the case's output; the kernel's seconds."""
        worker = self._ready(text, case)
        seconds: float = self._ask(worker, "run", **self._arguments(text, case))["seconds"]
        return seconds

    def sample(self, text: KernelText, case: Case, warm_up: int, repetitions: int, *, poisoned: bool = False) -> Sample:
        """One timed sample, which leaves its last result in the case's output; see `Session.sample`."""
        worker = self._ready(text, case)
        return Sample(
            **self._ask(
                worker,
                "sample",
                warm_up=warm_up,
                repetitions=repetitions,
                poisoned=poisoned,
                **self._arguments(text, case),
            )
        )

    def unload(self, case: Case) -> None:
        """Let the worker give a case's memory back."""
        if self._worker and id(case) in self._loaded:
            self._loaded.remove(id(case))
            with contextlib.suppress(WorkerFailed):  # a worker that died on it is started anew when needed
                self._ask(self._worker, "unload", case=id(case))

    def close(self) -> None:
        """End the worker."""
        if self._worker:
            self._worker.close()
        self._forget()

    def _open(self) -> Worker:
        if self._cannot_open:
            raise self._cannot_open
        if self._worker is None:
            self._worker = Worker(self.target.environment)
            try:
                self._ask(self._worker, "open", backend=self.backend, target=self.target.name, threads=self._threads)
            except WorkerFailed as failed:
                self.close()
                self._cannot_open = failed
                raise
        return self._worker

    def _ready(self, text: KernelText, case: Case) -> Worker:
        self.prepare(text, case.dtype)
        worker = self._open()
        if id(case) not in self._loaded:
            self._ask(
                worker,
                "load",
                descriptors=case.descriptors,
                case=id(case),
                sizes=list(case.sizes),
                elements=case.elements,
                guard=case.guard,
                dtype=case.dtype.name,
            )
            self._loaded.add(id(case))
        return worker

    @staticmethod
    def _arguments(text: KernelText, case: Case) -> dict[str, Any]:
        return {"case": id(case), "kernel": text.kernel, "variant": text.variant, "dtype": case.dtype.name}

    def _ask(self, worker: Worker, do: str, **arguments: Any) -> dict[str, Any]:
        try:
            return worker.ask(do, **arguments)
        except WorkerFailed as failed:
            if failed.status not in ("unavailable", "skipped"):
                self.close()  # whatever it broke in its device must not reach another row
            raise

    def _forget(self) -> None:
        self._worker = None
        self._loaded.clear()
        self._prepared.clear()
