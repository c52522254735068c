"""Arrays that lie in memory in any way, and whose surroundings are watched."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence

import numpy as np

from py_backends.conformance.calls import Layout
from py_backends.contract import Array

_LINE = 64
_MARGIN = 256
"""Bytes watched before and behind an array."""
_NAN = 0xFF
"""A byte of which a floating-point number consists that is NaN."""


class Laid:
    """An array of a layout in memory of its own, or of somebody else's."""

    def __init__(self, shape: Sequence[int], dtype: np.dtype[np.generic], layout: Layout) -> None:
        self._shape, self._dtype, self._layout = tuple(shape), dtype, layout
        steps = (1,) * len(self._shape) + layout.steps
        self._steps = steps[len(steps) - len(self._shape) :] if self._shape else ()
        counts = [length * abs(step) for length, step in zip(self._shape, self._steps, strict=True)]
        if counts:
            counts[-1] += layout.padding
        self._counts = counts
        size = int(np.prod(counts, dtype=int)) * dtype.itemsize
        if layout.wall:
            room = _before_a_wall(size + _MARGIN)
            self._first = _MARGIN
        else:
            room = np.full(size + layout.offset + 2 * _MARGIN + _LINE, _NAN, np.uint8)
            self._first = _MARGIN - (room.ctypes.data + _MARGIN) % _LINE + _LINE + layout.offset
        self._size = size
        self.bytes = room
        self.array = self.view_of(room)
        self.array.flags.writeable = not layout.read_only

    def view_of(self, room: Array) -> Array:
        """The array within memory like its own."""
        flat = room[self._first : self._first + self._size].view(self._dtype)
        whole = flat.reshape(self._counts, order="F" if self._layout.order == "F" else "C")
        if not self._shape:
            return whole  # an element of it would be no array
        stepped = whole[tuple(slice(None, None, step) for step in self._steps)]
        return stepped[tuple(slice(length) for length in self._shape)]

    def fill(self, values: Array) -> None:
        """Write its elements, read-only for others or not."""
        self.view_of(self.bytes)[...] = values


def _before_a_wall(size: int) -> Array:
    """So many bytes of NaN at the end of a page, before one that nobody may touch."""
    readable = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = np.frombuffer(mmap.mmap(-1, readable + mmap.PAGESIZE), np.uint8)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    nothing_allowed = 0  # PROT_NONE in <sys/mman.h>
    if libc.mprotect(memory.ctypes.data + readable, mmap.PAGESIZE, nothing_allowed) != 0:
        raise OSError(ctypes.get_errno(), "mprotect")
    room: Array = memory[readable - size : readable]
    room.fill(_NAN)
    return room


def with_neighbour(
    shape: Sequence[int], neighbour: Sequence[int], shift: int, dtype: np.dtype[np.generic]
) -> tuple[Array, Array, Array]:
    """Memory as bytes, an array in it, and another that begins `shift` elements behind the first one's beginning."""
    margin = _MARGIN // dtype.itemsize
    first = margin + max(0, -shift)
    sizes = [int(np.prod(each, dtype=int)) for each in (shape, neighbour)]
    room = np.full((max(first + sizes[0], first + shift + sizes[1]) + margin) * dtype.itemsize, _NAN, np.uint8)
    elements = room.view(dtype)
    begins = (first, first + shift)
    one, other = (
        elements[begin : begin + size].reshape(each)
        for begin, size, each in zip(begins, sizes, (shape, neighbour), strict=True)
    )
    return room, one, other
