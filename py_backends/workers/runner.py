"""Runs kernels of one backend on one target through its worker, and restarts the worker after a crash."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from py_backends.contract import Target
from py_backends.kernel_text import KernelText
from py_backends.workers.arena import Arena
from py_backends.workers.process import Worker, WorkerFailed


@dataclass(frozen=True)
class Sample:
    """One sample of a row, in seconds.

    kernel: one launch until it has ended: by the device's events if it has them, else by the clock.
    clock: the same by the clock around launch and wait, if `kernel` is by events.
    together: all launches that `kernel` is the median of, by that clock.
    drain: the last download's time minus that of the download after a single launch. It is near 0 if the wait waits.
    communicating: the part of `kernel` in which ranks communicate; None without ranks.
    bytes_sent: by each rank in that time.
    communicating_by_rank, kernel_by_rank: as in `Communication` of the contract.
    """

    upload: float
    kernel: float
    download: float
    end_to_end: float
    drain: float
    clock: float | None = None
    together: float = 0.0
    release: float = 0.0
    communicating: float | None = None
    bytes_sent: Sequence[int] = ()
    communicating_by_rank: Sequence[float] = ()
    kernel_by_rank: Sequence[float] = ()

    @property
    def on_the_host(self) -> float:
        """The host's seconds for one launch and its wait. This is the cost of each repetition."""
        return self.kernel if self.clock is None else self.clock


@dataclass(frozen=True)
class Prepared:
    """The seconds to prepare a kernel, and facts about its device.

    seconds: to compile it, or to look it up. Where it is compiled for sizes, `prepare` adds those for a small case.
    note: a sentence for its rows.
    on_cpu, obeys_threads, cache_bytes, deterministic: as in `Device`.
    first_launch: seconds of compilation and the first launch in its process, at a small shape.
    kept: whether all of it that is compiled at run time was compiled by an earlier run.
    """

    seconds: float
    note: str | None
    on_cpu: bool = True
    obeys_threads: bool = True
    cache_bytes: int = 0
    deterministic: bool = False
    first_launch: float | None = None
    kept: bool = False


