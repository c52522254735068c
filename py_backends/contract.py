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

import ml_dtypes  # noqa: F401  # makes bfloat16 known to NumPy by its name
import numpy as np
from numpy.typing import NDArray

from py_backends.errors import BackendUnavailable, KernelFault
from py_backends.kernel_text import KernelText, Stages, WorkItems
from py_backends.signature import Signature

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

Array = NDArray[Any]
Buffer = Any
"""Memory of a device that begins with the elements of one array. Its type is up to the device."""

Launch = Callable[[Sequence[Buffer], Sequence[int]], None]
"""Starts a prepared kernel on its buffers (inputs, then output) and sizes, and may return before the
kernel has ended: `Device.wait` waits for it."""


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
class Reference:
    """The right answer of one case.

    value: the result, in float64 where a bound is given, else in the dtype of the result.
    bound: the largest allowed error of each element, 0 where it must equal `value`; None where every bit must agree.
    overflow: True where infinity or NaN passes too; None for nowhere.
    """

    value: Array
    bound: Array | None = None
    overflow: Array | None = None


@dataclass(frozen=True)
class Communication:
    """The communication of the ranks that compute one launch.

    seconds: of the rank that communicated the longest, waiting for the others included.
    bytes_sent: by each rank to others.
    seconds_by_rank: as `seconds`, of each rank; empty where that is not known.
    kernel_by_rank: seconds from the start of the launch until each rank had ended; empty where that is not known.
    """

    seconds: float
    bytes_sent: tuple[int, ...]
    seconds_by_rank: tuple[float, ...] = ()
    kernel_by_rank: tuple[float, ...] = ()


@dataclass(frozen=True)
class Rung:
    """One step of a ladder: a kernel's source that adds an idea to that of the rung below.

    backend, variant: those of the source.
    idea: what it adds, in a few words.
    published: how many times as fast as the first rung it is in the ladder's source; None where that has no such rung.
    published_percent: of the peak of the machine of that source.
    dtype: the number format of its inputs; None for that of the whole ladder.
    target: where it runs; None for the first available one that is not the target of another rung.
    """

    backend: str
    variant: str
    idea: str
    published: float | None = None
    published_percent: float | None = None
    dtype: str | None = None
    target: str | None = None


@dataclass(frozen=True)
class Ladder:
    """A kernel from its slowest source to its fastest, rung by rung.

    rungs: the slowest first.
    sizes: at which the ideas show, and the slow rungs do not take too long.
    source: where the published figures come from, and what they were measured on; None where no rung has any.
    formats: rungs in a narrower number format, which run only on request. They stand above the rungs of their backend.
    name: what tells it from the others of its kernel: the kind of device that it is for.
    """

    rungs: tuple[Rung, ...]
    sizes: tuple[int, ...]
    source: str | None = None
    formats: tuple[Rung, ...] = ()
    name: str | None = None


RULES = ("bitwise", "componentwise")
RATES = ("gflops", "gbytes_per_second")


