"""Triton: kernels in Python, written for a tile, which it compiles for GPUs.

Without a GPU its interpreter runs them, a program after the other, in operations of NumPy. That is good for checking,
and useless for timing. Triton chooses between the two when a kernel is imported, by a variable.
"""

from __future__ import annotations

import importlib
import math
import threading
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from py_backends import contract
from py_backends.backend import _cupy, _in_place_of_gpu, _nvidia_driver, _wheels
from py_backends.contract import Array, Buffer, Launch, Target
from py_backends.errors import BackendUnavailable, KernelFault
from py_backends.kernel_text import KernelText
from py_backends.number_formats import COMPILED
from py_backends.wording import in_one_line

_EMULATED = "emulated"
_TYPES = {"float32": "fp32", "float64": "fp64", "float16": "fp16", "bfloat16": "bf16", "int8": "i8", "int32": "i32",
          "int64": "i64"}  # fmt: skip
"""What Triton calls number formats."""
_INTERPRETER = MappingProxyType({"TRITON_INTERPRET": "1"})


class Backend(contract.Backend):
    dtypes = COMPILED

    def targets(self) -> list[Target]:
        driver = _nvidia_driver.driver()
        try:
            version = f"Triton {_load().__version__}"
        except BackendUnavailable as missing:
            names = [_EMULATED] if driver.reason else driver.targets
            return [Target.missing(name, missing.reason, missing.fix) for name in names]
        if driver.reason is None:
            return _cupy.targets()
        interpreter = "Triton's interpreter on the CPU"
        return [
            Target(
                _EMULATED,
                interpreter,
                version,
                driver.reason,
                driver.fix,
                emulated=True,
                few_sizes=True,
                environment=_INTERPRETER,
            )
        ]

    def open(self, target: str, threads: int) -> contract.Device:
        triton = _load()
        if target != _EMULATED:
            return Gpu(_cupy.ordinal(target))
        if not triton.knobs.runtime.interpret:
            raise BackendUnavailable("Triton's interpreter is for checking, in a process that was started for it")
        return Interpreter()


