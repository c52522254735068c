"""What a kernel and a backend are: what plug-ins are made of, and the project's own.

A *kernel* is described by a `Problem` (kernels/KERNEL/problem.py): its shapes, its inputs, what the
right answer is and how far from it a result may lie. Its text for one backend is a `KernelText`.

A *backend* (py_backends/backend/NAME.py) lists its `Target`s and opens one as a `Device`. A device is the
five steps of offloading: prepare, upload, launch (and wait), download, release. The harness and the
Python functions know backends by these classes only.

Other packages bring backends and kernels of their own as plug-ins, made of the same classes. The names in `__all__`
stay as they are within a major version.
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
"""Memory of a device that begins with the elements of one array; what it is, its device knows."""

Launch = Callable[[Sequence[Buffer], Sequence[int]], None]
"""Starts a prepared kernel on its buffers (inputs, then output) and sizes, and may return before the
kernel has ended: `Device.wait` waits for it."""


Shortcut = Callable[..., Array | None]
"""Runs a prepared kernel on its inputs and output (None: a new array), as they are, and returns the output. Or returns
None, having done nothing, where one of them is not plainly fit: then its caller looks closer, and says what is wrong.
"""


@dataclass(frozen=True)
class Adopted:
    """An array of the caller's, in memory where a device can compute: what a call has to know of it.

    buffer: its elements, one after the other with the last dimension the fastest, as launches take them. It keeps the
        array alive, and is released as any other, which gives nothing of the caller's back. None where there is no
        element.
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
    bound: how far each element may lie from `value`, 0 where it must be that; None where every bit must agree.
    overflow: True where infinity or NaN passes too; None for nowhere.
    """

    value: Array
    bound: Array | None = None
    overflow: Array | None = None


@dataclass(frozen=True)
class Communication:
    """What the ranks that compute one launch told one another meanwhile.

    seconds: of the rank that communicated the longest, waiting for the others included.
    bytes_sent: by each rank to others.
    seconds_by_rank: as `seconds`, of each; none where that is not known.
    kernel_by_rank: seconds from the start of the launch until each had ended; none as above.
    """

    seconds: float
    bytes_sent: tuple[int, ...]
    seconds_by_rank: tuple[float, ...] = ()
    kernel_by_rank: tuple[float, ...] = ()


@dataclass(frozen=True)
class Rung:
    """One step of a ladder: a text that adds something to that of the rung below.

    backend, variant: whose text it is.
    idea: what it adds, in a few words.
    published: how many times as fast as the first rung it is in the ladder's source; None where that has no such rung.
    published_percent: of the peak of the machine of that source.
    dtype: the number format of its inputs; None for that of the whole ladder.
    target: where it runs; None for the first that is there, and is not that of another rung.
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
    """A kernel from the slowest text to the fastest, rung by rung.

    rungs: the slowest first.
    sizes: at which the ideas show, and the slow rungs do not take too long.
    source: where the published figures come from, and what they were measured on.
    formats: rungs in a narrower number format, which are run where they are asked for: on top of those that share their
        backend.
    """

    rungs: tuple[Rung, ...]
    sizes: tuple[int, ...]
    source: str
    formats: tuple[Rung, ...] = ()


RULES = ("bitwise", "componentwise")
RATES = ("gflops", "gbytes_per_second")


