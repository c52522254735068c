"""Arrays as callers give them: of numbers that sum exactly, and of libraries that are stand-ins here."""

from __future__ import annotations

from typing import Any

import numpy as np

from py_backends.contract import Array
from py_backends.functions import foreign_arrays

CPU, CUDA = foreign_arrays.Memory.CPU, foreign_arrays.Memory.CUDA


def drawn(*shape: int, dtype: str = "float32", seed: int = 3) -> Array:
    """Small whole numbers, whose sums and products come out exact in any order."""
    return np.random.default_rng(seed).integers(-9, 9, shape).astype(dtype)


class Tensor:
    """An array of a library that speaks DLPack: it is somewhere, and hands its memory out."""

    def __init__(self, array: Array, where: int = CPU) -> None:
        self.array, self.where, self.asked = array, where, list[dict[str, Any]]()
        self.dtype, self.shape = array.dtype, array.shape

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.where, 0

    def __dlpack__(self, **how: Any) -> Any:
        self.asked.append(how)
        if self.where == CUDA and how.get("dl_device") != (CPU, 0):
            raise BufferError("it is not on the CPU")
        return self.array.__dlpack__(max_version=how.get("max_version"))


class OldTensor(Tensor):
    """As before the array API of 2023, as Arrow's: no version, device or copy to be asked for."""

    def __dlpack__(self, stream: None = None) -> Any:  # type: ignore[override]
        return self.array.__dlpack__()


class FarTensor(Tensor):
    """On a GPU, whose memory the host cannot reach."""

    def __dlpack__(self, **how: Any) -> Any:
        raise BufferError("that needs a copy")

    def cpu(self) -> Tensor:
        return Tensor(self.array)


class WithGradient(Tensor):
    def __dlpack__(self, **how: Any) -> Any:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")


class BrainFloats(Tensor):
    """bfloat16, as PyTorch has them, of which NumPy knows nothing."""

    def __init__(self) -> None:
        super().__init__(np.zeros(4, np.uint16))
        self.dtype: Any = "torch.bfloat16"

    def __dlpack__(self, **how: Any) -> Any:
        raise BufferError("Unsupported dtype in DLTensor.")


class HalfTensor:
    """It says that it speaks DLPack, and does not say where it lies."""

    dtype, shape = np.dtype(np.float32), (4,)

    def __dlpack__(self, **how: Any) -> Any:
        return self.capsule  # type: ignore[attr-defined]  # it has none


class OddTensor(HalfTensor):
    """It raises what it likes."""

    def __init__(self, error: Exception, dtype: Any = np.float32) -> None:
        self._error, self.dtype = error, np.dtype(dtype)

    def __dlpack_device__(self) -> tuple[int, int]:
        raise self._error


class LostTensor(HalfTensor):
    """It says where it lies, and fails as it hands its memory out."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU, 0


def read_only(array: Array) -> Array:
    array.flags.writeable = False
    return array
