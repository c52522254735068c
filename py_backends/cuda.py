"""CUDA C++ through CuPy, on every NVIDIA GPU.

Without a GPU the unchanged kernels are compiled for SYCL, behind a prelude, and checked on the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from py_backends import _contract, _nvidia_driver, _sycl
from py_backends._contract import Array, BackendUnavailable, Buffer, KernelFault, KernelText, Launch, Target, WorkItems

if TYPE_CHECKING:
    import cupy
    import dpctl

_EMULATED = "emulated"
_EMULATE = 'pip install "py-backends[cpu]"'
_ON_A_GPU = 'pip install "py-backends[cuda12]"'
_MOST_GROUPS = (2**31 - 1, 65535, 65535)
"""The largest grid in each dimension. In y and z kernels take what is beyond it in strides; beyond x's there
would be more elements than any device's memory holds."""


class Backend(_contract.Backend):
    def targets(self) -> list[Target]:
        driver = _nvidia_driver.driver()
        if driver.reason is not None:
            return [_emulated(f"{driver.reason} on this machine", driver.fix)]
        try:
            version = f"{_cupy_version(driver)}, driver for CUDA {_dotted(driver.version)}"
        except BackendUnavailable as missing:
            absent = [
                Target(name, device, reason=missing.reason, fix=missing.fix, available=False)
                for name, device in zip(driver.targets, driver.devices, strict=True)
            ]
            emulated = _emulated(missing.reason, missing.fix)
            return [*absent, emulated] if emulated.available else absent
        return [Target(name, device, version) for name, device in zip(driver.targets, driver.devices, strict=True)]

    def open(self, target: str, threads: int) -> _contract.Device:
        if target == _EMULATED:
            return Emulation(_cpu(), threads)
        driver = _nvidia_driver.driver()
        if driver.reason is not None:
            raise BackendUnavailable(driver.reason, driver.fix)
        _cupy_version(driver)
        if target not in driver.targets:
            raise BackendUnavailable(f"CUDA has no device {target}", f"there are {', '.join(driver.targets)}")
        return Gpu(driver.targets.index(target))


@dataclass
class Memory:
    """Memory of a GPU; None once it has been released."""

    array: cupy.ndarray | None


class Gpu(_contract.Device):
    """One NVIDIA GPU. Buffers are `Memory`. Kernels run on the calling thread's current stream of CuPy."""

    def __init__(self, ordinal: int) -> None:
        import cupy

        self._cupy = cupy
        self._gpu = cupy.cuda.Device(ordinal)

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        name = f"{text.kernel}<{_sycl.TYPES[dtype.name]}>"
        work_items = text.work_items
        with self._gpu:
            module = self._cupy.RawModule(code=text.text, options=("-std=c++17",), name_expressions=(name,))
            kernel = module.get_function(name)

        def launch(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            grid = _grid(work_items, text.named_sizes(sizes))
            arguments = (*(buffer.array for buffer in buffers), *map(np.int64, sizes))
            with self._gpu:
                kernel(grid, work_items.group, arguments)

        return launch

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


class Emulation(_sycl.Device):
    """A CPU in place of a GPU: a work item for each thread, a work group for each block."""

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        prelude = Path(__file__).with_name("_cuda_on_sycl.hpp").read_text(encoding="utf-8")
        (start,) = self.compiled(text, dtype, [text.kernel], prelude)
        work_items = text.work_items
        group = _three(work_items.group)

        def launch(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            start(buffers, sizes, _three(_grid(work_items, text.named_sizes(sizes))), group)

        return launch


def _grid(work_items: WorkItems, sizes: dict[str, int]) -> tuple[int, ...]:
    return tuple(min(count, most) for count, most in zip(work_items.groups(sizes), _MOST_GROUPS, strict=False))


def _three(counts: Sequence[int]) -> tuple[int, ...]:
    """CUDA's grids and blocks always have three dimensions."""
    return (*counts, 1, 1)[:3]


def _cupy_version(driver: _nvidia_driver.Driver) -> str:
    """CuPy's version, once it is known to work with that driver; BackendUnavailable where it does not."""
    fix = f'pip install "py-backends[{driver.extra}]"'
    try:
        import cupy
    except ImportError as error:
        absent = isinstance(error, ModuleNotFoundError) and error.name == "cupy"
        raise BackendUnavailable("CuPy is not installed" if absent else f"CuPy: {error}", fix) from error
    try:
        cupy.cuda.runtime.getDeviceCount()
        cupy.cuda.nvrtc.getVersion()
    except (RuntimeError, ImportError, OSError) as error:  # a CuPy for another CUDA, or without its compiler
        raise BackendUnavailable(f"CuPy {cupy.__version__} does not work here: {error}", fix) from error
    return f"CuPy {cupy.__version__}"


def _emulated(reason: str, fix: str | None) -> Target:
    """The emulation, because of `reason`; or why not even that is there."""
    try:
        cpu = _cpu()
    except BackendUnavailable as missing:
        return Target.missing(
            _EMULATED,
            f"{reason}, and what checks its kernels on the CPU is missing: {missing.reason}",
            f"{missing.fix} checks them on the CPU; a GPU needs {_ON_A_GPU}",
        )
    return Target(_EMULATED, cpu.name.strip(), _sycl.version(cpu), reason, fix, emulated=True)


def _cpu() -> dpctl.SyclDevice:
    """The CPU as a device of SYCL; BackendUnavailable where there is none that can compile."""
    cpus = [device for device in _sycl.devices(_EMULATE).values() if device.is_cpu and _sycl.can_compile(device)]
    if not cpus:
        raise BackendUnavailable("SYCL has no CPU that compiles kernels", _EMULATE)
    return cpus[0]


def _dotted(version: tuple[int, int] | None) -> str:
    return ".".join(map(str, version)) if version else "unknown"