class Runner:
    """Sends requests for one backend and target to a worker. It opens, loads and prepares what a request needs.

    cold: whether samples begin with empty caches.
    how: further arguments of `Worker`.
    ended: how workers of it ended that another one replaced, or will when it is needed.
    """

    def __init__(self, backend: str, target: Target, threads: int, *, cold: bool = False, **how: Any) -> None:
        self.backend, self.target, self._threads, self.cold = backend, target, threads, cold
        self._how = how
        self._worker: Worker | None = None
        self._loaded: dict[int, int] = {}
        self._prepared: dict[tuple[str, str, str], Prepared] = {}
        self._cannot_open: WorkerFailed | None = None
        self._killed = False
        self.ended: list[str] = []

    def prepare(self, text: KernelText, case: Arena) -> Prepared:
        """Compile a kernel and launch it on a small case, both only once. Raises WorkerFailed if that fails."""
        prepared = self.compile(text, case.dtype)
        if prepared.first_launch is None:
            worker = self._ready(text, case)
            answer = self._ask(worker, "first_launch", **_arguments(text, case))
            seconds = prepared.seconds + answer["placing"]
            prepared = replace(prepared, seconds=seconds, first_launch=seconds + answer["seconds"])
            self._prepared[_key(text, case.dtype)] = prepared
        return prepared

    def ceiling(self, dtype: str | None) -> float | None:
        """A ceiling of its device: `Device.peak` of a dtype, or `Device.bandwidth` if the dtype is None."""
        rate: float | None = self._ask(self._open(), "ceiling", dtype=dtype)["rate"]
        return rate

    def run(self, text: KernelText, case: Arena) -> str | None:
        """Run a kernel once for a check. The results are in the case's outputs. Returns any other fault, or None."""
        worker = self._ready(text, case)
        wrong: str | None = self._ask(worker, "run", **_arguments(text, case))["wrong"]
        return wrong

    def remark(self, text: KernelText, case: Arena) -> str | None:
        """What its device has to say of a kernel whose samples are all taken, or None: see `Device.remark`.

        Raises WorkerFailed for a wrong result. On inputs of the device's own, all other failures are no fault.
        """
        ended = len(self.ended)
        try:
            remark: str | None = self._ask(self._ready(text, case), "remark", **_arguments(text, case))["remark"]
        except WorkerFailed as failed:
            if failed.status == "mismatch":
                raise
            del self.ended[ended:]
            return None
        return remark

    def compile(self, text: KernelText, dtype: np.dtype[Any]) -> Prepared:
        """Compile a kernel, only once, and launch nothing. Raises WorkerFailed if that fails."""
        worker, key = self._open(), _key(text, dtype)
        if key not in self._prepared:
            answer = self._ask(worker, "prepare", kernel=text.kernel, variant=text.variant, dtype=dtype.name)
            self._prepared[key] = Prepared(**answer)
        return self._prepared[key]

    def whole_call(self, text: KernelText, case: Arena) -> float:
        """Seconds of one call from upload to release, for estimates. Caches are left as they are."""
        return self._sample(text, case, warm_up=0, calls=1, repetitions=0, poisoned=False, cold=False).end_to_end

    def sample(
        self,
        text: KernelText,
        case: Arena,
        warm_up: int,
        repetitions: int,
        *,
        calls: int = 1,
        poisoned: bool = False,
        statement: str | None = None,
    ) -> Sample:
        """Take one timed sample, which leaves its last results in the case's outputs: see `Session.sample`.

        statement: a Python statement to time in place of the kernel, on copies of the arrays. Only a poisoned sample
            leaves its results in the outputs.

        A cold sample is a single launch whatever the counts say: each launch would need its own flush. A poisoned one
        is a single call: the result of an earlier call would hide the NaN.
        """
        if self.cold:
            warm_up = repetitions = 0
        if self.cold or poisoned:
            calls = 1
        how = {"warm_up": warm_up, "repetitions": repetitions, "poisoned": poisoned}
        if statement is None:
            return self._sample(text, case, calls=calls, cold=self.cold, **how)
        how["repetitions"] = max(1, repetitions)
        worker = self._ready(text, case)
        seconds = self._ask(worker, "sample_statement", statement=statement, **how, **_arguments(text, case))["seconds"]
        return Sample(upload=0.0, kernel=seconds, download=0.0, end_to_end=seconds, drain=0.0)

    def _sample(self, text: KernelText, case: Arena, **how: Any) -> Sample:
        worker = self._ready(text, case)
        return Sample(**self._ask(worker, "sample", **how, **_arguments(text, case)))

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Send the worker a further request, which its module defines."""
        return self._ask(self._open(), do, **arguments)

    def unload(self, arena: Arena) -> None:
        """Make the worker release an arena's memory."""
        if self._worker and id(arena) in self._loaded:
            del self._loaded[id(arena)]
            with contextlib.suppress(WorkerFailed):  # a dead worker is replaced when needed
                self._ask(self._worker, "unload", arena=id(arena))

    def kill(self) -> None:
        """End the worker for good. Another thread than the one that waits for it may call this."""
        self._killed = True
        if worker := self._worker:
            worker.kill()

    def close(self) -> None:
        """End the worker."""
        if self._worker:
            self._worker.close()
        self._worker = None
        self._loaded.clear()
        self._prepared.clear()

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

    def _ready(self, text: KernelText, case: Arena) -> Worker:
        self.compile(text, case.dtype)
        worker = self._open()
        if self._loaded.get(id(case)) != case.moves:
            memory = {"descriptors": case.descriptors, "capacities": case.capacities}
            self._ask(worker, "load", arena=id(case), outputs=len(case.outputs), **memory)
            self._loaded[id(case)] = case.moves
        return worker

    def _ask(self, worker: Worker, do: str, **arguments: Any) -> dict[str, Any]:
        if self._killed:
            raise WorkerFailed("skipped", "interrupted")
        try:
            return worker.ask(do, **arguments)
        except WorkerFailed as failed:
            if failed.status in ("crashed", "timeout") and not self._killed:
                self.ended.append(failed.reason)
            if failed.status not in ("unavailable", "skipped"):
                self.close()  # a fault of this row must not affect another one
            raise


def _key(text: KernelText, dtype: np.dtype[Any]) -> tuple[str, str, str]:
    return text.kernel, text.variant, dtype.name


def _arguments(text: KernelText, case: Arena) -> dict[str, Any]:
    """The arguments of a worker's request: the kernel, and the place of the case in memory."""
    kernel, variant, dtype = _key(text, case.dtype)
    where = {"arena": id(case), "sizes": list(case.sizes), "spans": case.spans}
    return {"kernel": kernel, "variant": variant, "dtype": dtype, **where}
