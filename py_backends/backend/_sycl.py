"""What the backends that compile for SYCL share: its devices, and kernels compiled and launched on them.

The SYCL runtime that comes with dpctl compiles SYCL source at run time. dpctl itself has the devices and their memory.
An extension module of ours connects the two.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from py_backends import _compiled
from py_backends.backend import _device_names, _kernel_keys, _opencl_drivers, _queues, _wheels
from py_backends.backend._queues import Event, Start
from py_backends.contract import Adopted, Array, Buffer
from py_backends.errors import BackendUnavailable
from py_backends.functions import foreign_arrays
from py_backends.install import pip_install
from py_backends.number_formats import number_format
from py_backends.system import kernel_store
from py_backends.wording import in_one_line

if TYPE_CHECKING:
    import dpctl

_HEADERS = "-isystem"
_END_OF_NAMES = b"\0"
_CACHE_LINE = 64
"""Alignment of a device's memory in bytes, so that no vector of 64 bytes lies in two cache lines."""
_CHOOSE_DEVICES = "ONEAPI_DEVICE_SELECTOR", "SYCL_DEVICE_ALLOWLIST"
"""Variables by which the user chooses among devices, for all programs alike."""
_OPTIONS = (
    "-fno-sycl-id-queries-fit-in-int",  # there may be more than 2^31 work items
    "-fno-sycl-dead-args-optimization",  # a kernel that was kept takes all of its arguments
)


Usm = Any
"""dpctl's `MemoryUSMDevice`, `MemoryUSMShared` or `MemoryUSMHost`."""


@dataclass
class Memory:
    """Memory that a device can reach, kept until it is released."""

    address: int
    size: int
    """Its size in bytes."""
    owner: Array | Usm | None
    """Its owner, which is the caller's array if the device computes in place. None once it has been released."""
    adopted: bool = False
    """Whether it is an array of the caller's that lies on a device."""


