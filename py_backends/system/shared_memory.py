"""Memory that several processes map: the harness, its workers, and the first of their ranks.

It has no name, only a descriptor (memfd), so that it is gone with the last process that holds it, however that one
ends.
"""

from __future__ import annotations

import errno
import mmap
import os
import weakref
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from py_backends.contract import Array
from py_backends.system.descriptors import unnamed_file


@dataclass(eq=False)
class SharedMemory:
    """So many bytes of it. The descriptor is closed by `close`, or with the last who holds this."""

    descriptor: int
    bytes: Array

    @classmethod
    def create(cls, count: int) -> SharedMemory:
        """New memory, whose pages take none until they are touched.

        Raises MemoryError where there is too little, and OSError where the process has too many open files.
        """
        try:
            descriptor = unnamed_file("py-backends")
        except OSError as error:
            raise _without_memory(error, "memory") from error
        try:
            os.ftruncate(descriptor, count)
            return cls(descriptor, _map(descriptor, count, writable=True))
        except OSError as error:  # the address space may have a limit, which free memory does not show
            os.close(descriptor)
            raise _without_memory(error, f"{count:,} bytes") from error

    @classmethod
    def attach(cls, descriptor: int, count: int, *, writable: bool) -> SharedMemory:
        """The same memory in another process, which takes over the descriptor, at an address drawn by lot."""
        return cls(descriptor, _map(descriptor, count, writable, populated=count <= _MOST_POPULATED))

    def __post_init__(self) -> None:
        _held[self.bytes.ctypes.data] = self
        self._closing = weakref.finalize(self, os.close, self.descriptor)
        self._closing.atexit = False  # Linux closes it then

    def close(self) -> None:
        """Give the descriptor back; the memory stays until the arrays on it are gone. A second time does nothing."""
        _held.pop(self.bytes.ctypes.data, None)
        self._closing()


class Place(NamedTuple):
    """Where an array lies: in which memory, and how many bytes from its beginning."""

    memory: SharedMemory
    first: int


def behind(array: Array) -> Place | None:
    """The shared memory in which a contiguous array lies; None for what lies elsewhere, or has no elements."""
    for memory in filter(None, (reference() for reference in _held.valuerefs())):  # at once: threads may add some
        first = array.ctypes.data - memory.bytes.ctypes.data
        if array.nbytes and 0 <= first <= memory.bytes.nbytes - array.nbytes:
            return Place(memory, first)
    return None


def _without_memory(error: OSError, what: str) -> Exception:
    """The error of a system that gives no memory to share. A limit of something else is not one of memory."""
    if error.errno == errno.EMFILE:
        return error
    return MemoryError(f"the system gives no {what} to share: {error.strerror}")


_held: weakref.WeakValueDictionary[int, SharedMemory] = weakref.WeakValueDictionary()
"""By address, what this process holds the descriptor of."""


def _map(descriptor: int, count: int, writable: bool, *, populated: bool = False) -> Array:
    """The memory, at an address drawn by lot: Linux maps downwards, below a part that is given back at once."""
    protection = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
    unused = (1 + int.from_bytes(os.urandom(2)) % _MOST_UNUSED) * mmap.PAGESIZE
    flags = mmap.MAP_SHARED | (mmap.MAP_POPULATE if populated else 0)
    with mmap.mmap(-1, unused, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=0):
        return np.frombuffer(mmap.mmap(descriptor, count, flags=flags, prot=protection), np.uint8)


_MOST_POPULATED = 1 << 24
"""Bytes up to which a process that attaches memory has all pages at once, so that no sample has their faults."""
_MOST_UNUSED = 1 << 13
"""Pages: 32 MB of addresses."""