class Gpu(_cupy.Gpu):
    """One NVIDIA GPU. Triton compiles, CuPy has the memory and launches: no PyTorch and no C compiler is needed."""

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        stages, problem, capability = text.stages("GPU"), text.problem, int(self._gpu.compute_capability)
        kernels = []
        for made in compiled(text, dtype, "cuda", capability):
            loaded = self.loaded(made.asm["cubin"], made.metadata.name, made.metadata.shared)
            kernels.append((loaded, (32 * made.metadata.num_warps,)))

        def launch(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            with self._gpu:
                for each in stages.launches(problem, dtype, buffers, sizes, self.scratch):
                    kernel, threads = kernels[each.at]
                    # Behind a kernel's own arguments come two pointers, to memory that none of ours needs.
                    arguments = (*(buffer.array for buffer in each.buffers), *problem.scalars(each.sizes, dtype), 0, 0)
                    kernel(_nvidia_driver.grid(each.groups), threads, arguments)

        return self.recorded(launch)


def compiled(text: KernelText, dtype: np.dtype[Any], backend: str, architecture: int | str) -> list[Any]:
    """A source's kernels for a GPU that need not be here, as `triton.compile` returns them.

    backend, architecture: those of `GPUTarget`, such as `cuda` and 90 or `hip` and `gfx942`.
    """
    triton, target = _load(), importlib.import_module("triton.backends.compiler").GPUTarget
    module, problem, stages = text.load(), text.problem, text.stages("GPU")
    dtypes = [*problem.array_dtypes(dtype), *stages.scratch_dtypes(problem, dtype)]
    numbers = [_TYPES[each.dtype.name] for each in problem.scalars(problem.default_sizes, dtype)]
    types = [*(f"*{_TYPES[each.name]}" for each in dtypes), *numbers]
    made = []
    for name, _ in stages.kernels:
        kernel = getattr(module, name)
        source = triton.compiler.ASTSource(kernel, dict(zip(kernel.arg_names, types, strict=True)))
        warp = 32 if backend == "cuda" else 64
        options = {"enable_fp_fusion": True, **getattr(module, "OPTIONS", {})}  # another default is announced
        made.append(triton.compile(source, target=target(backend, architecture, warp), options=options))
    return made


class Interpreter(_in_place_of_gpu.Device):
    """The same kernels, interpreted one program at a time. Only workers use it. Buffers are NumPy arrays.

    Two parts of it are replaced. Its `dot` multiplies the bits of bfloat16 as if they were whole numbers
    (https://github.com/triton-lang/triton, issue 11584): here they are widened before. Its conversions round ties away
    from zero, and lose subnormal numbers: here NumPy converts. Reads and writes outside of arrays are faults.
    """

    _turn = threading.Lock()  # the interpreter is not made for threads

    def __init__(self) -> None:
        from triton.runtime import interpreter

        self._interpreter = interpreter
        interpreter._convert_float = _converted  # noqa: SLF001  # it offers no place for another one
        builder, self._bounds = interpreter.InterpreterBuilder, Bounds()
        builder.create_dot = _of_widened(builder.create_dot)
        builder.create_masked_load = self._bounds.checked(builder.create_masked_load, mask_at=1)
        builder.create_masked_store = self._bounds.checked(builder.create_masked_store, mask_at=2)

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        stages, problem = text.stages("GPU"), text.problem
        kernels = [getattr(text.load(), name) for name, _ in stages.kernels]

        def launch(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            with self._turn, np.errstate(all="ignore"):  # infinities are valid results here
                elements = list(map(math.prod, problem.shapes(sizes)))
                for each in stages.launches(problem, dtype, buffers, sizes, self.scratch):
                    self._bounds.set([*each.buffers], elements)
                    try:
                        kernels[each.at][each.groups](*map(Pointer, each.buffers), *each.sizes)
                    except self._interpreter.InterpreterError as error:
                        raise KernelFault(in_one_line(str(error), 1)) from error

        return launch


class Bounds:
    """Where the arrays of a launch lie, outside of which a program must not read or write."""

    def set(self, arrays: Sequence[Array], elements: Sequence[int]) -> None:
        """Note the arrays of the next launch. The first of them may be longer than a kernel's: it has so many elements.

        What comes behind these is scratch memory, all of which is the kernel's.
        """
        counts = [*elements, *(array.size for array in arrays[len(elements) :])]
        within = sorted(
            (array.ctypes.data, array.ctypes.data + count * array.itemsize)
            for array, count in zip(arrays, counts, strict=True)
        )
        self._first, self._end = np.array(within, np.uint64).T

    def checked(self, access: Callable[..., Any], mask_at: int) -> Callable[..., Any]:
        """An access of the interpreter to addresses, of which a mask says which are meant. IndexError outside."""

        def within_bounds(builder: Any, *arguments: Any) -> Any:
            pointers, mask = arguments[0].data, arguments[mask_at].data
            meant = pointers[np.broadcast_to(mask, pointers.shape)]
            at = np.searchsorted(self._first, meant, "right") - 1
            outside = (at < 0) | (meant >= self._end[at])
            if outside.any():
                raise IndexError(f"a program accesses memory outside of its arrays, at {outside.sum()} places")
            return access(builder, *arguments)

        return within_bounds


def _of_widened(dot: Callable[..., Any]) -> Callable[..., Any]:
    """A product of tiles whose bfloat16 elements are widened before."""
    language = importlib.import_module("triton.language")

    def widened(builder: Any, a: Any, b: Any, *others: Any) -> Any:
        a, b = (builder.cast_impl(x, language.float32) if x.dtype.scalar == language.bfloat16 else x for x in (a, b))
        return dot(builder, a, b, *others)

    return widened


def _converted(bits: Array, given: Any, wanted: Any, _: Any) -> Array:
    """Numbers of one format in another one, as GPUs round them: to the nearest, of two the even one."""
    formats = {name: dtype for dtype, name in _TYPES.items()}
    return bits.view(formats[given.name]).astype(formats[wanted.name])


class Pointer:
    """An array in place of a tensor of PyTorch: what the interpreter asks of one to copy it. Nothing is copied."""

    def __init__(self, array: Array) -> None:
        self._array, self.dtype = array, array.dtype

    def data_ptr(self) -> int:
        address: int = self._array.ctypes.data
        return address

    def size(self) -> tuple[int, ...]:
        return self._array.shape

    def stride(self) -> tuple[int, ...]:
        return (1,)

    def storage_offset(self) -> int:
        return 0

    def untyped_storage(self) -> Pointer:
        return self

    cpu = untyped_storage

    def new_empty(self, *_: int, **__: str) -> Pointer:
        return Pointer(self._array)

    def set_(self, *_: Any) -> None:
        """Lay a new tensor out on a storage: it is on that already."""

    def copy_(self, _: Pointer) -> None:
        """Copy back what the kernel wrote: it is there already."""


def _load() -> Any:
    """Triton. BackendUnavailable where it is missing."""
    return _wheels.imported("triton", "Triton", "triton")
