"""Runs kernels of one backend on one target through its worker, and restarts the worker after a crash."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from py_backends.contract import Target
from py_backends.harness.arena import Arena
from py_backends.harness.workers import Worker, WorkerFailed
from py_backends.kernel_text import KernelText


@dataclass(frozen=True)
class Sample:
    """One sample of a row, in seconds.

    kernel: one launch until it has ended: by the device's events where it has them, else by the clock.
    clock: the same by the clock around launch and wait, where `kernel` is by events.
    drain: by how much the last download took longer than that after a single launch: 0 where waiting waits.
    communicating: what of `kernel` ranks spent on telling one another, None without ranks.
    bytes_sent: in that time, by each of them.
    communicating_by_rank, kernel_by_rank: of each rank, as `Communication` of the contract has them.
    """

    upload: float
    kernel: float
    download: float
    end_to_end: float
    drain: float
    clock: float | None = None
    release: float = 0.0
    communicating: float | None = None
    bytes_sent: Sequence[int] = ()
    communicating_by_rank: Sequence[float] = ()
    kernel_by_rank: Sequence[float] = ()

    @property
    def on_the_host(self) -> float:
        """The host's seconds for one launch and the wait for it: the cost of repeating it."""
        return self.kernel if self.clock is None else self.clock


@dataclass(frozen=True)
class Prepared:
    """The seconds to prepare a kernel, and facts about its device.

    seconds: of compiling it, or looking it up.
    note: what its rows should say.
    on_cpu, obeys_threads, cache_bytes, deterministic: as of the `Device`.
    first_launch: seconds from the request to compile until the first launch in its process had ended, at a small shape.
    """

    seconds: float
    note: str | None
    on_cpu: bool = True
    obeys_threads: bool = True
    cache_bytes: int = 0
    deterministic: bool = False
    first_launch: float | None = None


