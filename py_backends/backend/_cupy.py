"""NVIDIA's GPUs through CuPy, for the backends that compute with it: which GPUs there are, and memory on them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from py_backends.backend import _cuda_events, _nvidia_driver, _wheels
from py_backends.backend._scratch import Scratch
from py_backends.contract import Adopted, Array, Buffer, Target
from py_backends.errors import BackendUnavailable, KernelFault
from py_backends.functions import foreign_arrays
from py_backends.install import pip_install
from py_backends.number_formats import number_format

if TYPE_CHECKING:
    import cupy


MULTIPLY_ADD, PAUSE = (Path(__file__).with_name(f"_cuda_{name}.cu") for name in ("multiply_add", "pause"))
_NAME, _SHARED_BYTES = re.compile(r"^\w+"), "shared_bytes"
_ASKS_FOR_SHARED_MEMORY = re.compile(rf"\b__constant__ constexpr int {_SHARED_BYTES}\b")
_MOST_SHARED_BYTES = 8
"""A kernel's attribute in cuda.h: CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES."""
_CYCLES_OF_A_MICROSECOND = 1500
"""Roughly, of any GPU."""
_CHAINS = 8
_STEPS = 2**14
_THREADS, _BLOCKS_OF_A_MULTIPROCESSOR = 256, 8
"""Threads of a block, and how many blocks a multiprocessor holds at once: 2048 threads."""
_COPIES_OF_THE_CACHE = 8
_RUNS = 5
_WITH_FLOAT64_TENSOR_CORES = {80, 90, 100}
"""Compute capabilities of A100, H100 and B200. Tensor cores multiply float64 there, at twice the rate of other units,
on B200 at the same. So the peak of those is no ceiling."""


def targets() -> list[Target]:
    """Every GPU by name, available or not. Empty if there is no driver, or it has no GPU."""
    driver = _nvidia_driver.driver()
    try:
        version = f"{_version(driver)}, driver for CUDA {_dotted(driver.version)}"
    except BackendUnavailable as missing:
        return [
            Target(name, device, reason=missing.reason, fix=missing.fix, available=False)
            for name, device in zip(driver.targets, driver.devices, strict=True)
        ]
    found = zip(driver.targets, driver.devices, strict=True)
    return [Target(name, device, version, just_in_time=True) for name, device in found]


def ordinal(target: str) -> int:
    """CUDA's number of a GPU. BackendUnavailable if the GPU, its driver or CuPy is missing."""
    driver = _nvidia_driver.driver()
    if driver.reason is not None:
        raise BackendUnavailable(driver.reason, driver.fix)
    _version(driver)
    if target not in driver.targets:
        raise BackendUnavailable(f"CUDA has no device {target}", f"there are {', '.join(driver.targets)}")
    return driver.targets.index(target)


@dataclass(frozen=True)
class Kernel:
    """A compiled kernel, and the bytes of shared memory that its blocks are given."""

    function: Any
    shared_bytes: int

    def __call__(self, grid: Sequence[int], group: Sequence[int], arguments: Sequence[Any]) -> None:
        self.function(grid, group, arguments, self.shared_bytes)


@dataclass
class Memory:
    """Memory of a GPU; None once it has been released."""

    array: cupy.ndarray | None

    @property
    def size(self) -> int:
        """Its bytes."""
        return 0 if self.array is None else int(self.array.nbytes)


