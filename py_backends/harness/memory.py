"""Arrays that the harness and its workers share, each followed by a guard zone.

They lie in memory that has no name, only a descriptor (memfd), so that it is gone with the last
process that holds it, however that one ends.
"""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from py_backends._contract import Array

_SHORTEST_GUARD = 1024
_LONGEST_GUARD = 1 << 16


def guard_elements(sizes: tuple[int, ...]) -> int:
    """Length of the guard zone: a whole row where that is not too long, so that one row too many is seen."""
    return _SHORTEST_GUARD + min(max(sizes, default=0), _LONGEST_GUARD)


@dataclass(frozen=True)
class SharedArray:
    """A flat array in shared memory: `elements` of content and then the guard zone."""

    descriptor: int
    whole: Array
    elements: int

    @classmethod
    def create(cls, elements: int, guard: int, dtype: np.dtype[Any]) -> SharedArray:
        """New memory; MemoryError where there is too little."""
        count = elements + guard
        descriptor = os.memfd_create("py-backends")
        os.ftruncate(descriptor, count * dtype.itemsize)
        return cls(descriptor, _map(descriptor, count, dtype, writable=True), elements)

    @classmethod
    def attach(cls, descriptor: int, elements: int, guard: int, dtype: np.dtype[Any], writable: bool) -> SharedArray:
        """The same memory in another process, which takes over the descriptor."""
        return cls(descriptor, _map(descriptor, elements + guard, dtype, writable), elements)

    @property
    def content(self) -> Array:
        return self.whole[: self.elements]

    @property
    def guard(self) -> Array:
        return self.whole[self.elements :]

    def close(self) -> None:
        """Give the descriptor back; the memory stays until the arrays on it are gone."""
        os.close(self.descriptor)


def page_aligned_copy(memory: Array) -> Array:
    """A flat copy that begins where a page of memory does, as shared arrays do."""
    room = np.empty(memory.nbytes + mmap.PAGESIZE, np.uint8)
    first = -room.ctypes.data % mmap.PAGESIZE
    copy = room[first : first + memory.nbytes].view(memory.dtype)
    copy[...] = memory
    return copy


def same_bits(one: Array, other: Array) -> Array:
    """Which elements of two arrays of one shape and dtype have the same bits; NaN is any NaN."""
    bits = np.dtype(f"u{one.itemsize}")
    same: Array = one.view(bits) == other.view(bits)
    if not same.all():
        same |= np.isnan(one) & np.isnan(other)
    return same


def _map(descriptor: int, count: int, dtype: np.dtype[Any], writable: bool) -> Array:
    protection = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
    mapped = mmap.mmap(descriptor, count * dtype.itemsize, prot=protection)
    return np.frombuffer(mapped, dtype)
