"""The contract: what a kernel and a backend are, in the project and in plug-ins.

A *kernel* is described by a `Problem` (kernels/KERNEL/problem.py): its shapes, its inputs, the right answer and
the error bound. Its source for one backend is a `KernelText`.

A *backend* (py_backends/backend/NAME.py) lists its `Target`s and opens one as a `Device`. A device offers the
five steps of offloading: prepare, upload, launch (and wait), download, release. The harness and the
Python functions know backends by these classes only.

Plug-ins of other packages use the same classes. The names in `__all__` stay as they are within a major version.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from py_backends.errors import BackendUnavailable, KernelFault
from py_backends.kernel_text import KernelText, Stages, WorkItems
from py_backends.problem import Ladder, Problem, Rung
from py_backends.reference import Array, Reference

__all__ = [
    "Adopted",
    "Array",
    "Backend",
    "BackendUnavailable",
    "Buffer",
    "Communication",
    "Device",
    "HostDevice",
    "KernelFault",
    "KernelText",
    "Ladder",
    "Launch",
    "Problem",
    "Reference",
    "Rung",
    "Stages",
    "Target",
    "WorkItems",
]

Buffer = Any
"""Memory of a device that begins with the elements of one array. Its type is up to the device."""

Launch = Callable[[Sequence[Buffer], Sequence[Any]], None]
"""Starts a prepared kernel on its buffers (inputs, then outputs) and sizes, and may return before the
kernel has ended: `Device.wait` waits for it. Behind the sizes come the kernel's numbers, the real ones as floats."""


Shortcut = Callable[..., Array | None]
"""Runs a prepared kernel on its inputs and output (None: a new array), as they are, and returns the output. If one of
them is not plainly fit, it does nothing and returns None. Then its caller checks them, and says what is wrong.
"""


@dataclass(frozen=True)
class Adopted:
    """A caller's array in memory where a device can compute: the facts that a call needs.

    buffer: its elements in C order, as launches take them. It keeps the array alive. It is released as any other
        buffer, which frees nothing of the caller's. None where there is no element.
    shape, dtype: of the array.
    address: of its first byte. Arrays whose bytes have the same addresses share memory.
    writable: whether it may be an output.
    """

    buffer: Buffer | None
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    address: int
    writable: bool = True


@dataclass(frozen=True)
class Communication:
    """The communication of the ranks that compute one launch.

    seconds: of the rank that communicated the longest, waiting for the others included.
    bytes_sent: by each rank to others.
    seconds_by_rank: as `seconds`, of each rank; empty where that is not known.
    kernel_by_rank: seconds from the start of the launch until each rank had ended; empty where that is not known.
    bytes_held: of the arrays of each rank, at most, since it last had none; empty where that is not known.
    """

    seconds: float
    bytes_sent: tuple[int, ...]
    seconds_by_rank: tuple[float, ...] = ()
    kernel_by_rank: tuple[float, ...] = ()
    bytes_held: tuple[int, ...] = ()


@dataclass(frozen=True)
class Target:
    """Where a backend can run its kernels on this machine, or the reason why it cannot."""

    name: str
    device: str | None = None
    """The hardware's own name."""
    version: str | None = None
    """The versions of the library and the driver."""
    reason: str | None = None
    """Why it is not there (or, for an emulated one, why it is emulated), as a sentence without full stop."""
    fix: str | None = None
    """How to change that: a command where there is one."""
    available: bool = True
    emulated: bool = False
    """Runs on the CPU in place of its device: checked, never timed, and only in a worker."""
    interpreted: bool = False
    """Runs each work item in Python."""
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Variables that a worker for this target must be started with."""
    dtypes: Mapping[str, tuple[str, ...]] | None = None
    """The number formats that it takes, by kernel, or by source as `matmul/tuned`. A kernel that is missing here has
    none. None for those of its backend."""
    borrowed: bool = False
    """Computes by the kernels of other backends."""
    just_in_time: bool = False
    """Compiles kernels when they are first needed, which takes seconds."""
    few_sizes: bool = False
    """Other sizes cost it much, since it compiles for them, or interprets. The suite then tries few of them."""
    subnormals: bool = True
    """Whether it computes with subnormal numbers. Else it takes them for zero, and leaves none."""
    on_threads: Mapping[int, str | None] = field(default_factory=lambda: MappingProxyType({}))
    """What `Backend.on_threads` says, by the numbers of threads that were probed; empty where it always says this
    target's own name. The probe fills it in."""

    @classmethod
    def missing(
        cls, name: str, reason: str, fix: str | None = None, dtypes: Mapping[str, tuple[str, ...]] | None = None
    ) -> Target:
        return cls(name, reason=reason, fix=fix, available=False, dtypes=dtypes)