class Problem(ABC):
    """What a kernel computes, independently of any backend.

    Sizes are tuples of non-negative integers in the order of `dimensions`, which is the order of the
    kernel's last parameters and of `--shape`.

    A `signature` gives the shapes. A problem whose shapes it cannot express has `dimensions` and the methods `shapes`
    and `sizes` instead.
    """

    name: ClassVar[str]
    signature: ClassVar[str]
    """The shapes of the inputs and of the output by their sizes: `(m,k),(k,n)->(m,n)` (`py_backends.signature`)."""
    dimensions: ClassVar[tuple[str, ...]]
    """The names of the sizes. With a signature: those of the output first, then the others."""
    inputs: ClassVar[tuple[str, ...]] = ("a", "b")
    """The names of the inputs, in the order of the kernel's first parameters; at least one. They may be neither
    keywords of Python nor options of the Python functions."""
    rule: ClassVar[str]
    """How results are judged, one of `RULES`."""
    rate: ClassVar[str]
    """The usual rate of this kernel, one of `RATES`."""
    dtypes: ClassVar[tuple[str, ...]] = ("float32", "float64")
    """The number formats that inputs may have, by their names in NumPy."""
    results: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """The dtype of the result by that of the inputs, where the two differ."""
    sums: ClassVar[Mapping[str, str]] = MappingProxyType({"float16": "float32", "bfloat16": "float32", "int8": "int32"})
    """The dtype of the arithmetic by that of the inputs, where the two differ. Sources call it `Sum`. In sources in C++
    it is always as given here."""
    in_place: ClassVar[bool]
    """Whether the output may be one of the inputs."""
    default_sizes: ClassVar[tuple[int, ...]]
    edges: ClassVar[tuple[tuple[int, ...], ...]] = ()
    """Sizes at which a source may go wrong. The conformance suite tries them beside its own sizes."""
    ladder: ClassVar[Ladder | None] = None
    """For the command `ladder`; None for a kernel without one."""
    steps: ClassVar[tuple[Ladder, ...]] = ()
    """From `lecture` to `tuned` with one idea a rung, for each kind of device: for `ladder --steps`."""
    in_numpy: ClassVar[str | None] = None
    """What users of NumPy write for it, over its arrays `a`, `b` and so on, such as `np.add(a, b, out=c)`. None where
    that takes more than one statement. Where the result has another dtype than the inputs, it need not be right."""

    _parsed: ClassVar[Signature | None] = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "signature" in cls.__dict__:
            cls._parsed = Signature.parse(cls.signature)
            cls.dimensions = cls._parsed.dimensions

    def shapes(self, sizes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """The shape of every array for `sizes`: inputs, then output. ValueError for unsupported sizes."""
        return self._signature().shapes(sizes)

    def sizes(self, *inputs: Array) -> tuple[int, ...]:
        """The sizes of inputs that have the right `shapes`; ValueError with one clear line for others."""
        return self._signature().sizes(self.name, self.inputs, tuple([array.shape for array in inputs]))

    def size_of_each_dimension(self) -> tuple[tuple[int, ...], ...] | None:
        """For each array and dimension, the index of its size.

        None where a dimension is something else, or the problem has its own `shapes`.
        """
        if self._parsed is None or type(self).shapes is not Problem.shapes:
            return None
        return self._parsed.places

    def _signature(self) -> Signature:
        if self._parsed is None:
            raise TypeError(f"{type(self).__name__} has neither a signature nor the methods shapes and sizes")
        return self._parsed

    @abstractmethod
    def reference(self, inputs: Sequence[Array]) -> Reference:
        """The right answer for `inputs`, arrays of the shapes above and of one dtype."""

    @abstractmethod
    def flops(self, sizes: Sequence[int]) -> int:
        """Floating-point operations of one run."""

    def bytes(self, sizes: Sequence[int], dtype: np.dtype[Any]) -> int:
        """The fewest bytes one run can move: every input, of `dtype`, read once, the output written once."""
        *inputs, output = (int(np.prod(shape, dtype=object)) for shape in self.shapes(sizes))
        return sum(inputs) * dtype.itemsize + output * self.result_dtype(dtype).itemsize

    def result_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """The dtype of the result for inputs of a dtype."""
        if not self.results:  # first, since NumPy takes most of a microsecond for a name
            return dtype
        return np.dtype(self.results.get(dtype.name, dtype))

    def sum_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """The dtype of the arithmetic for inputs of a dtype."""
        return np.dtype(self.sums.get(dtype.name, dtype))

    def least_communication(self, sizes: Sequence[int], dtype: np.dtype[Any], ranks: int) -> float | None:
        """A lower bound of the bytes that some rank sends or receives, if so many share work and arrays evenly.

        It holds for any algorithm and any amount of memory. None where no bound is known.
        """
        return None

    def work(self, sizes: Sequence[int]) -> int:
        """A number that run time is about proportional to, for estimates."""
        return max(1, self.flops(sizes))


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
    """Runs each work item in Python: tests use only a few small cases."""
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Variables that a worker for this target must be started with."""
    dtypes: Mapping[str, tuple[str, ...]] | None = None
    """The number formats that it takes, by kernel, or by source as `matmul/tuned`. A kernel that is missing here has
    none. None for those of its backend."""
    borrowed: bool = False
    """Computes by the kernels of other backends, which are tested there. So a quick run of the suite tries only the
    first such target, in few formats."""
    just_in_time: bool = False
    """Compiles kernels when they are first needed, which takes seconds. Tests run others meanwhile."""
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

    Arrays are flat, C-contiguous NumPy arrays of one dtype. They may be longer than a kernel's sizes
    say. The rest is a guard zone: it is copied along, and no kernel may touch it.
    """

    note: str | None = None
    """A remark for readers of its rows, for instance that it cannot obey `threads`."""
    on_cpu: bool = True
    """Whether it computes on this machine's CPU, so that the CPU's ceilings are its own."""
    cache_bytes: int = 0
    """The size of its last-level cache, if the device is not the CPU."""
    deterministic: bool = False
    """Whether the same call on the same number of threads gives the same bits. The suite then checks it."""
    obeys_threads: bool = True
    """Whether it keeps to `threads`. A GPU leaves this true: the limit does not concern it."""
    processes: Sequence[int] = ()
    """The identifiers of other processes on this machine that compute for it. They are stopped, continued and ended
    with it, and their use of the machine counts as its own."""
    profiled: bool = False
    """Set before anything is prepared, if `event_seconds` will be asked. Queues that record times may cost a little."""

    @abstractmethod
    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        """Compile the kernel, or find it compiled."""

    def arrange(self, launch: Launch, sizes: Sequence[int], coming: Sequence[int]) -> None:
        """Called before arrays of a launch are uploaded or allocated, by the thread that does so.

        coming: the positions of these among the kernel's arrays, in the order in which they come; the others are
            already on the device.

        A device that spreads arrays over several memories lays them out as the kernel needs them. Others ignore it.
        """
        return

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


class HostDevice(Device):
    """A device that computes in the caller's own memory, at once: nothing to copy, nothing to wait for."""

    def shortcut(self, text: KernelText, dtypes: Sequence[str]) -> Shortcut | None:
        """A way to run a prepared kernel that is faster than checking its arrays in Python.

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
    dtypes: ClassVar[tuple[str, ...]] = ("float32", "float64")
    """The dtypes that its kernels take, by their names in NumPy."""
    preference: ClassVar[int] = 0
    """For backends whose devices are `HostDevice`s. Others that compute on the host, such as ranks, use the available
    backend of the highest preference. 0 for never."""

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
