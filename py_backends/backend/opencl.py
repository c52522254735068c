"""OpenCL through pyopencl: kernels in OpenCL C, on every device that has a driver.

Without a driver on the system it runs on Intel's CPU runtime and on PoCL, which come as wheels.
"""

from __future__ import annotations

import contextlib
import functools
import math
import threading
import time
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from py_backends import contract
from py_backends.backend import _device_names, _kernel_keys, _opencl_drivers, _opencl_launch, _queues, _wheels
from py_backends.contract import Adopted, Array, Buffer, Target
from py_backends.errors import BackendUnavailable
from py_backends.functions import foreign_arrays
from py_backends.install import other_architecture, pip_install
from py_backends.kernel_text import KernelText
from py_backends.number_formats import COMPILED, number_format
from py_backends.system import kernel_store

if TYPE_CHECKING:
    import pyopencl as cl
    import pyopencl.array as cl_array

_A_DRIVER = "install a driver for it, for instance your distribution's pocl-opencl-icd"
"""The fix where no wheel brings a driver."""
_PAUSE = 5e-5
"""Seconds between two checks whether a launch has ended."""
_BUILDING = threading.Lock()
"""Held by the thread that builds, since all threads of a process share the filters of warnings."""
_CACHE_LINE = 128
"""Alignment in bytes of the longest vector, and of a cache line."""
_AVX, _AVX_ALONE = 32, "avx_alone"
"""Bytes of a vector of AVX, and the name of a kernel that exists where a compiler uses no longer ones."""
_WHAT_COMPILER_USES = f"""
kernel void nothing(void) {{}}
#if defined(__AVX__) && !defined(__AVX512F__)
kernel void {_AVX_ALONE}(void) {{}}
#endif
"""
_OURS = "kernel_"
"""How the names of kernels begin for drivers. PoCL renames OpenCL's own functions by macros, and kernels such as `dot`
with them."""
_KEEPS_ITS_OWN = "Portable Computing Language"
"""The platform that keeps what it compiles itself: PoCL."""
FORMATS = Path(__file__).parent / "_opencl_formats.cl"
"""How sources widen and narrow elements."""


class Backend(contract.Backend):
    dtypes = COMPILED
    obeys = ("CL_CONFIG_", "POCL_")

    def targets(self) -> list[Target]:
        try:
            found = _devices()
        except BackendUnavailable as missing:
            return [Target.missing(_device_names.usual_cpu(), missing.reason, missing.fix)]
        return [_target(name, device) for name, device in found.items()]

    def open(self, target: str, threads: int) -> OpenClDevice:
        found = _devices()
        if target not in found:
            raise BackendUnavailable(f"OpenCL has no device {target}", f"there are {', '.join(found)}")
        _check_driver(found[target])
        return OpenClDevice(found[target], threads)


