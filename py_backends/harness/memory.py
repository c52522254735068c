"""Arrays compared bit by bit, and copied to where shared ones lie."""

from __future__ import annotations

import mmap

import numpy as np

from py_backends.contract import Array


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
