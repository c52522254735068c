"""Numba on an NVIDIA GPU: kernels written in Python for one thread of a grid.

Without a GPU its kernels run in Numba's simulator, where every thread of the grid is a thread of Python. That is good
for checking, and useless for timing. Numba chooses between the two when it is imported, by a variable.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import threading
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cache, cached_property, lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from py_backends import contract
from py_backends.backend import _cuda_events, _numba, _nvidia_driver
from py_backends.backend._scratch import Scratch
from py_backends.contract import Adopted, Array, Buffer, Launch, Target
from py_backends.errors import BackendUnavailable, KernelFault
from py_backends.functions import foreign_arrays
from py_backends.install import pip_install
from py_backends.kernel_text import KernelText, Stages
from py_backends.number_formats import COMPILED

_SIMULATOR = MappingProxyType({"NUMBA_ENABLE_CUDASIM": "1"})
_QUIET_LOCK = threading.Lock()
_WORD = 8
"""Scratch memory has a multiple of so many bytes: whole elements of any format."""


class Backend(contract.Backend):
    dtypes = COMPILED

    def targets(self) -> list[Target]:
        driver = _nvidia_driver.driver()
        try:
            _load()
        except BackendUnavailable as missing:
            return [Target.missing("emulated" if driver.reason else driver.targets[0], missing.reason, missing.fix)]
        try:
            _check_gpu()
        except BackendUnavailable as missing:
            return [_emulated(missing)]
        version = f"{_version()}, driver for CUDA {'.'.join(map(str, driver.version or ()))}"
        found = zip(driver.targets, driver.devices, strict=True)
        return [Target(name, device, version, just_in_time=True) for name, device in found]

    def open(self, target: str, threads: int) -> contract.Device:
        numba = _load()
        if target == "emulated":
            if not numba.config.ENABLE_CUDASIM:
                raise BackendUnavailable("Numba's simulator is for checking, in a process that was started for it")
            return Simulator()
        _check_gpu()
        return Gpu(_nvidia_driver.driver().targets.index(target))


class Gpu(_cuda_events.Device):
    """One GPU. Each thread of the caller has a stream of its own, CUDA's per-thread default stream."""

    def __init__(self, ordinal: int) -> None:
        super().__init__()
        self._cuda = cuda = _cuda()
        self._ordinal = ordinal
        self._context = cuda.gpus[ordinal]
        with self._context:
            self._stream = cuda.per_thread_default_stream()
        self._scratch = Scratch(self._new_scratch, self.release)
        # Older GPUs lack the instruction: their events count what the host does meanwhile.
        self._can_sleep = cuda.gpus[ordinal].compute_capability >= (7, 0)

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        stages, problem = text.stages("GPU"), text.problem
        kernels = [getattr(text.load(), name) for name, _ in stages.kernels]
        with self._context:
            for kernel in kernels:
                kernel.compile(_signature(text, dtype, stages))

        @lru_cache
        def configured(at: int, grid: tuple[int, ...], group: tuple[int, ...]) -> Any:
            return _configured(kernels[at], grid, group, self._stream)

        def launch(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            with self._context:
                for at, arguments, lengths, groups, group in stages.launches(
                    problem, dtype, buffers, sizes, self._scratch_of
                ):
                    configured(at, _nvidia_driver.grid(groups), group)(*arguments, *problem.scalars(lengths, dtype))

        return self.recorded(launch)

    def _scratch_of(self, elements: int, dtype: np.dtype[Any], piece: int) -> Buffer:
        """Memory for a launch's own use, on the calling thread's stream."""
        seen = _numba.seen_dtype(dtype)
        count = -(-elements * seen.itemsize // _WORD) * _WORD
        return self._scratch.hold(count, piece).view(seen)

    def _new_scratch(self, size: int) -> Buffer:
        with self._context:
            return self._cuda.device_array(max(size, _WORD), np.uint8, stream=self._stream)

    @property
    def _current(self) -> AbstractContextManager[Any]:
        context: AbstractContextManager[Any] = self._context
        return context

    def _record(self) -> Any:
        event = self._cuda.event()
        event.record(self._stream)
        return event

    def _noted(self, event: Any) -> bool:
        try:
            noted: bool = event.query()
        except self._cuda.cudadrv.driver.CudaAPIError:
            return False
        return noted

    def _milliseconds(self, begin: Any, end: Any) -> float:
        with self._context:
            milliseconds: float = begin.elapsed_time(end)
        return milliseconds

    def _pause(self, microseconds: float) -> None:
        if self._can_sleep:
            self._pausing(np.int64(microseconds))

    @cached_property
    def _pausing(self) -> Any:
        """The compiled kernel."""
        cuda = self._cuda

        def pause(times: int) -> None:
            for _ in range(times):
                cuda.nanosleep(1000)

        return _configured(self._cuda.jit("void(int64)")(pause), (1,), 1, self._stream)

    def upload(self, array: Array) -> Buffer:
        with self._context:
            buffer = self._cuda.to_device(_numba.seen(array), stream=self._stream)
            self._stream.synchronize()
        return buffer

    def allocate(self, array: Array) -> Buffer:
        with self._context:
            return self._cuda.device_array(array.shape, _numba.seen_dtype(array.dtype), stream=self._stream)

    def wait(self) -> None:
        try:
            with self._context:
                self._stream.synchronize()
        except self._cuda.cudadrv.driver.CudaAPIError as error:  # an illegal address, for instance
            raise KernelFault(str(error)) from error

    def download(self, buffer: Buffer, array: Array) -> None:
        with self._context:
            buffer.copy_to_host(_numba.seen(array), stream=self._stream)
            self._stream.synchronize()

    def release(self, buffer: Buffer) -> None:
        """Nothing to do: the memory is freed with the last reference, and Numba has no other way."""

    def adopt(self, array: Any) -> Adopted | None:
        """Arrays in this GPU's memory: Numba's, and others with `__cuda_array_interface__`.

        This waits for the stream that they name. Arrays that name none are ready for the default stream, which the
        per-thread default stream waits for.
        """
        if not hasattr(array, "__cuda_array_interface__"):
            return None
        address = array.__cuda_array_interface__["data"][0]
        with self._context:
            view = self._cuda.as_cuda_array(array)
            own = getattr(array, "dtype", None)
            dtype = own if isinstance(own, np.dtype) else view.dtype  # the interface has no name for bfloat16
            if not view.size:
                return Adopted(None, view.shape, dtype, 0)
            if not view.is_c_contiguous():
                raise foreign_arrays.out_of_order()
            flat, ordinal = view.reshape(view.size), _ordinal_of(address)
            bits = _numba.seen_dtype(dtype)
            buffer = flat if bits == dtype else flat.view(bits)
        if ordinal != self._ordinal:
            raise TypeError(f"it lies on GPU {ordinal}, and this is GPU {self._ordinal}; copy it there first")
        return Adopted(buffer, view.shape, dtype, address, foreign_arrays.writable(array))

    def new(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        with self._context:
            return self._cuda.device_array(shape, dtype)


class Simulator(contract.Device):
    """The same kernels, with a thread of Python for every thread of the grid. Only workers use it.

    Raises BackendUnavailable if the simulator does not start: it loads some of CUDA's own libraries.
    """

    deterministic = True  # each element is one thread's sum in one order

    def __init__(self) -> None:
        _run_nothing("in its simulator", pip_install("cpu"))
        self._cuda = _cuda()
        self._turn = threading.Lock()  # the simulator swaps the kernel's globals while it runs

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        stages, problem = text.stages("GPU"), text.problem
        kernels = [getattr(text.load(), name) for name, _ in stages.kernels]

        def launch(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            with self._turn, warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # infinities are valid results here
                try:
                    for each in stages.launches(problem, dtype, buffers, sizes, self._scratch):
                        numbers = problem.scalars(each.sizes, dtype) if problem.reals else each.sizes
                        kernels[each.at][each.groups, each.group](*each.buffers, *numbers)
                except IndexError as error:  # only a simulator sees this
                    raise KernelFault(f"a thread accessed memory past the end of an array: {error}") from error

        return launch

    def _scratch(self, elements: int, dtype: np.dtype[Any], _piece: int) -> Buffer:
        return self._cuda.device_array(elements, _numba.seen_dtype(dtype))

    def upload(self, array: Array) -> Buffer:
        return self._cuda.to_device(_numba.seen(array))

    def allocate(self, array: Array) -> Buffer:
        return self._cuda.device_array(array.shape, _numba.seen_dtype(array.dtype))

    def wait(self) -> None:
        """Nothing to do: a launch in the simulator returns when the grid is done."""

    def download(self, buffer: Buffer, array: Array) -> None:
        buffer.copy_to_host(_numba.seen(array))

    def release(self, buffer: Buffer) -> None:
        """Nothing to do: the memory is freed with the last reference."""


def _load() -> Any:
    """Numba with its CUDA part. BackendUnavailable if either is missing."""
    driver = _nvidia_driver.driver()
    extra = "cpu" if driver.reason else driver.extra
    numba = _numba.load(extra)
    if importlib.util.find_spec("numba.cuda") is None:
        raise BackendUnavailable("numba-cuda is not installed", pip_install(extra))
    return numba


def _cuda() -> Any:
    return importlib.import_module("numba.cuda")


def _ordinal_of(address: int) -> int:
    """The number of the GPU in whose memory an address lies."""
    from cuda.bindings import driver

    wanted = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    error, ordinal = driver.cuPointerGetAttribute(wanted, address)
    if error != driver.CUresult.CUDA_SUCCESS:
        raise TypeError(f"CUDA does not recognise its memory ({error.name})")
    return int(ordinal)


@cache
def _check_gpu() -> None:
    """Run an empty kernel, which needs the driver, a GPU and CUDA's compiler. BackendUnavailable if it does not run."""
    driver = _nvidia_driver.driver()
    if driver.reason is not None:
        raise BackendUnavailable(driver.reason, driver.fix)
    fix = pip_install(driver.extra)
    if importlib.util.find_spec("numba_cuda") is None:
        raise BackendUnavailable("numba-cuda is not installed", fix)
    if _load().config.ENABLE_CUDASIM:
        raise BackendUnavailable("Numba's CUDA simulator is switched on", "unset NUMBA_ENABLE_CUDASIM")
    _run_nothing("on the GPU", fix)


def _run_nothing(where: str, fix: str) -> None:
    """Run an empty kernel. BackendUnavailable, with what was raised and the fix, if it does not run."""
    try:
        cuda = _cuda()
        with _QUIET_LOCK, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as above: one thread is a small grid
            cuda.jit("void()")(_empty)[1, 1]()
            cuda.synchronize()
    except Exception as error:  # any error of the driver, the compiler or their libraries is the reason
        reason = next(filter(None, map(str.strip, str(error).splitlines())), type(error).__name__)
        raise BackendUnavailable(f"Numba runs no kernel {where}: {reason.rstrip('.:')}", fix) from error


def _configured(kernel: Any, grid: Sequence[int], group: Sequence[int] | int, stream: Any) -> Any:
    """A kernel with its grid. Numba warns of small ones."""
    with _QUIET_LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kernel[grid, group, stream]


def _empty() -> None:
    return


def _emulated(why: BackendUnavailable) -> Target:
    return Target(
        "emulated",
        device="Numba's CUDA simulator on the CPU",
        version=_version(),
        reason=why.reason,
        fix=why.fix,
        emulated=True,
        interpreted=True,
        environment=_SIMULATOR,
    )


def _signature(text: KernelText, dtype: np.dtype[Any], stages: Stages) -> tuple[Any, ...]:
    """The types of one launch: flat arrays, inputs, outputs and scratch, 64-bit sizes and real numbers."""
    numba, problem = _load(), text.problem
    dtypes = [*problem.array_dtypes(dtype), *stages.scratch_dtypes(problem, dtype)]
    arrays = (numba.types.Array(numba.from_dtype(_numba.seen_dtype(each)), 1, "C") for each in dtypes)
    return (*arrays, *map(numba.typeof, problem.scalars(problem.default_sizes, dtype)))


def _version() -> str:
    """The versions of Numba, and of numba-cuda if it is installed. Numba also contains an older version of that."""
    numba = f"Numba {importlib.metadata.version('numba')}"
    try:
        return f"{numba}, numba-cuda {importlib.metadata.version('numba-cuda')}"
    except importlib.metadata.PackageNotFoundError:
        return numba
