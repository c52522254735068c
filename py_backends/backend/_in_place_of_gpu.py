"""What stands in for a GPU where kernels are interpreted on the CPU: memory of its own, which is NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np

from py_backends import contract
from py_backends.contract import Array, Buffer


class Device(contract.Device):
    """Buffers are NumPy arrays. A launch returns when it has ended."""

    deterministic = True

    @staticmethod
    def scratch(elements: int, dtype: np.dtype[Any], _piece: int) -> Buffer:
        """Memory for a launch's own use: `Stages.launches` asks for it."""
        return np.empty(elements, dtype)

    def upload(self, array: Array) -> Buffer:
        return array.copy()

    def allocate(self, array: Array) -> Buffer:
        return np.empty_like(array)

    def wait(self) -> None:
        """Nothing to do: all launches have ended."""

    def download(self, buffer: Buffer, array: Array) -> None:
        array[...] = buffer

    def release(self, buffer: Buffer) -> None:
        """Nothing to do: the memory is freed with the last reference."""
