"""MPI: ranks, processes that share no memory, of one thread or several; the fastest backend computes in each."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from py_backends import contract
from py_backends.backend import _cpu_kernels
from py_backends.contract import Array, Buffer, Communication, Launch, Target
from py_backends.errors import MOST_THREADS, BackendUnavailable, WrongRequest
from py_backends.kernel_text import KernelText
from py_backends.number_formats import DTYPES
from py_backends.ranks.engine import engine
from py_backends.ranks.world import World

_TARGET = re.compile(r"([1-9]\d{0,4})x([1-9]\d{0,4})")


class Backend(contract.Backend):
    """Targets are ranks x threads of each: distributed memory, shared memory, and what is between."""

    dtypes = DTYPES

    def targets(self) -> list[Target]:
        return [_target(name) for name in _memory_models(len(os.sched_getaffinity(0)))]

    def target(self, name: str) -> Target | None:
        """Any number of ranks of any number of threads."""
        return _target(name) if _TARGET.fullmatch(name) else None

    def on_threads(self, target: str, threads: int) -> str | None:
        """One rank of all threads, or as many ranks as there can be of the target's threads, at most."""
        ranks, of_each = map(int, target.split("x"))
        if ranks == 1 < of_each or threads < of_each:
            return f"1x{threads}"
        return f"{threads // of_each}x{of_each}" if threads % of_each == 0 else None

    def open(self, target: str, threads: int) -> contract.Device:
        ranks, of_each = _ranks_and_threads(target)
        return Device(ranks, of_each, threads)


@dataclass
class _Kernel:
    """A prepared kernel, which is called as a launch."""

    device: Device
    text: KernelText
    dtype: np.dtype[Any]

    def __call__(self, buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
        self.device.run(self, buffers, sizes)

    @property
    def names(self) -> dict[str, Any]:
        return {"kernel": self.text.kernel, "variant": self.text.variant, "dtype": self.dtype.name}


class _Thread(threading.local):
    """What a calling thread was told, and did last."""

    def __init__(self) -> None:
        self.places: list[list[Any]] = []
        self.seconds: float | None = None
        self.communication: Communication | None = None


class Device(contract.Device):
    """Ranks that were started once, and hold the arrays that were brought to them in blocks."""

    def __init__(self, ranks: int, of_each: int, threads: int) -> None:
        self._world = World(ranks, of_each)
        self._thread = _Thread()
        self._by: set[str] = set()
        self.processes = self._world.processes
        self.obeys_threads = ranks * of_each == threads

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        kernel = _Kernel(self, text, dtype)
        self._by.update(self._world.ask("prepare", backend=text.backend, **kernel.names)["by"])
        self.note = f"each rank computes by {' or '.join(sorted(self._by))}"
        return kernel

    def arrange(self, launch: Launch, sizes: Sequence[int]) -> None:
        if isinstance(launch, _Kernel):
            shapes = launch.text.problem.shapes(sizes)
            self._thread.places = [[*launch.names.values(), list(sizes), at] for at in range(len(shapes))]

    def upload(self, array: Array) -> Buffer:
        number = self._world.new_number()
        self._world.ask("upload", array, buffer=number, dtype=array.dtype.name, place=self._place())
        return number

    def allocate(self, array: Array) -> Buffer:
        number = self._world.new_number()
        self._world.ask("allocate", buffer=number, dtype=array.dtype.name, place=self._place())
        return number

    def run(self, kernel: _Kernel, buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
        """Launch a kernel, and wait for it."""
        answer = self._world.ask("launch", buffers=list(buffers), sizes=list(sizes), **kernel.names)
        sent, communicating, seconds = (tuple(answer[name]) for name in ("sent", "communicating", "kernel"))
        self._thread.seconds = max(seconds)
        self._thread.communication = Communication(max(communicating), sent, communicating, seconds)

    def wait(self) -> None:
        pass  # a launch returns when the slowest rank has ended

    def event_seconds(self) -> float | None:
        return self._thread.seconds

    def communication(self) -> Communication | None:
        return self._thread.communication

    def download(self, buffer: Buffer, array: Array) -> None:
        self._world.ask("download", array, writable=True, buffer=buffer)

    def release(self, buffer: Buffer) -> None:
        self._world.release(buffer)

    def _place(self) -> list[Any] | None:
        """Of which kernel the next array is that comes, where that was told."""
        return self._thread.places.pop(0) if self._thread.places else None


def _target(name: str) -> Target:
    try:
        version = engine().name
    except BackendUnavailable as unavailable:
        return Target.missing(name, unavailable.reason, unavailable.fix)
    return Target(name, device=_cpu_kernels.cpu_name(), version=version)


def _memory_models(cpus: int) -> list[str]:
    """Ranks x threads: distributed memory, shared memory, and the one nearest to square between."""
    divisors = [ranks for ranks in range(1, cpus + 1) if cpus % ranks == 0]
    between = min(divisors, key=lambda ranks: (abs(ranks - cpus // ranks), -ranks))
    return list(dict.fromkeys(f"{ranks}x{cpus // ranks}" for ranks in (cpus, between, 1)))


def _ranks_and_threads(target: str) -> tuple[int, int]:
    named = _TARGET.fullmatch(target)
    if named is None:
        raise WrongRequest(f"a target of mpi is RANKSxTHREADS, such as 2x1, not {target!r}")
    ranks, threads = map(int, named.groups())
    if max(ranks, threads) > MOST_THREADS:
        raise WrongRequest(f"{target} is more than {MOST_THREADS} ranks or threads")
    return ranks, threads
