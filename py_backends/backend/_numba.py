"""What the two Numba backends share: whether Numba is there, and how it sees arrays of unknown formats."""

from __future__ import annotations

import importlib
from typing import Any

import ml_dtypes
import numpy as np

from py_backends.backend import _wheels

_SEEN_AS = {np.dtype(np.float16): np.dtype(np.int16), np.dtype(ml_dtypes.bfloat16): np.dtype(np.uint16)}
"""Integers that stand for the 16-bit formats. No kernel has them as formats, and they differ, so the type tells the
format."""


def seen(array: Any) -> Any:
    """An array, of NumPy or on a GPU, as sources see it: a view of the bits if Numba lacks its format."""
    bits = _SEEN_AS.get(array.dtype)
    return array if bits is None else array.view(bits)


def seen_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of such a view."""
    return _SEEN_AS.get(dtype, dtype)


def meant_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The format that such a dtype stands for."""
    return next((meant for meant, bits in _SEEN_AS.items() if bits == dtype), dtype)


def cpu() -> tuple[str, set[str]]:
    """The CPU that Numba compiles for: LLVM's triple, and its features, such as `+avx2` or `-avx2`."""
    registry = importlib.import_module("numba.core.registry")
    triple, _, features = registry.cpu_target.target_context.codegen().magic_tuple()
    return triple, set(features.split(","))


def load(extra: str) -> Any:
    """Numba itself. BackendUnavailable if it is missing, or does not fit the rest of the environment."""
    return _wheels.imported("numba", "Numba", extra)
