"""Ranks as a device: an upload scatters an array over them, a launch runs on all of them."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from py_backends import contract
from py_backends.contract import Adopted, Array, Buffer, Communication, Launch
from py_backends.kernel_text import KernelText
from py_backends.ranks.array import DistributedArray, Kept
from py_backends.ranks.world import RanksEnded, World

_starting = threading.RLock()
"""Held by the thread that starts ranks anew, which is one at a time."""


def _renew() -> None:
    """A new lock in a forked process, since a thread that is not there may have held the old one."""
    global _starting  # noqa: PLW0603  # there is one a process
    _starting = threading.RLock()


os.register_at_fork(after_in_child=_renew)


@dataclass
class _Kernel:
    """A prepared kernel. Calling it launches it."""

    device: Device
    text: KernelText
    dtype: np.dtype[Any]

    def __call__(self, buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
        self.device.run(self, buffers, sizes)

    def prepare(self, world: World) -> list[str]:
        """Prepare it on ranks. Returns the backends and targets that these compute with."""
        by: list[str] = world.ask("prepare", backend=self.text.backend, **self.names)["by"]
        return by

    @property
    def names(self) -> dict[str, Any]:
        return {"kernel": self.text.kernel, "variant": self.text.variant, "dtype": self.dtype.name}


class _Thread(threading.local):
    """What a calling thread launched last."""

    def __init__(self) -> None:
        self.seconds: float | None = None
        self.communication: Communication | None = None


class Device(contract.Device):
    """Ranks that are started once, and hold arrays in blocks."""

    survives_fork = True  # a child starts ranks of its own

    def __init__(self, ranks: int, of_each: int, threads: int) -> None:
        self._shape = ranks, of_each
        self._latest = World(*self._shape)
        self._kernels: list[_Kernel] = []
        self._thread = _Thread()
        self._by: set[str] = set()
        self.obeys_threads = ranks * of_each == threads
        other = f"ranks x threads is {ranks * of_each} where {threads} was asked for"
        self._notes = [] if self.obeys_threads else [other]
        self.on_cpu = self._latest.machines == 1  # the ceilings of one machine are none for several

    @property
    def processes(self) -> Sequence[int]:  # type: ignore[override]  # others come where these have ended
        return self._latest.processes

    @property
    def world(self) -> World:
        """The ranks.

        They are new if the last ones have ended, or belong to the process that this one was forked from.
        """
        if not self._latest.alive:
            with _starting:
                if not self._latest.alive:
                    world = World(*self._shape)
                    for kernel in self._kernels:
                        kernel.prepare(world)
                    self._latest = world
        return self._latest

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        kernel = _Kernel(self, text, dtype)
        self._by.update(kernel.prepare(self.world))
        self._kernels.append(kernel)
        self.note = "; ".join([*self._notes, f"each rank computes by {' or '.join(sorted(self._by))}"])
        return kernel

    def place_one(self, launch: Launch, sizes: Sequence[int], at: int, array: Array, *, filled: bool) -> int:
        assert isinstance(launch, _Kernel)
        where = [*launch.names.values(), list(sizes), at]
        if filled:
            return self._made("upload", array, dtype=array.dtype.name, place=where)
        return self._made("allocate", dtype=array.dtype.name, place=where)

    def upload(self, array: Array) -> int:
        """For no kernel yet."""
        return self._made("upload", array, dtype=array.dtype.name, place=None)

    def allocate(self, array: Array) -> int:
        return self._made("allocate", dtype=array.dtype.name, place=None)

    def run(self, kernel: _Kernel, buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
        """Launch a kernel, and wait for it."""
        answer = self._with(*buffers).ask("launch", buffers=list(buffers), sizes=list(sizes), **kernel.names)
        figures = (tuple(answer[name]) for name in ("sent", "communicating", "kernel", "held"))
        sent, communicating, seconds, held = figures
        self._thread.seconds = max(seconds)
        self._thread.communication = Communication(max(communicating), sent, communicating, seconds, held)

    def wait(self) -> None:
        pass  # a launch returns when the slowest rank is done

    def event_seconds(self) -> float | None:
        return self._thread.seconds

    def communication(self) -> Communication | None:
        return self._thread.communication

    def download(self, buffer: Buffer, array: Array) -> None:
        self._with(buffer).ask("download", array, writable=True, buffer=buffer)

    def release(self, buffer: Buffer) -> None:
        if not isinstance(buffer, Kept):
            self._latest.release(buffer)

    def adopt(self, array: Any) -> Adopted | None:
        if not isinstance(array, DistributedArray):
            return None
        if array.device is not self:
            raise TypeError("it lies on other ranks, of another target or number of threads: get() copies it to NumPy")
        return array.adopted()

    def new(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> DistributedArray:
        return DistributedArray(self, self.allocate(np.empty(0, dtype)), shape, dtype)

    def _made(self, do: str, array: Array | None = None, **how: Any) -> int:
        """A new buffer. After an exception it is released, since nobody knows its number."""
        world = self.world
        number = world.new_number()
        try:
            world.ask(do, array, buffer=number, **how)
        except BaseException:
            world.release(number)
            raise
        return number

    def _with(self, *buffers: int) -> World:
        """The ranks that hold buffers. RanksEnded if these have ended."""
        world = self._latest
        if not (world.alive and all(map(world.has, buffers))):
            raise RanksEnded("the ranks on which an array lay have ended, and it with them")
        return world
