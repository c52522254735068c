"""Starts processes by `concurrent.futures` and runs kernels on them, for the process that has started it.

    python -m py_backends.backend._process_host CHANNEL COUNT PARENT

It has one thread when it forks, which a user's process need not have, and ends with the one that it works for. Tasks
get arrays by their places in memory that all processes map. It has no name, only descriptors: nothing is left behind.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import cycle, islice
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import Any

import numpy as np

from py_backends import registry
from py_backends.contract import Array
from py_backends.kernel_text import KernelText
from py_backends.system import lifetimes
from py_backends.system.channel import Channel
from py_backends.system.shared_memory import SharedMemory, behind

_BACKEND = "processes"


class SharedArray(np.ndarray[Any, np.dtype[Any]]):
    """An array in memory that other processes can map. They get it by its place there, and not by its elements."""

    def __reduce__(self) -> str | tuple[Any, ...]:
        place = behind(self)
        if place is None:  # a result of NumPy's in memory of this process alone
            return super().__reduce__()
        if not self.flags.c_contiguous:
            raise TypeError("a task takes whole arrays, or whole rows of them: tell it which part by a slice")
        memory, first = place
        file = os.getpid(), memory.descriptor, os.fstat(memory.descriptor).st_ino, memory.bytes.nbytes
        return _mapped, (file, first, self.shape, self.dtype, self.flags.writeable)


_File = tuple[int, int, int, int]
"""A process, its descriptor of a file, the file's own number, and its bytes."""
_maps: dict[_File, SharedMemory] = {}


def _mapped(file: _File, first: int, shape: tuple[int, ...], dtype: np.dtype[Any], writable: bool) -> Array:
    """The same array in another process, which keeps the map for the next task."""
    if file not in _maps:
        for gone in [each for each in _maps if not _is_open(each)]:
            _maps.pop(gone).close()
        process, descriptor, _, count = file
        opened = os.open(f"/proc/{process}/fd/{descriptor}", os.O_RDWR)
        _maps[file] = SharedMemory.attach(opened, count, writable=True)
    count = math.prod(shape) * dtype.itemsize
    array = _maps[file].bytes[first : first + count].view(dtype).reshape(shape)
    array.flags.writeable = writable
    return array


def _is_open(file: _File) -> bool:
    """Whether the process still has it: a descriptor may have become that of another file."""
    process, descriptor, number, _ = file
    try:
        return Path(f"/proc/{process}/fd/{descriptor}").stat().st_ino == number
    except OSError:
        return False


class Executor(ProcessPoolExecutor):
    """Processes, each on a CPU of its own, and memory that they share."""

    def __init__(self, count: int, memories: dict[Any, SharedMemory]) -> None:
        """`memories`: the host's, which its children do not keep."""
        context = multiprocessing.get_context("fork")
        cpus = context.SimpleQueue()
        for cpu in islice(cycle(sorted(os.sched_getaffinity(0))), count):
            cpus.put(cpu)
        super().__init__(count, context, _begin, (os.getpid(), cpus, memories))
        self._lent: list[SharedMemory] = []
        self._free: list[SharedMemory] = []

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> SharedArray:
        """An array that all processes see until the kernel returns, contents undefined."""
        count = math.prod(shape) * dtype.itemsize
        memory = next((each for each in self._free if each.bytes.nbytes == max(1, count)), None)
        if memory is None:
            memory = SharedMemory.create(max(1, count))
        else:
            self._free.remove(memory)
        self._lent.append(memory)
        return memory.bytes[:count].view(dtype).reshape(shape).view(SharedArray)

    def take_back(self) -> None:
        """Keep what a kernel was lent for the next one, whose processes have mapped it already."""
        self._free, self._lent = self._lent, []


def _begin(host: int, cpus: SimpleQueue[int], memories: dict[Any, SharedMemory]) -> None:
    """Begin a process: it ends with the host, whatever ends that."""
    lifetimes.end_with_parent()
    if os.getppid() != host:
        os._exit(1)
    cpu = cpus.get()
    with contextlib.suppress(OSError):  # a CPU that this process may no longer use
        # Linux would often wake two of them on one CPU, and leave them there for longer than a task takes.
        os.sched_setaffinity(0, {cpu})
    for memory in memories.values():
        memory.close()
    memories.clear()


class Host:
    """The kernels, the memory and the processes of one device."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._texts: dict[tuple[str, str], KernelText] = {}
        self._memories: dict[tuple[int, ...], SharedMemory] = {}
        self._executor: Executor | None = None

    def prepare(self, descriptors: Sequence[int], kernel: str, variant: str) -> None:
        """Import a kernel. Processes that have been forked before do not know it, so others take their places."""
        text = registry.kernel_texts(kernel, _BACKEND)[variant]
        getattr(text.load(), kernel)
        self._texts[kernel, variant] = text
        self._end_processes()

    def launch(
        self,
        descriptors: Sequence[int],
        kernel: str,
        variant: str,
        arrays: Sequence[Mapping[str, Any]],
        sizes: Sequence[int],
        gone: Sequence[Sequence[int]],
    ) -> None:
        """Run a kernel. gone: files that nobody needs any more."""
        for file in gone:
            self._memories.pop(tuple(file)).close()
        if self._executor is None:
            self._executor = Executor(self._count, self._memories)
            self._executor.submit(int).result()  # all processes start with the first task, before there are new maps
        came, text = iter(descriptors), self._texts[kernel, variant]
        buffers = [self._array(came, **array) for array in arrays]
        getattr(text.load(), kernel)(self._executor, self._count, *text.shaped(buffers, sizes), *sizes)
        self._executor.take_back()

    def _array(
        self,
        came: Iterator[int],
        dtype: str,
        count: int,
        *,
        writable: bool,
        file: Sequence[int] = (),
        first: int = 0,
        new: bool = False,
    ) -> Array:
        """An array of the device's process, in memory that came with the request or an earlier one."""
        element = np.dtype(dtype)
        if not file:
            return np.empty(0, element)
        if new:
            self._memories[tuple(file)] = SharedMemory.attach(next(came), file[1], writable=True)
        memory = self._memories[tuple(file)].bytes[first : first + count * element.itemsize]
        array = memory.view(element).view(SharedArray)
        array.flags.writeable = writable
        return array

    def _end_processes(self) -> None:
        if self._executor:
            self._executor.shutdown()
        self._executor = None


def main() -> None:
    """Serve requests until the other end of the channel is closed."""
    lifetimes.end_with_parent()  # else a kernel that never ends would outlive it, and so would what is stopped
    if os.getppid() != int(sys.argv[3]):
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the client decides what Ctrl-C ends
    np.seterr(all="ignore")  # infinities are valid results here
    channel, host = Channel.from_descriptor(int(sys.argv[1])), Host(int(sys.argv[2]))
    while (received := channel.receive()) is not None:
        request, descriptors = received
        answer = {}
        try:
            getattr(host, request.pop("do"))(descriptors, **request)
        except Exception as error:  # noqa: BLE001  # any error of a kernel is told to its caller
            answer = {"error": type(error).__name__, "reason": f"{type(error).__name__}: {error}"}
        channel.send(answer)


if __name__ == "__main__":
    main()