class Device(ABC):
    """An opened target. Its methods may be called from several threads at once.

    Arrays are flat, C-contiguous NumPy arrays. They may be longer than a kernel's sizes
    say. The rest is a guard zone: it is copied along, and no kernel may touch it.
    """

    note: str | None = None
    """A remark for readers of its rows, for instance that it cannot obey `threads`."""
    on_cpu: bool = True
    """Whether it computes on this machine's CPU, so that the CPU's ceilings are its own."""
    cache_bytes: int = 0
    """The size of its last-level cache, if the device is not the CPU."""
    deterministic: bool = False
    """Whether the same call on the same number of threads gives the same bits. The suite then checks it, unless a
    source says that it adds up in any order."""
    obeys_threads: bool = True
    """Whether it keeps to `threads`. A GPU leaves this true: the limit does not concern it."""
    survives_fork: bool = False
    """Whether a child of this process can go on computing on it. Threads of a library, and most drivers, cannot."""
    processes: Sequence[int] = ()
    """The identifiers of other processes on this machine that compute for it. They are stopped, continued and ended
    with it, and their use of the machine counts as its own."""
    profiled: bool = False
    """Set before anything is prepared, if `event_seconds` will be asked. Queues that record times may cost a little."""

    @abstractmethod
    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        """Compile the kernel, or find it compiled."""

    def place(
        self,
        launch: Launch,
        sizes: Sequence[Any],
        arrays: Sequence[Array | Adopted],
        *,
        outputs: int = 1,
        filled: bool = False,
    ) -> list[Buffer]:
        """Buffers for all arrays of a launch, inputs and then as many outputs; complete when it returns.

        What was adopted is there already. filled: whether the outputs' elements are copied, too. What was placed is
        released if it raises.

        A device that compiles for sizes does it here.
        """
        inputs, buffers = len(arrays) - outputs, list[Buffer]()
        try:
            for at, array in enumerate(arrays):
                if isinstance(array, Adopted):
                    buffers.append(array.buffer)
                else:
                    buffers.append(self.place_one(launch, sizes, at, array, filled=at < inputs or filled))
        except BaseException:  # Ctrl-C as well: nobody else knows these buffers
            for buffer in buffers:
                self.release(buffer)
            raise
        return buffers

    def place_one(self, launch: Launch, sizes: Sequence[Any], at: int, array: Array, *, filled: bool) -> Buffer:
        """The buffer for array number `at` of a launch.

        A device that spreads arrays over several memories lays it out here as the kernel needs it. Others upload it, or
        allocate its memory if it is not to be filled.
        """
        return self.upload(array) if filled else self.allocate(array)

    @abstractmethod
    def upload(self, array: Array) -> Buffer:
        """Copy the array's elements to memory of the device; complete when it returns. Inputs may be read-only."""

    @abstractmethod
    def allocate(self, array: Array) -> Buffer:
        """Memory of the device for the array's elements, contents undefined, to be downloaded to it later."""

    @abstractmethod
    def wait(self) -> None:
        """Return when all launches of the calling thread have ended; raise their errors."""

    def event_seconds(self) -> float | None:
        """Seconds that the calling thread's last launch took on the device, by the device's own events.

        From the start of its first command to the end of its last. Asked after `wait`, of a `profiled` device. None
        where it has no events.
        """
        return None

    def communication(self) -> Communication | None:
        """The communication of the ranks in the calling thread's last launch; None where there are no ranks."""
        return None

    def peak(self, dtype: np.dtype[Any]) -> float | None:
        """The most FLOP/s of multiply-adds, measured now; None for the CPU, or where nothing measures it."""
        return None

    def bandwidth(self) -> float | None:
        """The most bytes a second that a copy within its memory reads and writes, measured now; None as for `peak`."""
        return None

    def remark(self, launch: Launch, sizes: Sequence[Any], arrays: Sequence[Array]) -> str | None:
        """A further sentence for readers of a row, once all of its samples are taken; None where there is none.

        arrays: of the row's case, inputs and then outputs. It may launch the kernel on others of the same shapes.
        """
        return None

    @abstractmethod
    def download(self, buffer: Buffer, array: Array) -> None:
        """Copy a buffer's elements back to the array that it was made for; complete when it returns.

        A checked run also downloads inputs, to see whether a kernel has changed them.
        """

    @abstractmethod
    def release(self, buffer: Buffer) -> None:
        """Give the memory back."""

    def adopt(self, array: Any) -> Adopted | None:
        """Take an array of another library where it lies, to compute on it there: nothing is copied.

        Its library's pending work on it has ended, or comes before the launches of the calling thread. Returns None for
        an array that does not lie on such a device. Raises TypeError, with what to do about it, for one that does and
        cannot be used. Raises whatever its library raises where that does not export the memory.
        """
        return None

    def new(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """A new array on the device, of its library's type, contents undefined; `adopt` takes it.

        None where its library has no arrays, or they are NumPy's, as on a CPU.
        """
        return None

    def result(self, made: Any, adopted: Adopted) -> Any:
        """What a caller gets of an array that `new` made, once a launch that has ended wrote to what was adopted of it.

        Another array where those of its library never change.
        """
        return made


class HostDevice(Device):
    """A device that computes in the caller's own memory, at once: nothing to copy, nothing to wait for."""

    survives_fork = True

    def shortcut(self, text: KernelText, dtypes: Sequence[str]) -> Shortcut | None:
        """A way to run a prepared kernel that is faster than checking its arrays in Python.

        It sees to the floating-point mode of the threads that compute: see docs/develop/surroundings.md.

        dtypes: those of the source in which calls come to this target; arrays of others are not plainly fit.
        None where there is none.
        """
        return None

    def upload(self, array: Array) -> Buffer:
        return array

    def allocate(self, array: Array) -> Buffer:
        return array

    def wait(self) -> None:
        pass

    def download(self, buffer: Buffer, array: Array) -> None:
        pass

    def release(self, buffer: Buffer) -> None:
        pass


class Backend(ABC):
    """One programming model. Its constructor imports nothing optional; `targets` and `open` do."""

    baseline: ClassVar[bool] = False
    """Whether the others' speed is given relative to it; true of one backend."""
    library: ClassVar[bool] = False
    """Whether its sources are calls into a tuned library. `judge` shows such backends beside a source of anybody's."""
    dtypes: ClassVar[tuple[str, ...]] = ("float32", "float64")
    """The dtypes that its kernels take, by their names in NumPy."""
    preference: ClassVar[int] = 0
    """For backends whose devices are `HostDevice`s. Others that compute on the host, such as ranks, use the available
    backend of the highest preference. 0 for never."""
    obeys: ClassVar[tuple[str, ...]] = ()
    """Beginnings of the names of environment variables over which its library may end the process. Where one is set, a
    child process computes by it first."""

    @abstractmethod
    def targets(self) -> list[Target]:
        """Every target, the preferred one first. It probes the device: an import alone proves nothing.

        Never empty: if nothing is available, one target says why. Never raises.
        """

    def target(self, name: str) -> Target | None:
        """A target that is found by its name alone, not one of `targets`; None if there is none. Never raises."""
        return None

    def on_threads(self, target: str, threads: int) -> str | None:
        """The target of the same kind that runs on so many threads in all; None where there is none. Never raises.

        Usually it is the target itself, since `open` is told how many. A target whose name has the number, as ranks x
        threads, is another one on each number of threads.
        """
        return target

    @abstractmethod
    def open(self, target: str, threads: int) -> Device:
        """Open an available target with `threads` threads where it runs on the CPU.

        Raises BackendUnavailable if it turns out not to be available.
        """
