"""An array that lies in blocks on ranks, as the caller sees it."""

from __future__ import annotations

import math
import weakref
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from py_backends.contract import Adopted, Array

if TYPE_CHECKING:
    from py_backends.ranks.device import Device

_ADDRESSES_APART = 1 << 48
"""More bytes than any array has, so that no two share memory."""


class DistributedArray:
    """An array on the ranks of a device. `to="device"` returns it, and calls take it again without moving it.

    shape, dtype: as in NumPy.
    """

    def __init__(self, device: Device, number: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.device, self.number, self.shape, self.dtype = device, number, shape, dtype
        weakref.finalize(self, device.release, number).atexit = False

    def get(self) -> Array:
        """A copy as a NumPy array."""
        flat = np.empty(math.prod(self.shape), self.dtype)
        self.device.download(self.number, flat)
        return flat.reshape(self.shape)

    def scatter(self, array: Array) -> DistributedArray:
        """Another array for the same ranks. From its first kernel on, it lies in the blocks that this kernel needs."""
        flat = np.ascontiguousarray(array).reshape(-1)
        return DistributedArray(self.device, self.device.scatter(flat), array.shape, array.dtype)

    def adopted(self) -> Adopted:
        """The buffer that launches take."""
        return Adopted(Kept(self.number, self), self.shape, self.dtype, self.number * _ADDRESSES_APART)

    def __repr__(self) -> str:
        return f"<DistributedArray of {' x '.join(map(str, self.shape))} {self.dtype}: get() copies it>"


class Kept(int):
    """The number of a buffer that belongs to an array and keeps it alive. A call does not release it."""

    def __new__(cls, number: int, array: DistributedArray) -> Self:
        made = super().__new__(cls, number)
        made.array = array
        return made

    array: DistributedArray
