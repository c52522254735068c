"""JAX: functions of arrays that never change, which XLA compiles for the sizes and number formats of a call."""

from __future__ import annotations

import importlib.util
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from py_backends import contract
from py_backends.backend import _nvidia_driver, _wheels
from py_backends.contract import Adopted, Array, Buffer, Launch, Target
from py_backends.errors import BackendUnavailable, KernelFault
from py_backends.functions import foreign_arrays
from py_backends.install import pip
from py_backends.kernel_text import KernelText
from py_backends.number_formats import COMPILED
from py_backends.wording import in_one_line

if TYPE_CHECKING:
    import jax

_CPU, _CUDA = "cpu", "cuda"
"""Platforms, as JAX calls them."""
_SETTINGS = {
    "enable_x64": True,
    "numpy_rank_promotion": "allow",
    "numpy_dtype_promotion": "standard",
    "default_matmul_precision": None,
    "debug_nans": False,
    "debug_infs": False,
    "disable_jit": False,
}
"""Those of a caller, of a variable or of `jax.config`, would change a result or raise."""
_POOL = "tf_XLAEigen"
"""What Linux calls each of the threads in which XLA computes on a CPU."""
_CUDA_PLUGINS = ("jax_cuda12_plugin", "jax_cuda13_plugin")
_KEPT = 512
"""Compiled kernels of one source and dtype that are kept, each for its sizes."""
_STARTING = threading.Lock()


class Backend(contract.Backend):
    dtypes = COMPILED
    obeys = ("XLA_FLAGS",)

    def targets(self) -> list[Target]:
        driver = _nvidia_driver.driver()
        gpus = [] if driver.reason else list(zip(driver.targets, driver.devices, strict=True))
        try:
            jax = _load()
        except BackendUnavailable as missing:
            names = [*(name for name, _ in gpus), _CPU]
            return [Target.missing(name, missing.reason, missing.fix) for name in names]
        return [*(_on_gpu(jax, *gpu) for gpu in gpus), _on_cpu(jax)]

    def open(self, target: str, threads: int) -> contract.Device:
        jax = _load()
        if target == _CPU:
            return Device(jax, _started(jax, _CPU, threads)[0], threads)
        ordinal = _nvidia_driver.driver().targets.index(target)
        return Device(jax, _started(jax, _CUDA, threads)[ordinal], threads)


@dataclass
class Box:
    """Holds an array of JAX, which never changes: a launch puts another one in its place.

    array: None once it is released.
    adopted: whether it is a caller's, which a release does not take.
    """

    array: jax.Array | None
    adopted: bool = False


