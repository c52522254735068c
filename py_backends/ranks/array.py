"""An array that lies in blocks on ranks, as the caller sees it."""

from __future__ import annotations

import math
import weakref
from typing import Any, NoReturn, Protocol, Self

import numpy as np

from py_backends.contract import Adopted, Array
from py_backends.number_formats import FORMATS
from py_backends.wording import listed

_ADDRESSES_APART = 1 << 48
"""More bytes than any array has, so that no two share memory."""


class Ranks(Protocol):
    """What an array needs of the device on whose ranks it lies."""

    def download(self, buffer: int, array: Array) -> None: ...

    def release(self, buffer: int) -> None: ...

    def upload(self, array: Array) -> int: ...


class DistributedArray:
    """An array on the ranks of a device. `to="device"` returns it, and calls take it again without moving it.

    shape, dtype: as in NumPy.
    """

    def __init__(self, device: Ranks, number: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.device, self.number, self.shape, self.dtype = device, number, shape, dtype
        weakref.finalize(self, device.release, number).atexit = False

    def get(self) -> Array:
        """A copy as a NumPy array."""
        flat = np.empty(math.prod(self.shape), self.dtype)
        self.device.download(self.number, flat)
        return flat.reshape(self.shape)

    def scatter(self, array: Array) -> DistributedArray:
        """Another array for the same ranks. From its first kernel on, it lies in the blocks that this kernel needs.

        Raises TypeError for what is no NumPy array of a number format in native byte order, or is a masked one.
        """
        _check(array)
        flat = np.ascontiguousarray(array).reshape(-1)
        return DistributedArray(self.device, self.device.upload(flat), array.shape, array.dtype)

    def adopted(self) -> Adopted:
        """The buffer that launches take."""
        return Adopted(Kept(self.number, self), self.shape, self.dtype, self.number * _ADDRESSES_APART)

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or pickled: whichever of two objects went first would release the memory of both."""
        raise TypeError("an array on ranks cannot be copied or pickled as it is: get() copies it to NumPy")

    def __repr__(self) -> str:
        return f"<DistributedArray of {' x '.join(map(str, self.shape))} {self.dtype}: get() copies it>"


def _check(array: Any) -> None:
    """Refuse what ranks cannot compute with, before it comes to them: there an error would end them all."""
    is_plain = isinstance(array, np.ndarray) and not isinstance(array, np.ma.MaskedArray)
    if not (is_plain and array.dtype.isnative and array.dtype.name in FORMATS):
        what = f"an array of {array.dtype}" if is_plain else type(array).__name__
        raise TypeError(
            f"scatter takes a NumPy array of {listed(list(FORMATS), 'or')} in native byte order, not {what}"
        )


class Kept(int):
    """The number of a buffer that belongs to an array and keeps it alive. A call does not release it."""

    def __new__(cls, number: int, array: DistributedArray) -> Self:
        made = super().__new__(cls, number)
        made.array = array
        return made

    array: DistributedArray
