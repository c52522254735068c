"""The part of PyTorch that `triton.py` uses, on a CPU: NumPy's arrays, with what Triton's interpreter asks of tensors.

Only programs that this package starts find it in place of PyTorch, and only if there is no GPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from py_backends.backend.triton import Pointer

float32 = np.dtype(np.float32)


class Tensor(Pointer):
    """An array of NumPy."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        super().__init__(array)
        self.on_host, self.tolist, self.all = array, array.tolist, array.all

    def __add__(self, other: Tensor) -> Tensor:
        return Tensor(self.on_host + other.on_host)

    def __eq__(self, other: object) -> Any:
        return Tensor(self.on_host == other.on_host) if isinstance(other, Tensor) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as of arrays


def arange(count: int, dtype: np.dtype[Any], device: str) -> Tensor:  # noqa: ARG001  # here is one device
    """Whole numbers from 0."""
    return Tensor(np.arange(count, dtype=dtype))


def full(shape: tuple[int, ...], value: float, dtype: np.dtype[Any], device: str) -> Tensor:  # noqa: ARG001  # here is one device
    """The same number everywhere."""
    return Tensor(np.full(shape, value, dtype))


def empty_like(tensor: Tensor) -> Tensor:
    """Of the same shape and dtype, contents undefined."""
    return Tensor(np.empty_like(tensor.on_host))
