"""A device whose memory is its own, one that is the host, and kernels that no other backend has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from py_backends import contract
from py_backends.contract import Adopted, Array, Buffer, Launch, Problem, Reference, Target
from py_backends.functions import foreign_arrays
from py_backends.kernel_text import KernelText


class FarArray:
    """An array on the device of the backend `far`: elsewhere than on the host, as far as anybody is told."""

    def __init__(self, elements: Array, device: int = 0, writable: bool = True) -> None:
        self.elements, self.device, self.writable = elements, device, writable
        self.dtype, self.shape = elements.dtype, elements.shape

    def get(self) -> Array:
        return self.elements.copy()


@dataclass
class FarMemory:
    """A buffer. Kernels use it until it is released."""

    elements: Array | None
    owner: Any = None


@dataclass
class Far(contract.Device):
    """Computes when it is waited for, in memory of its own, and counts what crosses the bus."""

    uploads: int = 0
    downloads: int = 0
    buffers: list[FarMemory] = field(default_factory=list)
    queued: list[Callable[[], None]] = field(default_factory=list)
    keeps_results: bool = True
    on_cpu: bool = False

    __hash__ = object.__hash__

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        def launch(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            def compute() -> None:
                assert all(buffer.elements is not None for buffer in buffers), "memory that has been released"
                *inputs, output = text.shaped([buffer.elements for buffer in buffers], sizes)
                output[...] = COMPUTED[text.kernel](*inputs)

            self.queued.append(compute)

        return launch

    def upload(self, array: Array) -> Buffer:
        self.uploads += array.size > 0
        return self._buffer(array.copy())

    def allocate(self, array: Array) -> Buffer:
        return self._buffer(np.full_like(array, -1))

    def wait(self) -> None:
        while self.queued:
            self.queued.pop(0)()

    def download(self, buffer: Buffer, array: Array) -> None:
        self.downloads += array.size > 0
        array[...] = buffer.elements

    def release(self, buffer: Buffer) -> None:
        buffer.elements = buffer.owner = None

    def adopt(self, array: Any) -> Adopted | None:
        if not isinstance(array, FarArray):
            return None
        if array.device != 0:
            raise TypeError(f"it lies on device {array.device}, and this is device 0; copy it there first")
        elements = array.elements
        if not elements.size:
            return Adopted(None, elements.shape, elements.dtype, 0)
        if not elements.flags.c_contiguous:
            raise foreign_arrays.out_of_order()
        buffer = self._buffer(elements.reshape(-1), array)
        return Adopted(buffer, elements.shape, elements.dtype, elements.ctypes.data, array.writable)

    def new(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        return FarArray(np.full(shape, -1, dtype)) if self.keeps_results else None

    def _buffer(self, elements: Array, owner: Any = None) -> FarMemory:
        self.buffers.append(FarMemory(elements, owner))
        return self.buffers[-1]

    def counted(self) -> tuple[int, int]:
        """Uploads and downloads of the call before; all that it took has been given back, and nothing is queued."""
        assert all(buffer.elements is None for buffer in self.buffers)
        assert not self.queued
        counts = self.uploads, self.downloads
        self.uploads = self.downloads = 0
        self.buffers.clear()
        return counts


class OneInput(Problem):
    """c = -x"""

    name, signature, inputs, rule, rate = "negated", "(n)->(n)", ("x",), "bitwise", "gbytes_per_second"
    in_place, default_sizes = True, (5,)

    def reference(self, inputs: Sequence[Array]) -> Reference:
        return Reference(-inputs[0])

    def flops(self, sizes: Sequence[int]) -> int:
        return sizes[0]


class ThreeInputs(OneInput):
    """c = u v + w, where w has one element more: a shape that is computed from the size."""

    name, inputs = "fused", ("u", "v", "w")

    def shapes(self, sizes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        (n,) = sizes
        return (n,), (n,), (n + 1,), (n,)

    def sizes(self, *inputs: Array) -> tuple[int, ...]:
        u, v, w = inputs
        if not u.shape == v.shape == (w.size - 1,):
            raise ValueError(f"fused takes u and v of n elements and w of n + 1, not {u.size}, {v.size} and {w.size}")
        return (u.size,)


COMPUTED: dict[str, Callable[..., Array]] = {
    "vecadd": lambda a, b: a + b,
    "matmul": lambda a, b: a @ b,
    "negated": lambda x: -x,
    "fused": lambda u, v, w: u * v + w[:-1],
}
PROBLEMS: dict[str, Problem] = {each.name: each for each in (OneInput(), ThreeInputs())}


class Near(contract.HostDevice):
    """The host, for the kernels of these tests."""

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        def launch(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            *inputs, output = text.shaped(buffers, sizes)
            output[...] = COMPUTED[text.kernel](*inputs)

        return launch


class TestBackend(contract.Backend):
    __test__ = False
    dtypes: ClassVar[tuple[str, ...]] = contract.Backend.dtypes

    def __init__(self, device: contract.Device) -> None:
        self.device = device

    def targets(self) -> list[Target]:
        return [Target("only")]

    def open(self, target: str, threads: int) -> contract.Device:
        return self.device
