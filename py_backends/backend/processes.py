"""Python's processes: tasks of `concurrent.futures`, each in a process of its own, on memory that all of them map."""

from __future__ import annotations

import os
import platform
import subprocess
import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import RLock
from typing import Any

import numpy as np

from py_backends import contract, folders
from py_backends.contract import Array, Buffer, Launch, Target
from py_backends.errors import KernelFault
from py_backends.kernel_text import KernelText
from py_backends.number_formats import DTYPES
from py_backends.system import interpreter, lifetimes, surroundings
from py_backends.system.channel import Channel
from py_backends.system.shared_memory import SharedMemory, behind

_HOST = "py_backends.backend._process_host"
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
"""Of each process. A library's threads would not survive the fork that makes the processes."""


class Backend(contract.Backend):
    dtypes = DTYPES

    def targets(self) -> list[Target]:
        python = f"{platform.python_implementation()} {platform.python_version()}"
        return [Target("cpu", version=f"{python}, NumPy {np.__version__}")]

    def open(self, target: str, threads: int) -> contract.Device:
        return Device(threads)


@dataclass(frozen=True)
class _Shared:
    """A buffer: an array in memory that can be mapped.

    own: that memory, of which the array is a copy of the caller's; None where the caller's own can be mapped.
    """

    array: Array
    own: SharedMemory | None = None


class Device(contract.Device):
    """Runs kernels that divide their work among processes, each on a CPU of its own.

    They are started once. They map the caller's arrays if these lie in shared memory, as those of workers do, and else
    copies. A kernel has two parameters before its arrays: an executor, and its number of processes.
    """

    survives_fork = True  # a child starts processes of its own

    def __init__(self, processes: int) -> None:
        self._count = processes
        self._kernels: list[dict[str, str]] = []
        self._latest: _Host | None = None

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        named = {"kernel": text.kernel, "variant": text.variant}
        self._host().ask("prepare", **named)
        self._kernels.append(named)

        def launch(buffers: Sequence[_Shared], sizes: Sequence[int]) -> None:
            self._host().launch([buffer.array for buffer in buffers], sizes, **named)

        return launch

    def upload(self, array: Array) -> Buffer:
        placed = self.allocate(array)
        if placed.own:
            placed.array[...] = array
        return placed

    def allocate(self, array: Array) -> _Shared:
        if not array.nbytes or behind(array):
            return _Shared(array)
        memory = SharedMemory.create(array.nbytes)
        return _Shared(memory.bytes.view(array.dtype), memory)

    def wait(self) -> None:
        pass  # a launch returns when all tasks have ended

    def download(self, buffer: _Shared, array: Array) -> None:
        if buffer.own:
            array[...] = buffer.array

    def release(self, buffer: _Shared) -> None:
        if buffer.own:
            buffer.own.close()

    def _host(self) -> _Host:
        """That of the processes. A new one where the last has ended, is a parent's, or does not know all kernels."""
        known = os.environ.get(folders.VARIABLE)
        if self._latest is None or not self._latest.serves(known):
            host = _Host(self._count, known)
            for named in self._kernels:
                host.ask("prepare", **named)
            self._latest = host
        return self._latest


class _Host:
    """The process that starts the others, and runs kernels on them. It ends with this process, and they with it."""

    def __init__(self, count: int, known: str | None) -> None:
        """`known`: the folders of kernels that it finds."""
        self._known = known
        self._lock = RLock()
        self._process = os.getpid()
        self._files: weakref.WeakKeyDictionary[SharedMemory, _File] = weakref.WeakKeyDictionary()
        self._users: Counter[_File] = Counter()
        self._sent: set[_File] = set()
        self._channel, theirs = Channel.pair()
        self._started = lifetimes.in_lasting_thread(_start, theirs.fileno(), count).result()
        theirs.close()
        weakref.finalize(self, _end, self._channel, self._started, self._process)

    def serves(self, known: str | None) -> bool:
        """Whether it can be asked for kernels of these folders."""
        return self._process == os.getpid() and self._started.returncode is None and self._known == known

    def launch(self, arrays: Sequence[Array], sizes: Sequence[int], **named: str) -> None:
        """Run a kernel on arrays that can be mapped."""
        with self._lock:
            descriptors: list[int] = []
            try:
                placed = [self._place(array, descriptors) for array in arrays]
                gone = [file for file in self._sent if not self._users[file]]
                self._sent.difference_update(gone)
                for file in gone:
                    del self._users[file]
                self.ask("launch", descriptors, arrays=placed, sizes=list(sizes), gone=gone, **named)
            except BaseException:  # it may not have mapped all of them, and its tasks may still write to them
                self._kill()
                raise

    def ask(self, do: str, descriptors: Sequence[int] = (), /, **arguments: Any) -> None:
        """Have it do something. Raises the error that it tells, and KernelFault where processes have ended over it."""
        with self._lock:
            try:
                self._channel.send({"do": do, **arguments}, descriptors)
                received = self._channel.receive()
            except ConnectionError:
                received = None
            except BaseException:  # such as Ctrl-C: the answer would be taken for that of the next request
                self._kill()
                raise
            if received is None:
                self._kill()
                raise KernelFault(f"the processes have ended during '{do}'")
        answer, _ = received
        if answer:
            raise _ERRORS.get(answer["error"], RuntimeError)(answer["reason"])

    def _kill(self) -> None:
        self._started.kill()
        self._started.wait()

    def _place(self, array: Array, descriptors: list[int]) -> dict[str, Any]:
        """How to tell where an array lies. A descriptor of what has not been mapped there is added to the others."""
        told = {"dtype": array.dtype.name, "count": array.size, "writable": array.flags.writeable}
        if not array.nbytes:
            return told
        place = behind(array)
        assert place is not None, "upload and allocate have seen to that"
        file = self._file(place.memory)
        if file not in self._sent:
            descriptors.append(place.memory.descriptor)
            told["new"] = True
            self._sent.add(file)
        return {**told, "file": file, "first": place.first}

    def _file(self, memory: SharedMemory) -> _File:
        """What tells the file of a memory from others, as long as anybody has it."""
        if memory not in self._files:
            self._files[memory] = file = os.fstat(memory.descriptor).st_ino, memory.bytes.nbytes
            self._users[file] += 1
            weakref.finalize(memory, self._users.subtract, [file])
        return self._files[memory]


_File = tuple[int, int]
"""The number of a file in memory, and its bytes."""
_ERRORS: Mapping[str, type[Exception]] = {"MemoryError": MemoryError, "BrokenProcessPool": KernelFault}


def _start(channel: int, count: int) -> subprocess.Popen[bytes]:
    with interpreter.without_fork_handlers():
        return subprocess.Popen(
            interpreter.command(_HOST, str(channel), str(count), str(os.getpid())),
            env=surroundings.environment(_ONE_THREAD),
            pass_fds=[channel],
            stdin=subprocess.DEVNULL,
        )


def _end(channel: Channel, started: subprocess.Popen[bytes], process: int) -> None:
    """End the processes, which hold nothing that has to be put in order. A forked child only closes its end."""
    channel.close()
    if process != os.getpid():
        started.returncode = 0  # its parent waits for it
        return
    started.kill()
    started.wait()
