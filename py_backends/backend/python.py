"""Plain Python loops over lists. They show what a computation costs when every number is an object."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import Any

import numpy as np

from py_backends import contract
from py_backends.contract import Array, Buffer, Launch, Target
from py_backends.kernel_text import KernelText
from py_backends.number_formats import DTYPES, number_format


class Backend(contract.Backend):
    dtypes = DTYPES

    def targets(self) -> list[Target]:
        return [Target("cpu", version=f"{platform.python_implementation()} {platform.python_version()}")]

    def open(self, target: str, threads: int) -> contract.Device:
        return Device()


class Device(contract.Device):
    """Buffers are lists of floats, which have the 53 bits of a float64, or of integers.

    A result in fewer bits is rounded once more when it is downloaded. For a single addition that changes nothing: 53
    bits are more than 2 x 24 + 2. So rounding twice gives the same as rounding once. A sum of integers that is too
    large wraps around, as in every other backend.
    """

    survives_fork = True
    deterministic = True

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        kernel = getattr(text.load(), text.kernel)

        def launch(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            kernel(*buffers, *sizes)

        return launch

    def upload(self, array: Array) -> Buffer:
        return array.tolist()

    def allocate(self, array: Array) -> Buffer:
        return [number_format(array.dtype).poison] * array.size

    def wait(self) -> None:
        pass

    def download(self, buffer: Buffer, array: Array) -> None:
        with np.errstate(all="ignore"):  # too large a float32 becomes infinity, as in every other backend
            wide = np.array(buffer, dtype=np.int64 if array.dtype.kind == "i" else np.float64)
            array[:] = wide.astype(array.dtype)

    def release(self, buffer: Buffer) -> None:
        buffer.clear()
