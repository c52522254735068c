"""Memory that the harness and its workers share.

It has no name, only a descriptor (memfd), so that it is gone with the last process that holds it, however that one
ends.
"""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass

import numpy as np

from py_backends.contract import Array


@dataclass(frozen=True)
class SharedMemory:
    """So many bytes of it."""

    descriptor: int
    bytes: Array

    @classmethod
    def create(cls, count: int) -> SharedMemory:
        """New memory, whose pages take none until they are touched; MemoryError where there is too little."""
        descriptor = os.memfd_create("py-backends")
        os.ftruncate(descriptor, count)
        return cls(descriptor, _map(descriptor, count, writable=True))

    @classmethod
    def attach(cls, descriptor: int, count: int, *, writable: bool) -> SharedMemory:
        """The same memory in another process, which takes over the descriptor."""
        return cls(descriptor, _map(descriptor, count, writable))

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


def _map(descriptor: int, count: int, writable: bool) -> Array:
    protection = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
    return np.frombuffer(mmap.mmap(descriptor, count, prot=protection), np.uint8)
