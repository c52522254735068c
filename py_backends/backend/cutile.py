"""cuTile: NVIDIA's kernels in Python for tiles, which its compiler divides among the threads of a GPU.

Without a GPU an emulation of ours runs them, on NumPy, a block after the other. That shows that a source is right as we
read the language, and nothing of the compiler.
"""

from __future__ import annotations

import importlib.util
import io
import math
import sys
import threading
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from py_backends import contract
from py_backends.backend import _cupy, _in_place_of_gpu, _nvidia_driver, _wheels
from py_backends.contract import Buffer, Launch, Target
from py_backends.errors import BackendUnavailable, KernelFault
from py_backends.kernel_text import KernelText, NewScratch, Stages
from py_backends.number_formats import COMPILED

_EMULATED = "emulated"
_OLDEST_CUDA = (13, 0)
"""What a driver must support: from 580 on they do."""


class Backend(contract.Backend):
    dtypes = COMPILED

    def targets(self) -> list[Target]:
        driver = _nvidia_driver.driver()
        if driver.reason is not None:
            emulation = "NumPy, in place of cuda.tile"
            return [
                Target(_EMULATED, emulation, f"NumPy {np.__version__}", driver.reason, driver.fix, emulated=True,
                       few_sizes=True)
            ]  # fmt: skip
        try:
            _load()
        except BackendUnavailable as missing:
            return [Target.missing(name, missing.reason, missing.fix) for name in driver.targets]
        if driver.version and driver.version < _OLDEST_CUDA:
            too_old = "its driver is too old for cuTile", "install NVIDIA's driver 580 or newer"
            return [Target.missing(name, *too_old) for name in driver.targets]
        return _cupy.targets()

    def open(self, target: str, threads: int) -> contract.Device:
        return Emulation() if target == _EMULATED else Gpu(_cupy.ordinal(target))


class Gpu(_cupy.Gpu):
    """One NVIDIA GPU, whose memory is CuPy's."""

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        stages, tile = text.stages("GPU"), _load()
        kernels = [getattr(text.load(), name) for name, _ in stages.kernels]

        def launch(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            with self._gpu:
                stream = self._cupy.cuda.get_current_stream().ptr
                for each in _launches(stages, text, dtype, buffers, sizes, self._scratch_of):
                    arrays = [memory.array[: math.prod(shape)].reshape(shape) for memory, shape in each.arrays]
                    tile.launch(stream, _nvidia_driver.grid(each.grid), kernels[each.at], (*arrays, *each.sizes))

        return self.recorded(launch)

    def _scratch_of(self, elements: int, dtype: np.dtype[Any], piece: int) -> Buffer:
        memory = self.scratch(elements, dtype, piece)
        return _cupy.Memory(memory.array[: elements * dtype.itemsize].view(dtype))  # type: ignore[index]  # there is one


class Emulation(_in_place_of_gpu.Device):
    """The same kernels on NumPy. Only workers use it. Buffers are NumPy arrays."""

    note = "NumPy stands in for cuda.tile: it shows that a source is right, and nothing of NVIDIA's compiler"
    _turn = threading.Lock()  # the emulation runs one block at a time

    def __init__(self) -> None:
        self._tile = importlib.import_module("py_backends.backend._cutile_emulation")
        if importlib.util.find_spec("cuda") is None:  # the package that others of NVIDIA's are in
            sys.modules["cuda"] = ModuleType("cuda")
        sys.modules["cuda.tile"] = self._tile

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        stages = text.stages("GPU")
        kernels = [getattr(text.load(), name) for name, _ in stages.kernels]

        def launch(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            with self._turn, np.errstate(all="ignore"):  # infinities are valid results here
                for each in _launches(stages, text, dtype, buffers, sizes, self.scratch):
                    arrays = [memory[: math.prod(shape)].reshape(shape) for memory, shape in each.arrays]
                    try:
                        arguments = *map(self._tile.Array, arrays), *each.sizes
                        self._tile.launch(each.grid, kernels[each.at], arguments)
                    except (IndexError, TypeError, ValueError) as error:
                        raise KernelFault(str(error)) from error

        return launch


class _TileLaunch(NamedTuple):
    """One launch of one kernel: its arrays with their shapes, its sizes, and how many blocks there are."""

    at: int
    arrays: list[tuple[Any, tuple[int, ...]]]
    sizes: list[Any]
    grid: tuple[int, ...]


def _launches(
    stages: Stages,
    text: KernelText,
    dtype: np.dtype[Any],
    buffers: Sequence[Buffer],
    sizes: Sequence[int],
    scratch: NewScratch,
) -> Iterator[_TileLaunch]:
    """The launches of a source. There are none for results without elements: each block has a tile of one.

    A result without dimensions is one of one element, and scratch memory a vector.
    """
    shapes: list[tuple[int, ...]] = [tuple(shape) or (1,) for shape in text.problem.shapes(sizes)]
    if not any(map(math.prod, shapes[len(text.problem.inputs) :])):
        return
    for each in stages.launches(text.problem, dtype, buffers, sizes, scratch):
        behind = [(stages.scratch_elements(text.named_sizes(sizes)) or 0,)] if stages.scratch else []
        arrays = list(zip(each.buffers, [*shapes, *behind], strict=True))
        yield _TileLaunch(each.at, arrays, list(text.problem.scalars(each.sizes, dtype)), each.groups)


def compiled(text: KernelText, dtype: np.dtype[Any], architecture: str) -> list[bytes]:
    """A source's kernels as machine code for a GPU that need not be here, such as `sm_90`.

    Arrays are in order, and aligned to 16 bytes. Sizes and strides are any, of 64 bits.
    """
    tile, compilation = _load(), importlib.import_module("cuda.tile.compilation")
    problem, stages, module = text.problem, text.stages("GPU"), text.load()
    scratch = [(each, 1) for each in stages.scratch_dtypes(problem, dtype)]
    dimensions = [max(1, len(shape)) for shape in problem.shapes(problem.default_sizes)]
    parameters = [
        *(
            compilation.ArrayConstraint(
                getattr(tile, of.name), ndim, index_dtype=tile.int64, stride_lower_bound_incl=0, alias_groups=[],
                may_alias_internally=False, stride_constant=(*(None for _ in range(ndim - 1)), 1),
                base_addr_divisible_by=16,
            )
            for of, ndim in [*zip(problem.array_dtypes(dtype), dimensions, strict=True), *scratch]
        ),
        *(
            compilation.ScalarConstraint(getattr(tile, each.dtype.name))
            for each in problem.scalars(problem.default_sizes, dtype)
        ),
    ]  # fmt: skip
    made = []
    for name, _ in stages.kernels:
        convention = compilation.CallingConvention.cutile_python_v1()
        signature, file = compilation.KernelSignature(parameters, convention, name), io.BytesIO()
        compilation.export_kernel(
            getattr(module, name), [signature], file, gpu_code=architecture, output_format="cubin"
        )
        made.append(file.getvalue())
    return made


def _load() -> Any:
    """The module of cuTile. BackendUnavailable where it is missing."""
    return _wheels.imported("cuda.tile", "cuTile", "cutile")
