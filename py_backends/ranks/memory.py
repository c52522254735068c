"""The memory of a rank, used again for one array after the other."""

from __future__ import annotations

import contextlib
import math
import mmap
from typing import Any

import numpy as np

from py_backends.contract import Array

_LARGE_PAGE = 1 << 21
"""Bytes of a large page of x86-64 and of aarch64, as Linux joins 4 KiB to them where it is asked (madvise(2))."""


class Memory:
    """Memory of arrays that were given back is kept for the next of the same size: new memory costs as much as filling.

    It holds no more, in use and kept, than was in use at one time in this period or the last. A period ends when all
    has been given back. So changing sizes leave no more behind than equal ones. What a large computation leaves goes
    with the first smaller one.

    nbytes: what it holds.
    """

    def __init__(self) -> None:
        self.nbytes = 0
        self._kept: list[Array] = []  # first what was given back the longest ago
        self._borrowed: list[Array] = []
        self._used = self._most = self._most_before = 0

    @property
    def most(self) -> int:
        """The most bytes that were in use at one time in this period."""
        return self._most

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An array, contents undefined."""
        size = math.prod(shape) * dtype.itemsize
        most = max(self._most, self._used + size)
        memory = self._kept_of(size)
        if memory is None:
            self._shrink(max(most, self._most_before) - size)
            memory = _new(size)
            self.nbytes += size
        self._used, self._most = self._used + size, most
        return memory.view(dtype).reshape(shape)

    def give_back(self, array: Array) -> None:
        """Keep the memory of an array that nobody uses any more."""
        if not array.nbytes:
            return
        self._kept.append(array.reshape(-1).view(np.uint8))
        self._used -= array.nbytes
        if not self._used:
            self._shrink(self._most)
            self._most, self._most_before = 0, self._most

    def borrow(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An array, contents undefined, until all that was borrowed is given back."""
        self._borrowed.append(self.take(shape, dtype))
        return self._borrowed[-1]

    def give_back_borrowed(self) -> None:
        """Give back all that was borrowed, the last one first."""
        while self._borrowed:
            self.give_back(self._borrowed.pop())

    def _kept_of(self, size: int) -> Array | None:
        """What is kept of a size: what was given back last, since caches may still hold it."""
        for at in reversed(range(len(self._kept))):
            if self._kept[at].nbytes == size:
                return self._kept.pop(at)
        return None

    def _shrink(self, most: int) -> None:
        """Let go what was given back the longest ago, until it holds at most so many bytes."""
        while self.nbytes > most:
            self.nbytes -= self._kept.pop(0).nbytes


def _new(size: int) -> Array:
    """Memory of so many bytes, on large pages if it fills one: a block of a product is read all over.

    NumPy asks for them only from 4 MiB on, and begins anywhere in a page.
    """
    if size < _LARGE_PAGE:
        return np.empty(size, np.uint8)
    mapped = mmap.mmap(-1, size + _LARGE_PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    whole = np.frombuffer(mapped, np.uint8)
    first = -whole.ctypes.data % _LARGE_PAGE
    with contextlib.suppress(OSError):  # a kernel without them
        mapped.madvise(mmap.MADV_HUGEPAGE, first, size - size % _LARGE_PAGE)
    return whole[first : first + size]
