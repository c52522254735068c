"""Arrays that people have beside NumPy's: where they lie, by the protocols in which libraries hand memory out.

DLPack (https://data-apis.org/array-api/latest/design_topics/data_interchange.html) and Python's own buffers. What a
device takes beside them is said by its `adopt`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from types import ModuleType
from typing import Any

import numpy as np

from py_backends.contract import Array
from py_backends.wording import in_one_line

NO_ARRAYS = (type, ModuleType, np.ma.MaskedArray)
"""Classes, modules and arrays with a mask are none, whatever attributes they have."""
CONVERTIBLE = (list, tuple, np.ma.MaskedArray)
"""What is no array, and has the numbers of one."""
REFUSALS = (AttributeError, BufferError, NotImplementedError, RuntimeError, TypeError, ValueError)
"""What devices raise for arrays that they cannot adopt, and `on_host` for those that it cannot read."""


class Memory(IntEnum):
    """Kinds of memory, by DLPack's numbers (`DLDeviceType` in dlpack.h)."""

    CPU = 1
    CUDA = 2
    CUDA_PINNED = 3
    ROCM_PINNED = 11
    CUDA_MANAGED = 13


_HOST = (Memory.CPU, Memory.CUDA_PINNED, Memory.ROCM_PINNED)


def dlpack_memory(array: Any) -> int | None:
    """The kind of memory that an array lies in, by DLPack's number; None where it does not speak DLPack.

    Raises TypeError with its library's words where it only half speaks DLPack.
    """
    if not hasattr(array, "__dlpack__"):
        return None
    with _in_its_words():
        kind, _ = array.__dlpack_device__()
        return int(kind)


def on_host(array: Any) -> Array | None:
    """The array as a NumPy array on the same memory; None where it has none that the host can address.

    It is read-only where its library says so. Raises TypeError with its library's words where it lies on the host and
    cannot be read there.
    """
    kind = dlpack_memory(array)
    if kind in _HOST:
        with _in_its_words():
            return np.from_dlpack(array)
    if kind is not None:
        try:  # memory of a device that the host may address too: its library knows, and waits for what it computes
            with _in_its_words():
                return np.from_dlpack(array, device="cpu", copy=False)
        except TypeError:
            return None
    try:
        return np.asarray(memoryview(array))
    except (BufferError, TypeError, ValueError):
        return None


@contextmanager
def _in_its_words() -> Iterator[None]:
    """Turn whatever a library raises into a TypeError that says the same in one line."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:  # it may be anything, of a library that only half speaks DLPack
        said = in_one_line(str(error))
        kind = type(error).__name__ if isinstance(error, LookupError) or not said else ""
        raise TypeError(f"{kind} {said}".strip()) from error


def writable(array: Any) -> bool:
    """Whether others may write to an array on a GPU, as its `__cuda_array_interface__` says; True where it has none."""
    interface = getattr(array, "__cuda_array_interface__", {"data": (0, False)})
    return not interface["data"][1]


def out_of_order() -> TypeError:
    """What to raise for an array on a device that does not lie there in order."""
    return TypeError(
        "its elements do not lie in order (it is not C-contiguous), and on a device nothing puts them in order; "
        "make a contiguous copy of it first"
    )


def dtype_name(array: Any) -> str:
    """NumPy's name for the dtype of any library's array; empty for an object without a dtype, and for a class."""
    return "" if isinstance(array, type) else str(getattr(array, "dtype", "")).rpartition(".")[2]


def how_to_convert(name: str, given: Any, dtype: str) -> str:
    """The words that make an array of a dtype of something with numbers."""
    if isinstance(given, np.ma.MaskedArray):
        return f"{name}.filled(0)"
    if hasattr(given, "astype"):
        return f"{name}.astype({dtype!r})"
    function = "frombuffer" if isinstance(given, bytes | bytearray) else "asarray"
    return f"np.{function}({name}, {dtype!r})"


def how_to_copy(name: str, array: Any) -> str:
    """The words that bring an array to the host, in the terms of its library."""
    for method in ("get", "copy_to_host", "cpu", "asnumpy"):  # CuPy and pyopencl, Numba, PyTorch, dpnp
        if callable(getattr(array, method, None)):
            return f"copy it first: {name}.{method}()"
    return "copy it to a NumPy array first"