class Problem(ABC):
    """What a kernel computes, apart from any backend.

    Sizes are tuples of non-negative integers in the order of `dimensions`, which is the order of the
    kernel's last parameters and of `--shape`.

    Of the shapes a `signature` says all. Where it cannot, a problem has `dimensions` and the methods `shapes` and
    `sizes` in its place.
    """

    name: ClassVar[str]
    signature: ClassVar[str]
    """The shapes of the inputs and of the output by their sizes: `(m,k),(k,n)->(m,n)` (`py_backends.signature`)."""
    dimensions: ClassVar[tuple[str, ...]]
    """What the sizes are called: of a signature those of the output first, then the others."""
    inputs: ClassVar[tuple[str, ...]] = ("a", "b")
    """What the inputs are called, in the order of the kernel's first parameters; any number but none. Neither words of
    Python nor options of the Python functions."""
    rule: ClassVar[str]
    """How results are judged, one of `RULES`."""
    rate: ClassVar[str]
    """The rate by which people know this kernel, one of `RATES`."""
    dtypes: ClassVar[tuple[str, ...]] = ("float32", "float64")
    """The number formats that inputs may have, by their names in NumPy."""
    results: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """The dtype of the result by that of the inputs, where it is another one."""
    sums: ClassVar[Mapping[str, str]] = MappingProxyType({"float16": "float32", "bfloat16": "float32", "int8": "int32"})
    """The dtype in which is computed by that of the inputs, where it is another one: texts know it as `Sum`, and those
    in C++ as just these."""
    in_place: ClassVar[bool]
    """Whether the output may be one of the inputs."""
    default_sizes: ClassVar[tuple[int, ...]]
    edges: ClassVar[tuple[tuple[int, ...], ...]] = ()
    """Sizes at which a text may go wrong, for the conformance suite, which tries many of any kernel."""
    ladder: ClassVar[Ladder | None] = None
    """For the command `ladder`; None for a kernel without one."""
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
        """The shape of every array for `sizes`: inputs, then output. ValueError for sizes that the kernel has not."""
        return self._signature().shapes(sizes)

    def sizes(self, *inputs: Array) -> tuple[int, ...]:
        """The sizes whose `shapes` the inputs have; ValueError with one clear line where there are none."""
        return self._signature().sizes(self.name, self.inputs, tuple([array.shape for array in inputs]))

    def size_of_each_dimension(self) -> tuple[tuple[int, ...], ...] | None:
        """The shapes for any sizes: for each array and dimension, which of the sizes it is.

        None where a dimension is something else, or its own methods say what the shapes are.
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
        """The dtype in which is computed for inputs of a dtype."""
        return np.dtype(self.sums.get(dtype.name, dtype))

    def least_communication(self, sizes: Sequence[int], dtype: np.dtype[Any], ranks: int) -> float | None:
        """Bytes that some rank has to send or receive where so many share the work and the arrays evenly.

        Whatever the algorithm, and however much memory there is. None where nobody knows.
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
    """What the hardware calls itself."""
    version: str | None = None
    """Of the library and the driver."""
    reason: str | None = None
    """Why it is not there (or, for an emulated one, why it is emulated), as a sentence without full stop."""
    fix: str | None = None
    """What would change that: a command where there is one."""
    available: bool = True
    emulated: bool = False
    """Runs on the CPU in place of its device: checked, never timed, and only in a worker."""
    interpreted: bool = False
    """Runs each work item in Python: tests keep to few and small cases."""
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Variables that a worker for this target must be started with."""
    dtypes: Mapping[str, tuple[str, ...]] | None = None
    """By kernel, or by text as `matmul/tuned`, the number formats that it takes, none of what is not there; None for
    those of its backend."""
    borrowed: bool = False
    """Computes by kernels of other backends, tested there: a quick run of the suite tries the first, in few formats."""
    just_in_time: bool = False
    """Compiles kernels when they are first needed, which takes seconds: tests let it do so while others run."""
    on_threads: Mapping[int, str | None] = field(default_factory=lambda: MappingProxyType({}))
    """By the numbers of threads that it was probed for, what `Backend.on_threads` says; nothing where it says no other
    name. The probe fills it in."""

    @classmethod
    def missing(
        cls, name: str, reason: str, fix: str | None = None, dtypes: Mapping[str, tuple[str, ...]] | None = None
    ) -> Target:
        return cls(name, reason=reason, fix=fix, available=False, dtypes=dtypes)


class Device(ABC):
    """An opened target. Its methods may be called from several threads at once.

    Arrays are flat, C-contiguous NumPy arrays of one dtype. They may be longer than a kernel's sizes
    say: what lies behind is a guard zone, which travels along and which no kernel may touch.
    """

    note: str | None = None
    """What a reader of its rows should know, for instance that it cannot obey `threads`."""
    on_cpu: bool = True
    """Whether it computes on this machine's CPU, so that the CPU's ceilings are its own."""
    cache_bytes: int = 0
    """Of its last-level cache, where it is not the CPU."""
    deterministic: bool = False
    """Whether the same call gives the same bits again, on as many threads: that holds it to it in the tests."""
    obeys_threads: bool = True
    """Whether it keeps to `threads`; a GPU has none to keep to."""
    processes: Sequence[int] = ()
    """Those of this machine that compute for it, beside the own, by their numbers: they are stopped, continued and
    ended with it, and what they use is its own."""
    profiled: bool = False
    """Set before anything is prepared where `event_seconds` will be asked: queues that keep times may cost a little."""

    @abstractmethod
    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        """Compile the kernel, or look it up."""

    def arrange(self, launch: Launch, sizes: Sequence[int], coming: Sequence[int]) -> None:
        """Said before arrays of a launch are uploaded or allocated, by the thread that does it.

        coming: which of the kernel's arrays, by their places, in the order in which they come; others lie there.
        A device that spreads arrays over several memories lays them out as the kernel needs them. Others ignore it.
        """
        return

    @abstractmethod
    def upload(self, array: Array) -> Buffer:
        """The array's elements in memory of the device; done when it returns. Inputs may be read-only."""

    @abstractmethod
    def allocate(self, array: Array) -> Buffer:
        """Memory of the device for the array's elements, contents undefined, to be downloaded to it."""

    @abstractmethod
    def wait(self) -> None:
        """Return when all launches of the calling thread have ended; raise what went wrong in them."""

    def event_seconds(self) -> float | None:
        """Seconds that the calling thread's last launch took on the device, by the device's own events.

        From the start of its first command to the end of its last. Asked after `wait`, of a `profiled` device. None
        where it has no events.
        """
        return None

    def communication(self) -> Communication | None:
        """What the ranks that computed the calling thread's last launch told one another; None where there are none."""
        return None

    def peak(self, dtype: np.dtype[Any]) -> float | None:
        """FLOP/s of multiply-adds at most, measured now; None where it is the CPU, or nothing measures it."""
        return None

    def bandwidth(self) -> float | None:
        """Bytes a second that a copy within its memory reads and writes at most, measured now; None as above."""
        return None

    @abstractmethod
    def download(self, buffer: Buffer, array: Array) -> None:
        """Bring a buffer's elements back into the array that it was made for; done when it returns.

        Of inputs too, where a checked run looks whether a kernel has changed them.
        """

    @abstractmethod
    def release(self, buffer: Buffer) -> None:
        """Give the memory back."""

    def adopt(self, array: Any) -> Adopted | None:
        """An array of another library's where it lies, to compute on it there: nothing is copied.

        What its library still computes for it has ended, or comes before the launches of the calling thread. None for
        what does not lie on such a device. TypeError for what does and cannot be used, with what to do about it, and
        whatever its library raises where it does not hand the memory out.
        """
        return None

    def new(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """A new array on the device, contents undefined, as its library knows arrays; `adopt` takes it.

        None where its library has none: NumPy's are those of a CPU.
        """
        return None


class HostDevice(Device):
    """A device that computes in the caller's own memory, at once: nothing to move, nothing to wait for."""

    def shortcut(self, text: KernelText, dtypes: Sequence[str]) -> Shortcut | None:
        """A quicker way to run a prepared kernel, in any of some dtypes, than to look at arrays in Python.

        dtypes: of the text's those in which calls come to this target; arrays of another are not plainly fit.
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
    """One programming model. Making one imports nothing optional; `targets` and `open` do."""

    baseline: ClassVar[bool] = False
    """Whether the others' speed is given relative to it; true of one backend."""
    dtypes: ClassVar[tuple[str, ...]] = ("float32", "float64")
    """Of the arrays that its kernels take, by their names in NumPy."""
    preference: ClassVar[int] = 0
    """Of backends whose devices are `HostDevice`s: by the highest that is there others compute on the host, such as
    ranks. 0 where none should."""

    @abstractmethod
    def targets(self) -> list[Target]:
        """Every target, probed on the device and not by the import alone; the preferred one first.

        Never empty: where nothing is there, one target says why. Never raises.
        """

    def target(self, name: str) -> Target | None:
        """A target that runs where it is named, and is not one of `targets`; None where there is none. Never raises."""
        return None

    def on_threads(self, target: str, threads: int) -> str | None:
        """The target of the same kind that takes so many threads in all; None where there is none. Never raises.

        It is the target itself where `open` is told how many. What says so by its name, as ranks x threads do, is
        another one on each number of threads.
        """
        return target

    @abstractmethod
    def open(self, target: str, threads: int) -> Device:
        """Open an available target with `threads` threads where it runs on the CPU.

        Raises BackendUnavailable where it is not there after all.
        """