class UsmArray:
    """An array in memory of a SYCL device (USM), C-contiguous: what a call with `to="device"` returns.

    shape, dtype: as in NumPy.
    memory: holds its elements, as a `dpctl.memory.MemoryUSMDevice`. For a CPU that computes in all of its process's
        memory, it is a `MemoryUSMShared`, for any number of threads.

    Its `__sycl_usm_array_interface__` lets these functions and `dpnp.tensor.asarray` use it without a copy.
    (`dpnp.asarray` makes a copy.) `get()` copies it to the host.
    """

    def __init__(self, memory: Usm, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.memory, self.shape, self.dtype = memory, shape, dtype

    @property
    def __sycl_usm_array_interface__(self) -> dict[str, Any]:
        """What dpctl defines: https://intelpython.github.io/dpctl/latest/api_reference/dpctl/sycl_usm_array_interface.html."""
        interface: dict[str, Any] = self.memory.__sycl_usm_array_interface__
        data = interface["data"][0], False  # that is, not read-only
        return interface | {"data": data, "shape": self.shape, "typestr": self.dtype.str}

    def get(self) -> Array:
        """A copy as a NumPy array."""
        array = np.empty(self.shape, self.dtype)
        if array.size:
            self.memory.copy_to_host(array.reshape(-1).view(np.uint8))
        return array

    def __repr__(self) -> str:
        return f"<UsmArray of shape {self.shape} and dtype {self.dtype} on {self.memory.sycl_device.name}>"


class Device(_queues.Device):
    """A device of SYCL, or as much of it as `threads` allow. Buffers are `Memory`.

    A CPU that can reach all of its process's memory computes in the arrays themselves. Any other device gets copies in
    memory of its own.

    form: what its kernels are written for, as in `_queues.Device`.
    """

    def __init__(self, device: dpctl.SyclDevice, threads: int, form: str | None = None) -> None:
        import dpctl

        self._compiler = _compiled.load("sycl_compiler")
        # Intel's runtime computes on at least one thread of its own, and on the one that waits.
        self._aside = device.is_cpu and threads == 1
        self._in_place = device.is_cpu and device.has_aspect_usm_system_allocations
        refusal = dpctl.SyclSubDeviceCreationError
        super().__init__(
            device,
            threads,
            form,
            on_cpu=device.is_cpu,
            part=lambda: device.create_sub_devices(partition=[threads])[0],
            refusal=refusal,
        )
        self._context = dpctl.SyclContext(self._device)

    def compiled(
        self,
        source: Path,
        dtype: np.dtype[Any],
        names: Sequence[str],
        prelude: str = "",
        macros: Sequence[str] = (),
    ) -> list[Start]:
        """Compile function templates of a source, after a prelude, with macros such as `LANES=8`.

        Raises RuntimeError with the compiler's log, and BackendUnavailable if the device lacks the dtype.
        """
        if dtype == np.float64 and not self._device.has_aspect_fp64:
            raise BackendUnavailable(f"{self._device.name} does not compute in float64", "use float32")
        instances = [f"{name}<{number_format(dtype).c}>" for name in names]
        headers = standard_headers(Path(str(self._compiler.__file__)).parent)
        options = [*_OPTIONS, *headers, *(f"-D{macro}" for macro in macros)]
        text = source.read_text(encoding="utf-8", errors="replace")  # other encodings may stand in comments

        def compiled() -> tuple[list[Any], bytes | None]:
            included = f"-I{source.parent}"  # sources include files by names relative to their own
            whole = self._queue, prelude, source.name, text, instances, [*options, included]
            kernels, names_in_code, code = self._compiler.compile(*whole)
            if not code or key() != before:  # a file that it includes was changed meanwhile
                return kernels, None
            return kernels, "\n".join(names_in_code).encode() + _END_OF_NAMES + code

        def load(kept: bytes) -> list[Any]:
            names_in_code, _, code = kept.partition(_END_OF_NAMES)
            kernels: list[Any] = self._compiler.load(self._queue, names_in_code.decode().split("\n"), code)
            return kernels

        def key() -> str | None:
            with contextlib.suppress(OSError):  # not everything that it depends on can be read
                brought = [_kernel_keys.of_folder(each.removeprefix(_HEADERS)) for each in headers if _HEADERS in each]
                return self._key(source, text, prelude, [*instances, *options, *brought])
            return None

        before = key()
        return [self._start(kernel) for kernel in kernel_store.kept(before, load, compiled)]

    def _key(self, source: Path, text: str, prelude: str, told: Sequence[str]) -> str | None:
        """What names compiled kernels in the store; None if they cannot be kept.

        told: what the compiler is told beside the source.
        """
        files = _kernel_keys.files_read(source, text.encode())
        if files is None:
            return None
        platform, extension = self._device.sycl_platform, Path(str(self._compiler.__file__)).stat()
        device = platform.name, platform.version, self._device.name, version(self._device)
        compiler = f"{extension.st_size} {extension.st_mtime_ns}", _kernel_keys.of_system()
        return kernel_store.key("sycl", *device, *compiler, prelude, "\0".join(told), *files)

    def _start(self, kernel: Any) -> Start:
        def start(
            buffers: Sequence[Buffer], sizes: Sequence[Any], groups: Sequence[int], group: Sequence[int]
        ) -> Event:
            assert all(buffer.owner is not None for buffer in buffers), "memory that has been released"
            addresses = [buffer.address for buffer in buffers]
            # The last dimension of SYCL is the fastest.
            return self._compiler.launch(self._queue, kernel, addresses, sizes, groups[::-1], group[::-1])

        return start

    def upload(self, array: Array) -> Buffer:
        memory = self.allocate(array)
        if array.size and memory.owner is not array:
            memory.owner.copy_from_host(array.view(np.uint8))
        return memory

    def allocate(self, array: Array) -> Buffer:
        if self._in_place:
            return Memory(array.ctypes.data, array.nbytes, array)
        return self._new_scratch(array.nbytes)

    def wait(self) -> None:
        self._compiler.wait(self._queue, self._aside)

    def _seconds(self, first: Event, last: Event) -> float:
        taken: float = self._compiler.seconds(first, last)
        return taken

    def download(self, buffer: Buffer, array: Array) -> None:
        if buffer.owner is array:
            self.wait()  # the elements are there once all is done; a copy would also wait for that
        elif array.size:
            buffer.owner.copy_to_host(array.view(np.uint8))

    def release(self, buffer: Buffer) -> None:
        self.wait()  # after an interrupted wait a kernel may still write to it, and freeing does not wait
        buffer.owner = None

    def adopt(self, array: Any) -> Adopted | None:
        """Arrays with `__sycl_usm_array_interface__`, in USM of this device and its default context.

        A CPU that can reach all of its process's memory takes host and shared USM of any context. This waits for the
        queue of an array.
        """
        interface = getattr(array, "__sycl_usm_array_interface__", None)
        if interface is None:
            return None
        ours = isinstance(array, UsmArray)  # may have a format that the interface has no name for
        shape, dtype = tuple(interface["shape"]), array.dtype if ours else np.dtype(interface["typestr"])
        if 0 in shape:
            return Adopted(None, shape, dtype, 0)
        if not _in_order(shape, interface.get("strides")):
            raise foreign_arrays.out_of_order()
        from dpctl.memory import as_usm_memory

        usm = array.memory if ours else as_usm_memory(array)
        self._check_reach(usm)
        usm.sycl_queue.wait()
        address = usm.__sycl_usm_array_interface__["data"][0]
        read_only = interface["data"][1]
        return Adopted(Memory(address, usm.nbytes, usm, adopted=True), shape, dtype, address, not read_only)

    def _check_reach(self, usm: Usm) -> None:
        """Raise TypeError for memory that this device's kernels cannot reach."""
        if usm.get_usm_type(self._context) == "unknown":
            if not (self._in_place and usm.get_usm_type() in ("host", "shared")):
                raise TypeError(
                    "it lies in USM of another SYCL context than the backend uses: the default one of its device, or "
                    "with `threads` one of its own; copy it to the host first"
                )
        elif usm.sycl_device != self._device:
            raise TypeError(f"it lies on another SYCL device, {usm.sycl_device.name}; copy it first")

    def new(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> UsmArray:
        from dpctl.memory import MemoryUSMDevice, MemoryUSMShared

        kind = MemoryUSMShared if self._in_place else MemoryUSMDevice
        return UsmArray(self._usm(kind, math.prod(shape) * dtype.itemsize), shape, dtype)

    def _new_scratch(self, size: int) -> Memory:
        from dpctl.memory import MemoryUSMDevice

        usm = self._usm(MemoryUSMDevice, size)
        return Memory(usm.__sycl_usm_array_interface__["data"][0], size, usm)

    def _usm(self, kind: type[Usm], size: int) -> Usm:
        """New USM. MemoryError where the device cannot hold that much in one piece."""
        self._check_size(size)
        return kind(max(size, 1), alignment=_CACHE_LINE, queue=self._queue)  # SYCL has no empty memory

    def _new_queue(self) -> dpctl.SyclQueue:
        return self._compiler.in_order_queue(self._context, self._device, self.profiled)


def _in_order(shape: Sequence[int], strides: Sequence[int] | None) -> bool:
    """Whether elements are consecutive. Strides are counted in elements."""
    expected = 1
    for length, stride in zip(reversed(shape), reversed(strides or ()), strict=False):
        if length > 1 and stride != expected:
            return False
        expected *= length
    return True


def devices(extra: str) -> dict[str, dpctl.SyclDevice]:
    """Every device by its target's name, including those that cannot compile.

    extra: the extra of this distribution that brings dpctl.

    Raises BackendUnavailable if there is no device, or if what compiles for it is missing.
    """
    dpctl = _library(extra)
    _compiled.load("sycl_compiler")
    found = dpctl.get_devices()
    if not found:
        raise why_hidden() or BackendUnavailable("dpctl finds no SYCL device", pip_install(extra))
    return _device_names.named(found, _facts)


def standard_headers(folder: Path) -> list[str]:
    """Options that name the headers of C++ and C which a wheel brings, beside the extension module.

    The SYCL runtime has none, and would use the system's. A machine without a compiler has none, either.
    """
    headers = folder / "headers"
    if not headers.is_dir():
        return []
    return ["-nostdinc++", f"{_HEADERS}{headers / 'c++'}", f"{_HEADERS}{headers / 'c'}"]


def why_hidden() -> BackendUnavailable | None:
    """The variables by which SYCL shows only some of its devices, to be raised where it shows none; None without."""
    chosen = [name for name in _CHOOSE_DEVICES if os.environ.get(name)]
    if not chosen:
        return None
    said = " ".join(f"{name}={os.environ[name]}" for name in chosen)
    return BackendUnavailable(f"{said} leaves no CPU among the devices of SYCL", f"unset {' '.join(chosen)}")


def can_compile(device: dpctl.SyclDevice) -> bool:
    """Whether a device runs kernels that are compiled at run time."""
    answer: bool = _compiled.load("sycl_compiler").can_compile(device)
    return answer


def check(device: dpctl.SyclDevice) -> None:
    """Raise BackendUnavailable where kernels that are compiled at run time do not run on a device."""
    import dpctl

    if not can_compile(device):
        raise BackendUnavailable(
            "its driver does not take SPIR-V, to which SYCL source is compiled at run time",
            "needs a driver with the OpenCL extension cl_khr_il_program",
        )
    try:
        dpctl.SyclContext(device)
    except dpctl.SyclContextCreationError as error:
        why, fix = _opencl_drivers.why_no_context() or (in_one_line(str(error)), None)
        raise BackendUnavailable(f"its driver makes no context here: {why}", fix) from error


def version(device: dpctl.SyclDevice) -> str:
    """The versions of dpctl and of the device's driver."""
    import dpctl

    return f"dpctl {dpctl.__version__}, {device.backend.name} driver {device.driver_version}"


def _library(extra: str) -> Any:
    _opencl_drivers.find()
    _find_temporary_folder()
    for part in ("dpctl.memory", "dpctl.program"):
        _wheels.imported(part, "dpctl", extra, x86_64_only=True)
    return importlib.import_module("dpctl")


def _find_temporary_folder() -> None:
    """Have the compiler use a temporary folder that is there: on clusters TMPDIR may name one of another machine."""
    named = Path(next(filter(None, map(os.environ.get, ("TMPDIR", "TMP", "TEMP", "TEMPDIR"))), "/tmp"))  # noqa: S108
    if not os.access(named, os.W_OK | os.X_OK):
        with contextlib.suppress(OSError):
            os.environ["TMPDIR"] = tempfile.gettempdir()


def _facts(device: dpctl.SyclDevice) -> _device_names.Facts:
    return _device_names.Facts(
        device.name.strip(), device.vendor, device.sycl_platform.name.strip(), device.device_type.name
    )
