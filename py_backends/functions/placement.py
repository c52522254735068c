"""Where arrays lie, on the host or on a device: whether two share memory, and whether a kernel may write to one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from py_backends.contract import Adopted, Array

Placed = Array | Adopted
"""An array on the host, or one in memory where the device computes."""
_EFFORT_OF_OVERLAP_TEST = 10_000
"""Steps that NumPy may take to tell whether two strided arrays share memory; undecided counts as shared."""


def outline(array: Placed) -> Array:
    """An array of the same shape and dtype on the host, for those who look at nothing else."""
    if isinstance(array, Adopted):
        return np.broadcast_to(np.empty((), array.dtype), array.shape)
    return array


def overlap(one: Placed, other: Placed) -> bool:
    """Whether two share memory; True as well where that takes too long to tell."""
    if isinstance(one, Adopted) or isinstance(other, Adopted):
        return _ranges_meet(one, other)
    try:
        return np.shares_memory(one, other, max_work=_EFFORT_OF_OVERLAP_TEST)  # type: ignore[arg-type]  # NumPy's stub knows 0 and -1 only
    except np.exceptions.TooHardError:
        return True


def _ranges_meet(one: Placed, other: Placed) -> bool:
    """Whether the ranges of memory from the first to the last byte of each have a byte in common."""
    (begin, end), (other_begin, other_end) = _bounds(one), _bounds(other)
    return begin < other_end and other_begin < end


def _bounds(array: Placed) -> tuple[int, int]:
    if isinstance(array, Adopted):
        return array.address, array.address + outline(array).size * array.dtype.itemsize
    return np.lib.array_utils.byte_bounds(array) if array.size else (0, 0)


def overlaps_itself(out: Placed) -> bool:
    """Whether several elements of an array share memory, as those of a broadcast array do."""
    if isinstance(out, Adopted) or out.flags.c_contiguous or out.flags.f_contiguous or not out.size:
        return False
    reach = out.itemsize
    for step, count in sorted((abs(step), count) for step, count in zip(out.strides, out.shape, strict=True)):
        if count > 1 and step < reach:  # which may still lead apart, as steps of 2 and 3 elements do in two rows of two
            return bool((np.diff(np.sort(_places(out))) < out.itemsize).any())
        reach += step * (count - 1)
    return False


def _places(array: Array) -> Array:
    """The distance in bytes of each element from the first, in a row."""
    along = (np.arange(count) * step for step, count in zip(array.strides, array.shape, strict=True))
    return np.asarray(sum(np.ix_(*along))).ravel()


def usable_in_place(out: Placed, inputs: Sequence[Placed]) -> bool:
    """Whether a kernel may write straight into `out`: in order in memory, and each element over itself at most."""
    if isinstance(out, Adopted):
        return True  # else it was refused
    return _in_order(out) and all(apart_or_same(out, array) for array in inputs)


def apart_or_same(out: Placed, array: Placed) -> bool:
    """Whether an output that lies in order shares no byte with an input, or has each element in the input's place."""
    if isinstance(out, np.ndarray) and isinstance(array, np.ndarray):
        return not np.may_share_memory(out, array) or (
            out.ctypes.data == array.ctypes.data and out.shape == array.shape and out.strides == array.strides
        )
    if not _ranges_meet(out, array):
        return True
    in_order = isinstance(array, Adopted) or _in_order(array)
    return in_order and out.shape == array.shape and _bounds(out) == _bounds(array)


def flat(array: Placed) -> Placed:
    """Its elements one after the other, as kernels take them: a copy where they do not lie so."""
    if type(array) is not np.ndarray:
        if isinstance(array, Adopted):
            return array
        array = array.view(np.ndarray)  # a matrix, for one, is never flat
    return (array if _in_order(array) else np.require(array, requirements=["C", "A"])).reshape(-1)


def _in_order(array: Array) -> bool:
    flags = array.flags
    return flags.c_contiguous and flags.aligned
