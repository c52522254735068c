"""OpenCL through pyopencl: kernels in OpenCL C, on every device that has a driver.

Without a driver on the system it runs on Intel's CPU runtime and on PoCL, which come as wheels.
"""

from __future__ import annotations

import importlib
import threading
import time
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from py_backends import _contract, _device_names, _opencl_drivers
from py_backends._contract import Array, BackendUnavailable, Buffer, KernelText, Launch, Target

if TYPE_CHECKING:
    import pyopencl as cl

_INSTALL = 'pip install "py-backends[opencl]"'
_PAUSE = 5e-5
"""Seconds between two looks at whether a launch has ended."""
_TYPES = {"float32": "float", "float64": "double"}


class Backend(_contract.Backend):
    def targets(self) -> list[Target]:
        try:
            found = _devices()
        except BackendUnavailable as missing:
            return [Target.missing(_device_names.INTEL_CPU, missing.reason, missing.fix)]
        return [Target(name, device.name.strip(), _version(device)) for name, device in found.items()]

    def open(self, target: str, threads: int) -> OpenClDevice:
        found = _devices()
        if target not in found:
            raise BackendUnavailable(f"OpenCL has no device {target}", f"there are {', '.join(found)}")
        return OpenClDevice(found[target], threads)


class OpenClDevice(_contract.Device):
    """A device of OpenCL, or as much of it as `threads` allow. Buffers are `pyopencl.Buffer`s.

    Each thread that calls it has a command queue and kernels of its own: a kernel keeps its arguments.
    """

    def __init__(self, device: cl.Device, threads: int) -> None:
        import pyopencl as cl

        self._cl = cl
        self._device = device
        # Intel's runtime computes on one thread of its own at least, and on the one that waits.
        self._aside = threads == 1 and _device_names.slug(_facts(device)) == _device_names.INTEL_CPU
        if device.type & cl.device_type.CPU and threads < device.max_compute_units:
            self._device = self._part(device, threads)
        self._context = cl.Context([self._device])
        self._of_thread = threading.local()

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        if dtype == np.float64 and not self._device.double_fp_config:
            raise BackendUnavailable(f"{self._device.name.strip()} does not compute in float64", "use float32")
        kernels = _Kernels(self._program(text, dtype), text.kernel)
        work_items = text.work_items

        def launch(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            groups = work_items.groups(text.named_sizes(sizes))
            items = tuple(count * width for count, width in zip(groups, work_items.group, strict=True))
            kernel = kernels.of_thread
            kernel.set_args(*buffers, *map(np.int64, sizes))
            self._cl.enqueue_nd_range_kernel(self._queue, kernel, items, work_items.group)

        return launch

    def upload(self, array: Array) -> Buffer:
        buffer = self.allocate(array)
        if array.size:
            self._cl.enqueue_copy(self._queue, buffer, array, is_blocking=True)
        return buffer

    def allocate(self, array: Array) -> Buffer:
        most = self._device.max_mem_alloc_size
        if array.nbytes > most:
            raise MemoryError(
                f"{self._device.name.strip()} holds at most {most / 2**30:.1f} GiB in one array, "
                f"not {array.nbytes / 2**30:.1f}"
            )
        size = max(array.nbytes, array.itemsize)  # OpenCL has no empty buffers
        return self._cl.Buffer(self._context, self._cl.mem_flags.READ_WRITE, size)

    def wait(self) -> None:
        queue = self._queue
        if self._aside:
            done = self._cl.enqueue_marker(queue)
            queue.flush()
            while done.command_execution_status > self._cl.command_execution_status.COMPLETE:
                time.sleep(_PAUSE)
        queue.finish()

    def download(self, buffer: Buffer, array: Array) -> None:
        if array.size:
            self._cl.enqueue_copy(self._queue, array, buffer, is_blocking=True)

    def release(self, buffer: Buffer) -> None:
        buffer.release()

    @property
    def _queue(self) -> cl.CommandQueue:
        """The calling thread's queue: commands run in order, and `finish` waits for this thread's alone."""
        queue = getattr(self._of_thread, "queue", None)
        if queue is None:
            queue = self._of_thread.queue = self._cl.CommandQueue(self._context, self._device)
        return queue

    def _part(self, device: cl.Device, threads: int) -> cl.Device:
        """A sub-device of that many threads; the whole one, with a note, where the driver refuses."""
        try:
            partition: list[Any] = [self._cl.device_partition_property.BY_COUNTS, threads, 0]
            return device.create_sub_devices(partition)[0]
        except self._cl.Error:
            self.note = f"its driver cannot use {threads} of its {device.max_compute_units} threads: all run"
            return device

    def _program(self, text: KernelText, dtype: np.dtype[Any]) -> cl.Program:
        source = f'#line 1 "{text.path.name}"\n{text.text}'
        if "cl_khr_fp64" in self._device.extensions:  # before OpenCL 1.2 double has to be switched on
            source = f"#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n{source}"
        # pyopencl's own cache fails where the home cannot be written; drivers have theirs.
        uncached: Any = {"cache_dir": False}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", self._cl.CompilerWarning)  # Intel's compiler tells how it went
            program: cl.Program = self._cl.Program(self._context, source).build(f"-DT={_TYPES[dtype.name]}", **uncached)
        return program


class _Kernels:
    """One kernel of a program, made anew for each thread that asks."""

    def __init__(self, program: cl.Program, name: str) -> None:
        self._program, self._name = program, name
        self._of_thread = threading.local()
        _ = self.of_thread  # a missing name shows here, not at the first launch

    @property
    def of_thread(self) -> cl.Kernel:
        import pyopencl as cl

        kernel = getattr(self._of_thread, "kernel", None)
        if kernel is None:
            kernel = self._of_thread.kernel = cl.Kernel(self._program, self._name)
        return kernel


def _devices() -> dict[str, cl.Device]:
    """Every device by its target's name; BackendUnavailable where there is none."""
    _opencl_drivers.find()
    try:
        importlib.import_module("pyopencl")
    except ImportError as error:
        absent = isinstance(error, ModuleNotFoundError) and error.name == "pyopencl"
        raise BackendUnavailable("pyopencl is not installed" if absent else f"pyopencl: {error}", _INSTALL) from error
    devices = [device for platform in _platforms() for device in _devices_of(platform)]
    if not devices:
        raise BackendUnavailable("pyopencl finds no OpenCL device", _INSTALL)
    return _device_names.named(devices, _facts)


def _platforms() -> list[cl.Platform]:
    """The drivers, each once: a loader that knows two ways to a driver lists it twice."""
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