class OpenClDevice(_queues.Device):
    """A device of OpenCL, or as much of it as `threads` allow. Buffers are `pyopencl.Buffer`s.

    On a CPU they use the caller's own memory, elsewhere the device's. Each calling thread has kernels of its own too,
    since a kernel keeps its arguments.

    form: the kind of device that its kernels are written for, `CPU` or `GPU`; None for the device's own kind.
    """

    def __init__(self, device: cl.Device, threads: int, form: str | None = None) -> None:
        import pyopencl as cl

        self._cl = cl
        # Intel's runtime computes on at least one thread of its own, and on the one that waits.
        self._aside = threads == 1 and _device_names.slug(_facts(device)) == _device_names.INTEL_CPU
        self._in_place = bool(device.type & cl.device_type.CPU)
        counts: list[Any] = [cl.device_partition_property.BY_COUNTS, threads, 0]
        super().__init__(
            device,
            threads,
            form,
            on_cpu=self._in_place,
            part=lambda: device.create_sub_devices(counts)[0],
            refusal=cl.Error,
        )
        self._context = cl.Context([self._device])

    def _lanes_and_cache(self, sums: np.dtype[Any]) -> tuple[int, int]:
        """No longer vectors than the compiler uses.

        PoCL's wheel compiles for Zen 3 on a Zen 4, and yet says 64 bytes. It ends the process where a source hands such
        a vector to a function of its library, which was compiled for AVX-512.
        """
        lanes, cache = super()._lanes_and_cache(sums)
        if lanes * sums.itemsize > _AVX and self._compiles_for_avx_alone:
            lanes = _AVX // sums.itemsize
        return lanes, cache

    @functools.cached_property
    def _compiles_for_avx_alone(self) -> bool:
        return _AVX_ALONE in _built_or_kept(self._context, _WHAT_COMPILER_USES).kernel_names

    def _starts(self, text: KernelText, dtype: np.dtype[Any], names: Sequence[str]) -> list[_queues.Start]:
        if dtype == np.float64 and not self._device.double_fp_config:
            raise BackendUnavailable(f"{self._device.name.strip()} does not compute in float64", "use float32")
        kernels = _Kernels(self._program(text, dtype, names), names)
        return [partial(self._start, kernels, at) for at in range(len(names))]

    def _start(
        self,
        kernels: _Kernels,
        at: int,
        buffers: Sequence[Buffer],
        sizes: Sequence[Any],
        groups: Sequence[int],
        group: Sequence[int],
    ) -> cl.Event:
        ours = kernels.of_thread
        kernel = ours[at]
        items = tuple(count * width for count, width in zip(groups, group, strict=True))
        kernel.set_args(*buffers, *sizes)
        event = self._cl.enqueue_nd_range_kernel(self._queue, kernel, items, tuple(group))
        if at == len(ours) - 1:
            # Otherwise Intel's runtime begins only with the wait, and sometimes on the waiting thread alone.
            self._queue.flush()
        return event

    def upload(self, array: Array) -> Buffer:
        buffer = self.allocate(array)
        if array.size and not self._in_place:
            self._cl.enqueue_copy(self._queue, buffer, array, is_blocking=True)
        return buffer

    def allocate(self, array: Array) -> Buffer:
        if not (self._in_place and array.size):
            return self._memory(array.nbytes)
        self._check_size(array.nbytes)
        # Intel's runtime would copy memory that kernels may only read.
        flags = self._cl.mem_flags.READ_WRITE | self._cl.mem_flags.USE_HOST_PTR
        return self._cl.Buffer(self._context, flags, hostbuf=np.asarray(_Writable(array)))

    def wait(self) -> None:
        queue = self._queue
        if self._aside:
            done = self._cl.enqueue_marker(queue)
            queue.flush()
            while done.command_execution_status > self._cl.command_execution_status.COMPLETE:
                time.sleep(_PAUSE)
        queue.finish()

    def _seconds(self, first: cl.Event, last: cl.Event) -> float:
        nanoseconds: int = last.profile.end - first.profile.start
        return nanoseconds / 1e9

    def download(self, buffer: Buffer, array: Array) -> None:
        if not array.size:
            return
        if not self._in_place:
            self._cl.enqueue_copy(self._queue, array, buffer, is_blocking=True)
            return
        # The elements are in their place, but only a map guarantees that the host can see them.
        queue, read = self._queue, self._cl.map_flags.READ
        mapped, _ = self._cl.enqueue_map_buffer(queue, buffer, read, 0, array.shape, array.dtype, is_blocking=True)
        mapped.base.release(queue)

    def release(self, buffer: Buffer) -> None:
        self._of_thread.events = None  # they would keep the buffer alive until the next launch
        if self._in_place:
            self._queue.finish()  # after an interrupted wait a kernel may still write to the caller's memory
        buffer.release()

    def adopt(self, array: Any) -> Adopted | None:
        """Arrays of pyopencl in this device's context, which is that of its earlier results.

        This waits for their events and their queue.
        """
        from pyopencl.array import Array as ClArray

        if not isinstance(array, ClArray):
            return None
        if not array.size:
            return Adopted(None, array.shape, array.dtype, 0)
        if not array.flags.c_contiguous:
            raise foreign_arrays.out_of_order()
        memory = array.base_data
        if array.context != self._context or not isinstance(memory, self._cl.MemoryObjectHolder):
            raise TypeError(
                "it lies in another OpenCL context, or in SVM; copy it first with .get(), or make it with the queue of "
                "an array that a call with to='device' returned"
            )
        array.finish()
        if array.queue is not None:
            array.queue.finish()
        buffer = self._cl.Buffer.from_int_ptr(memory.int_ptr, retain=True)  # which can be released
        if array.offset:
            buffer = self._part_of(buffer, array)
        # Buffers have no addresses to compare. These made-up ones are at least 2^64 apart.
        return Adopted(buffer, array.shape, array.dtype, (memory.int_ptr << 64) + array.offset)

    def _part_of(self, buffer: cl.Buffer, array: cl_array.Array) -> cl.Buffer:
        """The buffer from the beginning of the array on."""
        alignment = self._device.mem_base_addr_align // 8  # OpenCL counts bits
        if array.offset % alignment:
            raise TypeError(
                f"it begins {array.offset} bytes behind the start of its buffer, and OpenCL lets kernels begin at "
                f"multiples of {alignment} only; copy it first"
            )
        return buffer.get_sub_region(array.offset, array.nbytes)

    def new(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> cl_array.Array:
        from pyopencl.array import Array as ClArray

        size = math.prod(shape) * dtype.itemsize
        return ClArray(self._queue, shape, dtype, data=self._memory(size) if size else None)

    def _memory(self, size: int) -> cl.Buffer:
        """Memory of the device itself. MemoryError where there is too little."""
        self._check_size(size)
        size = max(size, 1)  # OpenCL has no empty buffers
        try:
            return self._cl.Buffer(self._context, self._cl.mem_flags.READ_WRITE, size)
        except self._cl.MemoryError as error:
            name = self._device.name.strip()
            raise MemoryError(f"{name} has no {size / 2**30:.1f} GiB left: {error}") from error

    def _new_scratch(self, size: int) -> cl.Buffer:
        """Memory of the device; of a CPU, memory of the host that begins with a cache line.

        That is NumPy's, which asks the system for large pages; drivers do not.
        """
        if not self._in_place:
            return self._memory(size)
        self._check_size(size)
        memory = np.empty(max(size, 1) + _CACHE_LINE, np.uint8)
        begin = -memory.ctypes.data % _CACHE_LINE
        return self.allocate(memory[begin : begin + max(size, 1)])

    def _new_queue(self) -> cl.CommandQueue:
        recording = self._cl.command_queue_properties.PROFILING_ENABLE if self.profiled else 0
        return self._cl.CommandQueue(self._context, self._device, properties=recording)

    def _program(self, text: KernelText, dtype: np.dtype[Any], names: Sequence[str]) -> cl.Program:
        _opencl_launch.check(self._device.platform.name)  # folders fill up
        renamed = "".join(f"#undef {name}\n#define {name} {_OURS}{name}\n" for name in names)
        source = f'{FORMATS.read_text(encoding="utf-8")}{renamed}#line 1 "{text.path.name}"\n{text.text}'
        if "cl_khr_fp64" in self._device.extensions:  # before OpenCL 1.2, double has to be switched on
            source = f"#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n{source}"
        lanes, cache = self._lanes_and_cache(text.problem.sum_dtype(dtype))
        facts = {**types(text.problem, dtype, lanes), "CACHE_BYTES": f"{cache}L", self._form: "1"}
        if "cl_khr_fp16" in self._device.extensions:  # compilers also define it for devices that lack it
            facts["HAS_HALF"] = "1"
        return _built_or_kept(self._context, source, [f"-D{name}={value}" for name, value in facts.items()])


class _Kernels:
    """Kernels of a program, a new one for each calling thread."""

    def __init__(self, program: cl.Program, names: Sequence[str]) -> None:
        import pyopencl as cl

        self._program, self._names = program, names
        self._of_thread = threading.local()
        try:
            _ = self.of_thread  # so a missing name shows here, not at the first launch
        except cl.LogicError as error:
            raise ValueError(f"the source has no kernel of the name {' or '.join(names)}: {error}") from error

    @property
    def of_thread(self) -> list[cl.Kernel]:
        import pyopencl as cl

        kernels: list[cl.Kernel] | None = getattr(self._of_thread, "kernels", None)
        if kernels is None:
            kernels = self._of_thread.kernels = [cl.Kernel(self._program, f"{_OURS}{name}") for name in self._names]
        return kernels


class _Writable:
    """Presents an array to NumPy as writable, and keeps it alive.

    pyopencl takes no read-only array for memory that kernels may write to. Intel's runtime copies any other memory.
    """

    def __init__(self, array: Array) -> None:
        self._array = array
        self.__array_interface__ = dict(array.__array_interface__, data=(array.ctypes.data, False))


def types(problem: contract.Problem, dtype: np.dtype[Any], lanes: int) -> dict[str, str]:
    """The number format that a source sees, as macros: T for elements, and Sum for what is computed.

    lanes: the length of vectors of either, V and Sums. The names of such vectors end with WIDTH.
    """
    of, sums = number_format(dtype), number_format(problem.sum_dtype(dtype)).c
    kind = of.bits or of.c
    width = str(lanes) if lanes > 1 else ""
    vectors = {"V": kind + width, "Sums": sums + width, "WIDTH": width}
    return {"T": kind, "Sum": sums, **vectors, f"FORMAT_{dtype.name}": "1"}


def _built(context: cl.Context, source: str, options: Sequence[str] = ()) -> cl.Program:
    """A program from the driver's compiler."""
    import pyopencl as cl

    return _linked(cl.Program(context, source), options)


def _built_or_kept(context: cl.Context, source: str, options: Sequence[str] = ()) -> cl.Program:
    """The same, but what was compiled earlier is only loaded. PoCL keeps its kernels itself."""
    import pyopencl as cl

    (device,) = context.devices

    def compiled() -> tuple[cl.Program, bytes | None]:
        program = _built(context, source, options)
        with contextlib.suppress(cl.Error, ValueError):  # a driver need not give any
            (code,) = program.get_info(cl.program_info.BINARIES)
            return program, code or None
        return program, None

    def load(code: bytes) -> cl.Program:
        return _linked(cl.Program(context, [device], [code]), options)

    return kernel_store.kept(_key(device, source, options), load, compiled)


def _key(device: cl.Device, source: str, options: Sequence[str]) -> str | None:
    """What names a program in the store; None if it cannot be kept, or is elsewhere."""
    if device.platform.name == _KEEPS_ITS_OWN or not _kernel_keys.includes_nothing(source.encode()):
        return None
    driver = device.platform.name, device.platform.version, device.name, _version(device)
    with contextlib.suppress(OSError):  # not everything that it depends on can be read
        return kernel_store.key("opencl", *driver, _kernel_keys.of_system(), "\0".join(options), source)
    return None


def _linked(program: cl.Program, options: Sequence[str]) -> cl.Program:
    """The program, built for its device."""
    import pyopencl as cl

    # pyopencl's own cache has no bound, and fails if the home folder is read-only.
    uncached: Any = {"cache_dir": False}
    with _BUILDING, warnings.catch_warnings():
        warnings.simplefilter("ignore", cl.CompilerWarning)  # Intel's compiler warns of its log
        built: cl.Program = program.build(list(options), **uncached)
    return built


def _check_driver(device: cl.Device) -> None:
    """Compile an empty kernel. BackendUnavailable if the driver cannot, such as an old PoCL on a new CPU."""
    import pyopencl as cl

    _opencl_launch.check(device.platform.name)
    try:
        _built(cl.Context([device]), _opencl_launch.EMPTY)
    except cl.Error as error:
        lines = [line.strip() for line in str(error).splitlines()]
        said = next((line for line in lines if line.startswith("error:")), lines[0] if lines else type(error).__name__)
        newer = "install a newer driver for it, for instance your distribution's pocl-opencl-icd"
        of_intel = device.platform.name.startswith("Intel")
        why, fix = (_opencl_drivers.why_no_context() if of_intel else None) or (said, newer)
        raise BackendUnavailable(f"its driver compiles no kernel here: {why}", fix) from error


def _target(name: str, device: cl.Device) -> Target:
    facts = (name, device.name.strip(), _version(device))
    try:
        _check_driver(device)
    except BackendUnavailable as missing:
        return Target(*facts, missing.reason, missing.fix, available=False)
    return Target(*facts, just_in_time=True)


def _devices() -> dict[str, cl.Device]:
    """Every device by its target's name. BackendUnavailable where there is none."""
    _opencl_drivers.find()
    _wheels.imported("pyopencl", "pyopencl", "opencl")
    devices = [device for platform in _platforms() for device in _devices_of(platform)]
    if not devices:
        raise BackendUnavailable(
            "pyopencl finds no OpenCL device", _A_DRIVER if other_architecture() else pip_install("opencl")
        )
    return _device_names.named(devices, _facts)


def _platforms() -> list[cl.Platform]:
    """The drivers, each once. A loader that knows two paths to a driver lists it twice."""
    import pyopencl as cl

    try:
        platforms = cl.get_platforms()
    except cl.Error:  # what the loader says where there is none
        return []
    return list({(platform.name, platform.version): platform for platform in reversed(platforms)}.values())[::-1]


def _devices_of(platform: cl.Platform) -> list[cl.Device]:
    import pyopencl as cl

    try:
        return list(platform.get_devices())
    except cl.Error:  # a driver without its device
        return []


def _facts(device: cl.Device) -> _device_names.Facts:
    import pyopencl as cl

    kinds = {cl.device_type.GPU: "gpu", cl.device_type.CPU: "cpu"}
    kind = next((name for flag, name in kinds.items() if device.type & flag), "other")
    return _device_names.Facts(device.name.strip(), device.vendor, device.platform.name.strip(), kind)


def _version(device: cl.Device) -> str:
    import pyopencl as cl

    standard = " ".join(device.version.split()[:2])
    return f"pyopencl {cl.VERSION_TEXT}, {standard}, driver {device.driver_version.strip()}"
