"""Compares arrays bit by bit, and makes copies that are aligned like shared memory."""

from __future__ import annotations

import mmap

import numpy as np

from py_backends.contract import Array


def page_aligned_copy(memory: Array) -> Array:
    """A flat copy that begins at a page of memory, as shared arrays do."""
    room = np.empty(memory.nbytes + mmap.PAGESIZE, np.uint8)
    first = -room.ctypes.data % mmap.PAGESIZE
    copy = room[first : first + memory.nbytes].view(memory.dtype)
    copy[...] = memory
    return copy


def same_bits(one: Array, other: Array) -> Array:
    """Which elements of two arrays have the same bits. Any two NaN are the same. Shapes and dtypes must agree."""
    bits = np.dtype(f"u{one.itemsize}")
    same: Array = one.view(bits) == other.view(bits)
    if not same.all():
        with np.errstate(invalid="ignore"):  # NumPy warns of NaN that signal
            same |= np.isnan(one) & np.isnan(other)
    return same