class Gpu(_cuda_events.Device):
    """One NVIDIA GPU. Buffers are `Memory`. Kernels run on the calling thread's current stream of CuPy."""

    def __init__(self, number: int) -> None:
        import cupy

        super().__init__()
        self._cupy = cupy
        self._gpu = cupy.cuda.Device(number)
        self._multiply_adds: dict[str, Any] = {}
        self._scratch = Scratch(self._new_scratch, self.release)

    def compiled(self, code: str, names: Sequence[str]) -> list[Kernel]:
        """Kernels in CUDA C++, instances of templates. RuntimeError with the compiler's log if they do not compile.

        A kernel may declare no more than 48 KiB of shared memory. A source asks for more by a template of the same
        parameters, `__constant__ constexpr int shared_bytes`. It says what a block is given at a launch of any kernel.

        Not by CuPy's RawModule: it always treats subnormal float32 as zero (-ftz=true), and knows no sm_90a.
        """
        nvrtc, architecture = self._cupy.cuda.nvrtc, self._architecture()
        constants = [_NAME.sub(f"&{_SHARED_BYTES}", names[0])] if _ASKS_FOR_SHARED_MEMORY.search(code) else []
        wanted = [*names, *constants]
        program = nvrtc.createProgram(code, "kernel.cu", (), ())
        try:
            for each in wanted:
                nvrtc.addNameExpression(program, each)
            nvrtc.compileProgram(program, ("-std=c++17", "-default-device", f"-arch={architecture}"))
            binary = nvrtc.getCUBIN(program) if architecture.startswith("sm") else nvrtc.getPTX(program)
            mangled = [nvrtc.getLoweredName(program, each) for each in wanted]
        except nvrtc.NVRTCError as error:
            raise RuntimeError(nvrtc.getProgramLog(program) or str(error)) from error
        finally:
            nvrtc.destroyProgram(program)
        with self._gpu:
            module = self._cupy.cuda.Module()
            module.load(binary)
            functions = [module.get_function(name) for name in mangled[: len(names)]]
            constant = mangled[len(names) :]
            return [Kernel(function, self._shared_bytes_of(function, module, *constant)) for function in functions]

    def loaded(self, binary: bytes, name: str, shared_bytes: int) -> Kernel:
        """A kernel of machine code, whose blocks are given so many bytes of shared memory."""
        with self._gpu:
            module = self._cupy.cuda.Module()
            module.load(binary)
            function = module.get_function(name)
            self._cupy.cuda.driver.funcSetAttribute(function.ptr, _MOST_SHARED_BYTES, shared_bytes)
        return Kernel(function, shared_bytes)

    def _shared_bytes_of(self, function: Any, module: Any, constant: str = "") -> int:
        """The bytes of shared memory that a kernel's blocks are given, as its source says. Allows it so many."""
        if not constant:
            return 0
        cuda, count = self._cupy.cuda, np.zeros(1, np.int32)
        address, kind = module.get_global_var(constant), cuda.runtime.memcpyDeviceToHost
        cuda.runtime.memcpy(count.ctypes.data, address, count.nbytes, kind)
        if count[0]:
            cuda.driver.funcSetAttribute(function.ptr, _MOST_SHARED_BYTES, int(count[0]))
        return int(count[0])

    def _architecture(self) -> str:
        """What to compile for: this GPU, or the nearest one that the compiler knows, for the driver to finish.

        Hopper's tensor cores have instructions that no other GPU has, before or after it. They are in sm_90a alone.
        """
        capability, known = int(self._gpu.compute_capability), self._cupy.cuda.nvrtc.getSupportedArchs()
        if capability in known:
            return f"sm_{capability}a" if capability == 90 else f"sm_{capability}"
        return f"compute_{max((each for each in known if each < capability), default=capability)}"

    @property
    def _current(self) -> AbstractContextManager[Any]:
        gpu: AbstractContextManager[Any] = self._gpu
        return gpu

    def _record(self) -> Any:
        event = self._cupy.cuda.Event()
        event.record()
        return event

    def _noted(self, event: Any) -> bool:
        noted: bool = event.done
        return noted

    def _milliseconds(self, begin: Any, end: Any) -> float:
        milliseconds: float = self._cupy.cuda.get_elapsed_time(begin, end)
        return milliseconds

    def _pause(self, microseconds: float) -> None:
        self._pausing((1,), (1,), (np.int64(microseconds * _CYCLES_OF_A_MICROSECOND),))

    @cached_property
    def _pausing(self) -> Kernel:
        """The compiled kernel."""
        (kernel,) = self.compiled(PAUSE.read_text(encoding="utf-8"), ["pause"])
        return kernel

    @property
    def cache_bytes(self) -> int:  # type: ignore[override]  # which a GPU is asked for
        """The bytes of its L2 cache."""
        size: int = self._properties["l2CacheSize"]
        return size

    @property
    def _properties(self) -> dict[str, Any]:
        found: dict[str, Any] = self._cupy.cuda.runtime.getDeviceProperties(self._gpu.id)
        return found

    def peak(self, dtype: np.dtype[Any]) -> float | None:
        """FLOP/s of multiply-adds in registers, in all of its multiprocessors.

        None for formats whose rate is that of tensor cores, which nothing here measures: those narrower than float32,
        and float64 on the GPUs of data centres since A100.
        """
        on_tensor_cores = int(self._gpu.compute_capability) in _WITH_FLOAT64_TENSOR_CORES
        if dtype.name != "float32" and (dtype.name != "float64" or on_tensor_cores):
            return None
        with self._gpu:
            kernel = self._multiply_add(dtype.name)
            blocks = _BLOCKS_OF_A_MULTIPROCESSOR * int(self._properties["multiProcessorCount"])
            constants = self._cupy.asarray(np.array([0.5, 1.0], dtype))  # every chain tends to 2, so none grows
            sums = self._cupy.empty(blocks * _THREADS, dtype)
            arguments = (constants, sums, np.int64(_STEPS))
            seconds = self._best_seconds(lambda: kernel((blocks,), (_THREADS,), arguments))
        return float(2 * _CHAINS * _STEPS * blocks * _THREADS / seconds)

    def _multiply_add(self, dtype: str) -> Any:
        """The compiled kernel."""
        if dtype not in self._multiply_adds:
            name, code = f"multiply_add<{number_format(np.dtype(dtype)).c}>", MULTIPLY_ADD.read_text(encoding="utf-8")
            (self._multiply_adds[dtype],) = self.compiled(code, [name])
        return self._multiply_adds[dtype]

    def bandwidth(self) -> float:
        """Bytes a second, read and written, of a copy within its memory that is far larger than its caches."""
        with self._gpu:
            source = self._cupy.zeros(_COPIES_OF_THE_CACHE * max(self.cache_bytes, 2**24), np.uint8)
            copy = self._cupy.empty_like(source)
            seconds = self._best_seconds(lambda: copy.data.copy_from_device_async(source.data, source.nbytes))
        return float(2 * source.nbytes / seconds)

    def _best_seconds(self, work: Callable[[], None]) -> float:
        """The shortest time of a few runs, by events. The first run warms up."""
        events = [self._cupy.cuda.Event() for _ in range(_RUNS + 1)]
        work()
        for event in events[:-1]:
            event.record()
            work()
        events[-1].record()
        events[-1].synchronize()
        milliseconds: list[float] = [self._cupy.cuda.get_elapsed_time(*pair) for pair in pairwise(events)]
        return min(milliseconds) / 1000

    def upload(self, array: Array) -> Buffer:
        memory = self.allocate(array)
        if array.size:
            with self._gpu:
                memory.array.set(array)
                self._cupy.cuda.get_current_stream().synchronize()
        return memory

    def allocate(self, array: Array) -> Buffer:
        with self._gpu:
            return Memory(self._cupy.empty(array.size, array.dtype))

    def scratch(self, elements: int, dtype: np.dtype[Any], piece: int) -> Memory:
        """Memory for a launch's own use, on the calling thread's stream: `Stages.launches` asks for it."""
        memory: Memory = self._scratch.hold(elements * dtype.itemsize, piece)
        return memory

    def _new_scratch(self, size: int) -> Memory:
        return Memory(self._cupy.empty(size, np.uint8))

    def wait(self) -> None:
        try:
            with self._gpu:
                self._cupy.cuda.get_current_stream().synchronize()
        except self._cupy.cuda.runtime.CUDARuntimeError as error:  # an illegal address, for instance
            raise KernelFault(str(error)) from error

    def download(self, buffer: Buffer, array: Array) -> None:
        if array.size:
            with self._gpu:
                buffer.array.get(out=array)
                self._cupy.cuda.get_current_stream().synchronize()

    def release(self, buffer: Buffer) -> None:
        buffer.array = None

    def adopt(self, array: Any) -> Adopted | None:
        """Arrays in this GPU's memory: CuPy's, and others with DLPack or `__cuda_array_interface__`.

        CuPy's own are used in the order of the calling thread's current stream, as its kernels use them. For others,
        CuPy makes that stream wait, or waits for the stream that they name.
        """
        with self._gpu:
            view = self._view(array)
        if view is None:
            return None
        if view.device.id != self._gpu.id:
            raise TypeError(f"it lies on GPU {view.device.id}, and this is GPU {self._gpu.id}; copy it there first")
        if not view.size:
            return Adopted(None, view.shape, view.dtype, 0)
        if not view.flags.c_contiguous:
            raise foreign_arrays.out_of_order()
        return Adopted(Memory(view.reshape(-1)), view.shape, view.dtype, view.data.ptr, foreign_arrays.writable(array))

    def _view(self, array: Any) -> cupy.ndarray | None:
        """CuPy's view of an array on a GPU, without a copy. None for an array elsewhere."""
        if isinstance(array, self._cupy.ndarray):
            return array
        if foreign_arrays.dlpack_memory(array) in (foreign_arrays.Memory.CUDA, foreign_arrays.Memory.CUDA_MANAGED):
            return self._cupy.from_dlpack(array)
        if not hasattr(array, "__cuda_array_interface__"):
            return None
        view = self._cupy.asarray(array)
        if view.size and view.data.ptr != array.__cuda_array_interface__["data"][0]:
            raise TypeError("it lies on another GPU; copy it to this one first")  # as CuPy just did
        return view

    def new(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> cupy.ndarray:
        with self._gpu:
            return self._cupy.empty(shape, dtype)


def _version(driver: _nvidia_driver.Driver) -> str:
    """CuPy's version, after a check that it works with that driver. BackendUnavailable if it does not."""
    cupy = _wheels.imported("cupy", "CuPy", driver.extra)
    try:
        cupy.cuda.runtime.getDeviceCount()
        cupy.cuda.nvrtc.getVersion()
    except (RuntimeError, ImportError, OSError) as error:  # a CuPy for another CUDA, or without its compiler
        fix = pip_install(driver.extra)
        raise BackendUnavailable(f"CuPy {cupy.__version__} does not work here: {error}", fix) from error
    return f"CuPy {cupy.__version__}"


def _dotted(version: tuple[int, int] | None) -> str:
    return ".".join(map(str, version)) if version else "unknown"
