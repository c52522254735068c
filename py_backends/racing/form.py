"""Arrays of any dtype in memory that knows the project's number formats alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from py_backends.contract import Array
from py_backends.errors import WrongRequest
from py_backends.number_formats import FORMATS

_PARTS = {"complex64": "float32", "complex128": "float64"}
_OF_SAME_BITS = {
    "bool": "int8",
    "uint8": "int8",
    "uint32": "int32",
    "uint64": "int64",
}


@dataclass(frozen=True)
class Form:
    """The shape and the dtype of an array that a function takes or gives."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, array: Array, whose: str) -> Form:
        """That of an array. Raises WrongRequest, with one line, for a dtype that no memory can be shared of.

        whose: what is wrong then, such as "input 1".
        """
        dtype = array.dtype
        if _is_no_array(array):
            raise WrongRequest(f"{whose} is {_said(array)}: it must be an array, or a tuple of arrays")
        if dtype.hasobject or dtype.kind == "T" or dtype.char in "gG" or not dtype.itemsize:
            raise WrongRequest(f"{whose} is an array of {dtype}, which processes cannot share here")
        return cls(array.shape, dtype)

    @cached_property
    def kept_as(self) -> np.dtype[Any]:
        """The number format that it has in shared memory.

        Complex numbers are two real ones. Booleans and whole numbers without a sign have one there. What has no number
        format is bytes.
        """
        name = self.dtype.name if self.dtype.isnative else ""
        name = _PARTS.get(name) or _OF_SAME_BITS.get(name) or name
        return np.dtype(name if name in FORMATS else np.int8)

    @cached_property
    def kept_shape(self) -> tuple[int, ...]:
        """The shape there: where an element is several, that is one dimension more."""
        several = self.dtype.itemsize // self.kept_as.itemsize
        return self.shape if several == 1 else (*self.shape, several)

    @property
    def is_real(self) -> bool:
        """Whether it is judged by a bound. Whole numbers, and all that is no number, are right bit for bit."""
        return self.kept_as.kind != "i"

    @cached_property
    def size(self) -> int:
        """Its elements in shared memory."""
        return math.prod(self.kept_shape)

    def kept(self, array: Array) -> Array:
        """An array of this form as it is kept."""
        return np.ascontiguousarray(array).reshape(-1).view(self.kept_as).reshape(self.kept_shape)

    def given(self, kept: Array) -> Array:
        """What is kept, in this form: a view. More elements may follow."""
        return kept.reshape(-1)[: self.size].view(self.dtype).reshape(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype} of shape {self.shape}"


def in_words(results: Sequence[Array | Form]) -> str:
    """All that a function gives, in the words of forms, as far as it is arrays."""
    said = [str(each) if isinstance(each, Form) else _said(each) for each in results]
    return said[0] if len(said) == 1 else f"({', '.join(said)})"


def _said(array: Array) -> str:
    return f"a {type(array.item()).__name__}" if _is_no_array(array) else str(Form(array.shape, array.dtype))


def _is_no_array(array: Array) -> bool:
    """Whether NumPy has made an array of what is none, such as a dict."""
    return array.dtype.hasobject and array.ndim == 0


def arrays_of(answer: Any) -> tuple[Array, ...]:
    """What a function gave, as NumPy's arrays: one, or those of a tuple. Work that it began has ended then."""
    return tuple(map(_array, answer if isinstance(answer, tuple) else (answer,)))


def _array(result: Any) -> Array:
    if hasattr(result, "__cuda_array_interface__"):  # which NumPy does not read by itself
        result = result.get() if hasattr(result, "get") else result.cpu()
    array = np.asarray(result)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