class Device(contract.Device):
    """A CPU or a GPU of JAX. Buffers are boxes.

    Arrays that are placed have exactly the elements that a kernel computes with, and its shapes. What lies behind stays
    on the host, out of a kernel's reach.
    """

    deterministic = True

    def __init__(self, jax: Any, device: Any, threads: int) -> None:
        self._jax, self._device = jax, device
        self._placement = jax.sharding.SingleDeviceSharding(device)
        self._of_thread = threading.local()
        self.on_cpu = device.platform == _CPU
        if self.on_cpu:
            pool = _threads_of_pool()
            self.obeys_threads = pool <= threads
            kept = f"XLA started with {pool} threads in this process, and keeps them. " if pool != threads else ""
            self.note = f"{kept}XLA takes subnormal numbers for zero"

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        return Kernel(self, text, dtype)

    def place(
        self,
        launch: Launch,
        sizes: Sequence[Any],
        arrays: Sequence[Array | Adopted],
        *,
        outputs: int = 1,
        filled: bool = False,
    ) -> list[Buffer]:
        assert isinstance(launch, Kernel)
        launch.compiled(launch.sizes_of_arrays(sizes))
        return super().place(launch, sizes, arrays, outputs=outputs, filled=filled)

    def place_one(self, launch: Launch, sizes: Sequence[Any], at: int, array: Array, *, filled: bool) -> Box:
        """As much of it as these sizes have. A launch gives the outputs' memory away."""
        assert isinstance(launch, Kernel)
        shape = launch.problem.shapes(sizes)[at]
        needed = array[: int(np.prod(shape))].reshape(shape)
        if filled and at >= len(launch.problem.inputs):
            needed = needed.copy()
        return self.upload(needed) if filled else self.allocate(needed)

    def compile(
        self, kernel: Any, arrays: Sequence[tuple[tuple[int, ...], np.dtype[Any]]], outputs: int, numbers: Sequence[Any]
    ) -> Any:
        """A function of arrays and numbers. The last arrays are the outputs, whose memory is used for the results.

        numbers: some of NumPy, of the types of those that will come.
        """
        jax, inputs = self._jax, len(arrays) - outputs
        with self._settings():
            given = [
                *(jax.ShapeDtypeStruct(*array, sharding=self._placement) for array in arrays),
                *(jax.ShapeDtypeStruct((), number.dtype) for number in numbers),
            ]
            compiled = jax.jit(kernel, donate_argnums=range(inputs, len(arrays)), keep_unused=True)
            results = compiled.eval_shape(*given)
            if not isinstance(results, tuple) or len(results) != outputs:
                raise TypeError(f"the kernel has {outputs} outputs, and does not return a tuple of them")
            for result, wanted in zip(results, arrays[inputs:], strict=True):
                if (result.shape, result.dtype) != wanted:
                    raise TypeError(
                        f"the kernel returns {result.dtype} of shape {result.shape}; its result is {wanted[1]} of "
                        f"shape {wanted[0]}"
                    )
            return compiled.lower(*given).compile()

    def launch(self, compiled: Any, boxes: Sequence[Box], outputs: int, numbers: Sequence[Any]) -> None:
        """Start it, and put what it will return into the last boxes."""
        pending = self._of_thread.__dict__.setdefault("pending", {})
        with self._settings(), self._errors():
            made = compiled(*(box.array for box in boxes), *numbers)
        for box, array in zip(boxes[-outputs:], made, strict=True):
            box.array = array
            pending[id(box)] = box

    def wait(self) -> None:
        pending: dict[int, Box] = self._of_thread.__dict__.pop("pending", {})
        with self._errors():
            for box in pending.values():
                if box.array is not None:
                    box.array.block_until_ready()

    @contextmanager
    def _settings(self) -> Iterator[None]:
        """Within, JAX has the settings that kernels are written for, and then the caller's again."""
        jax = self._jax
        with ExitStack() as stack:
            for name, value in _SETTINGS.items():
                if getattr(jax.config, f"jax_{name}") != value:
                    stack.enter_context(getattr(jax, name)(value))
            yield

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except self._jax.errors.JaxRuntimeError as error:
            told = in_one_line(str(error), 1)
            raise (MemoryError if "RESOURCE_EXHAUSTED" in told else KernelFault)(told) from error

    def upload(self, array: Array) -> Box:
        """Without a copy where JAX takes the memory as it lies: aligned to 64 bytes, on the CPU."""
        with self._settings(), self._errors():
            return Box(self._jax.device_put(array, self._placement).block_until_ready())

    def allocate(self, array: Array) -> Box:
        return Box(self.new(array.shape, array.dtype))

    def download(self, buffer: Box, array: Array) -> None:
        if buffer.array is not None and buffer.array.size:
            with self._errors():
                array[: buffer.array.size] = np.asarray(buffer.array).reshape(-1)

    def release(self, buffer: Box) -> None:
        if not buffer.adopted:
            buffer.array = None

    def adopt(self, array: Any) -> Adopted | None:
        """Arrays of JAX on this device, and others with DLPack in the same GPU's memory. They are inputs only."""
        placed = self._view(array)
        if placed is None:
            return None
        if placed.devices() != {self._device}:
            where = ", ".join(sorted(map(str, placed.devices())))
            raise TypeError(f"it lies on {where}, and this is {self._device}; copy it there first")
        box = Box(placed, adopted=True) if placed.size else None
        address = placed.unsafe_buffer_pointer() if placed.size else 0
        return Adopted(box, placed.shape, placed.dtype, address, writable=False)

    def _view(self, array: Any) -> jax.Array | None:
        """JAX's view of an array, without a copy. None for an array elsewhere."""
        if isinstance(array, self._jax.Array):
            placed: jax.Array = array
            return placed
        cuda = (foreign_arrays.Memory.CUDA, foreign_arrays.Memory.CUDA_MANAGED)
        if self.on_cpu or foreign_arrays.dlpack_memory(array) not in cuda:
            return None
        with self._settings():
            view: jax.Array = self._jax.dlpack.from_dlpack(array)
        return view

    def new(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> jax.Array:
        with self._settings(), self._errors():
            made: jax.Array = self._jax.numpy.empty(shape, dtype, device=self._placement)
        return made

    def result(self, made: Any, adopted: Adopted) -> Any:
        return made if adopted.buffer is None else adopted.buffer.array


class Kernel:
    """A kernel in one dtype, compiled for the sizes that come. Numbers that belong to no array are its arguments."""

    def __init__(self, device: Device, text: KernelText, dtype: np.dtype[Any]) -> None:
        self.problem = text.problem
        self._device, self._dtype = device, dtype
        self._function = getattr(text.load(), text.kernel)
        self.compiled = lru_cache(_KEPT)(self._compile)

    def sizes_of_arrays(self, sizes: Sequence[Any]) -> tuple[int, ...]:
        return tuple(sizes[: len(self.problem.dimensions)])

    def numbers(self, sizes: Sequence[Any]) -> tuple[Any, ...]:
        """Those that belong to no array, as numbers of NumPy."""
        return self.problem.scalars(sizes, self._dtype)[len(self.problem.dimensions) :]

    def __call__(self, buffers: Sequence[Box], sizes: Sequence[Any]) -> None:
        compiled = self.compiled(self.sizes_of_arrays(sizes))
        self._device.launch(compiled, buffers, self.problem.outputs, self.numbers(sizes))

    def _compile(self, sizes: tuple[int, ...]) -> Any:
        problem = self.problem
        shapes = list(map(tuple, problem.shapes(sizes)))

        def kernel(*given: Any) -> Any:
            made = self._function(*given[: len(shapes)], *sizes, *given[len(shapes) :])
            return (made,) if problem.outputs == 1 else made

        arrays = list(zip(shapes, problem.array_dtypes(self._dtype), strict=True))
        return self._device.compile(kernel, arrays, problem.outputs, self.numbers(problem.default_sizes))


def _load() -> Any:
    """JAX with its compiler. BackendUnavailable where one is missing."""
    return _wheels.imported("jax", "JAX", "jax")


def _on_cpu(jax: Any) -> Target:
    platforms = jax.config.jax_platforms
    if platforms and _CPU not in platforms.split(","):
        return Target.missing(_CPU, f"JAX is told to use no CPU: JAX_PLATFORMS={platforms}", "unset JAX_PLATFORMS")
    return Target(_CPU, version=f"JAX {jax.__version__}", just_in_time=True, few_sizes=True, subnormals=False)


def _on_gpu(jax: Any, name: str, device: str) -> Target:
    if not any(importlib.util.find_spec(plugin) for plugin in _CUDA_PLUGINS):
        extra = _nvidia_driver.driver().extra
        return Target.missing(name, "JAX is installed without its part for CUDA", f'{pip()} install "jax[{extra}]"')
    return Target(name, device, f"JAX {jax.__version__}", just_in_time=True, few_sizes=True)


def _started(jax: Any, platform: str, threads: int) -> Sequence[Any]:
    """JAX's devices of a platform. BackendUnavailable where there are none.

    Who asks first in a process decides how many threads XLA has on the CPU. Of a GPU's memory it then takes what it
    needs, unless a variable says otherwise.
    """
    memory = "XLA_PYTHON_CLIENT_PREALLOCATE"
    begins = {"NPROC": str(threads), memory: os.environ.get(memory, "false")}
    with _STARTING, _variables(begins if _threads_of_pool() == 0 else {}):
        try:
            found: Sequence[Any] = jax.devices(platform)
        except (RuntimeError, AssertionError) as error:
            raise BackendUnavailable(f"JAX has no {platform}: {in_one_line(str(error), 1)}") from error
    return found


@contextmanager
def _variables(values: Mapping[str, str]) -> Iterator[None]:
    """Set variables of the environment, and restore them afterwards."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _threads_of_pool() -> int:
    """The threads in which XLA computes on the CPU in this process; 0 before it has started."""
    names = []
    for task in Path("/proc/self/task").iterdir():
        try:
            names.append((task / "comm").read_text(encoding="utf-8").strip())
        except OSError:  # it has just ended
            continue
    return names.count(_POOL)