class Runner:
    """The way to a (backend, target): opens it, loads cases and prepares kernels when they are needed.

    cold: whether samples begin with empty caches.
    how: of its workers, as `Worker` takes it.
    """

    def __init__(self, backend: str, target: Target, threads: int, *, cold: bool = False, **how: Any) -> None:
        self.backend, self.target, self._threads, self.cold = backend, target, threads, cold
        self._how = how
        self._worker: Worker | None = None
        self._loaded: set[int] = set()
        self._prepared: dict[tuple[str, str, str], Prepared] = {}
        self._cannot_open: WorkerFailed | None = None
        self._killed = False

    def prepare(self, text: KernelText, case: Arena) -> Prepared:
        """Compile a kernel and launch it for the first time, on a small case, once; WorkerFailed where that fails."""
        prepared = self._compile(text, case.dtype)
        if prepared.first_launch is None:
            worker = self._ready(text, case)
            launched: float = self._ask(worker, "first_launch", **_arguments(text, case))["seconds"]
            prepared = replace(prepared, first_launch=prepared.seconds + launched)
            self._prepared[_key(text, case.dtype)] = prepared
        return prepared

    def ceiling(self, dtype: str | None) -> float | None:
        """Its device's ceiling: `Device.peak` of a dtype, or `Device.bandwidth` if the dtype is None."""
        rate: float | None = self._ask(self._open(), "ceiling", dtype=dtype)["rate"]
        return rate

    def run(self, text: KernelText, case: Arena) -> str | None:
        """One checked run, which leaves its result in the case's output. Returns another fault of the run, or None."""
        worker = self._ready(text, case)
        wrong: str | None = self._ask(worker, "run", **_arguments(text, case))["wrong"]
        return wrong

    def compile(self, text: KernelText, dtype: np.dtype[Any]) -> Prepared:
        """Compile a kernel, once, and launch nothing; WorkerFailed where that fails."""
        return self._compile(text, dtype)

    def whole_call(self, text: KernelText, case: Arena) -> float:
        """Seconds of one call from upload to release, with the caches as they are: for estimates."""
        return self._sample(text, case, warm_up=0, repetitions=0, poisoned=False, cold=False).end_to_end

    def sample(
        self,
        text: KernelText,
        case: Arena,
        warm_up: int,
        repetitions: int,
        *,
        poisoned: bool = False,
        statement: str | None = None,
    ) -> Sample:
        """One timed sample, which leaves its last result in the case's output; see `Session.sample`.

        Of a Python statement, where there is one, on copies of the arrays: only a poisoned one leaves its result.
        A cold one is a single launch, whatever `warm_up` and `repetitions` say: each would need a flush of its own.
        """
        if self.cold:
            warm_up = repetitions = 0
        if statement is None:
            return self._sample(text, case, warm_up=warm_up, repetitions=repetitions, poisoned=poisoned, cold=self.cold)
        how = {"warm_up": warm_up, "repetitions": max(1, repetitions), "poisoned": poisoned}
        worker = self._ready(text, case)
        seconds = self._ask(worker, "sample_statement", statement=statement, **how, **_arguments(text, case))["seconds"]
        return Sample(upload=0.0, kernel=seconds, download=0.0, end_to_end=seconds, drain=0.0)

    def _sample(self, text: KernelText, case: Arena, **how: Any) -> Sample:
        worker = self._ready(text, case)
        return Sample(**self._ask(worker, "sample", **how, **_arguments(text, case)))

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Send the worker a request of its own module, beyond those here."""
        return self._ask(self._open(), do, **arguments)

    def unload(self, arena: Arena) -> None:
        """Let the worker give an arena's memory back."""
        if self._worker and id(arena) in self._loaded:
            self._loaded.remove(id(arena))
            with contextlib.suppress(WorkerFailed):  # a worker that died on it is started anew when needed
                self._ask(self._worker, "unload", arena=id(arena))

    def kill(self) -> None:
        """End the worker for good, from another thread than the one that waits for it."""
        self._killed = True
        if worker := self._worker:
            worker.kill()

    def close(self) -> None:
        """End the worker."""
        if self._worker:
            self._worker.close()
        self._forget()

    def _open(self) -> Worker:
        if self._cannot_open:
            raise self._cannot_open
        if self._worker is None:
            self._worker = Worker(self.target.environment, **self._how)
            try:
                self._ask(self._worker, "open", backend=self.backend, target=self.target.name, threads=self._threads)
            except WorkerFailed as failed:
                self.close()
                self._cannot_open = failed
                raise
        return self._worker

    def _compile(self, text: KernelText, dtype: np.dtype[Any]) -> Prepared:
        worker, key = self._open(), _key(text, dtype)
        if key not in self._prepared:
            answer = self._ask(worker, "prepare", kernel=text.kernel, variant=text.variant, dtype=dtype.name)
            self._prepared[key] = Prepared(**answer)
        return self._prepared[key]

    def _ready(self, text: KernelText, case: Arena) -> Worker:
        self._compile(text, case.dtype)
        worker = self._open()
        if id(case) not in self._loaded:
            memory = {"descriptors": case.descriptors, "capacities": case.capacities}
            self._ask(worker, "load", arena=id(case), **memory)
            self._loaded.add(id(case))
        return worker

    def _ask(self, worker: Worker, do: str, **arguments: Any) -> dict[str, Any]:
        if self._killed:
            raise WorkerFailed("skipped", "interrupted")
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


def _key(text: KernelText, dtype: np.dtype[Any]) -> tuple[str, str, str]:
    return text.kernel, text.variant, dtype.name


def _arguments(text: KernelText, case: Arena) -> dict[str, Any]:
    """The arguments of a worker's request: the kernel, and where the case lies in memory."""
    kernel, variant, dtype = _key(text, case.dtype)
    where = {"arena": id(case), "sizes": list(case.sizes), "spans": case.spans}
    return {"kernel": kernel, "variant": variant, "dtype": dtype, **where}
