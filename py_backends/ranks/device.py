"""Ranks as a device: what is brought to them is scattered, what is computed is asked of all of them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from py_backends import contract
from py_backends.contract import Adopted, Array, Buffer, Communication, Launch
from py_backends.kernel_text import KernelText
from py_backends.ranks.array import DistributedArray, Kept
from py_backends.ranks.world import World


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

    def arrange(self, launch: Launch, sizes: Sequence[int], coming: Sequence[int]) -> None:
        if isinstance(launch, _Kernel):
            self._thread.places = [[*launch.names.values(), list(sizes), at] for at in coming]

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
        if not isinstance(buffer, Kept):
            self._world.release(buffer)

    def adopt(self, array: Any) -> Adopted | None:
        if not isinstance(array, DistributedArray):
            return None
        if array.device is not self:
            raise TypeError("it lies on other ranks, of another target: copy it first: a.get()")
        return array.adopted()

    def new(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> DistributedArray:
        number = self._world.new_number()
        self._world.ask("allocate", buffer=number, dtype=dtype.name, place=None)
        return DistributedArray(self, number, shape, dtype)

    def _place(self) -> list[Any] | None:
        """Of which kernel the next array is that comes, where that was told."""
        return self._thread.places.pop(0) if self._thread.places else None
