"""Arrays of any dtype in memory that knows the project's number formats alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
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

_NUMBERS = {bool: "biufc", int: "iufc", float: "fc", complex: "c"}
"""Those of Python, and the kinds of dtypes to which each goes without becoming another kind of number."""


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


def arrays_of(answer: Any, forms: Sequence[Form] = ()) -> tuple[Array, ...]:
    """What a function gave, as NumPy's arrays: one, or those of a tuple. Work that it began has ended then.

    forms: of a right answer, if that is known. Numbers of Python take its dtypes where they can.
    """
    results = answer if isinstance(answer, tuple) else (answer,)
    return tuple(_array(each, form) for each, form in zip_longest(results, forms[: len(results)]))


def _array(result: Any, form: Form | None = None) -> Array:
    if hasattr(result, "__cuda_array_interface__"):  # which NumPy does not read by itself
        result = result.get() if hasattr(result, "get") else result.cpu()
    with np.errstate(over="ignore"):
        array = np.asarray(result, _dtype_beside(form, result))
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _dtype_beside(form: Form | None, result: Any) -> np.dtype[Any] | None:
    """That of a right answer for a number of Python, which has none of its own, if such a number goes there.

    A compiled function may have had it: Numba gives a number of float32 back as one of Python.
    """
    if form is None or form.shape or type(result) not in _NUMBERS:
        return None
    kind = "f" if form.dtype.name in FORMATS and form.is_real else form.dtype.kind  # ml_dtypes has its own kind
    if kind not in _NUMBERS[type(result)]:
        return None
    try:
        with np.errstate(over="ignore"):
            np.asarray(result, form.dtype)
    except OverflowError:
        return None
    return form.dtype


def remedy(results: Sequence[Array], forms: Sequence[Form]) -> str:
    """What to do about results of the right shapes in other dtypes, as the end of a sentence; else nothing.

    The first such result stands for all.
    """
    if [each.shape for each in results] != [form.shape for form in forms] or any(map(_is_no_array, results)):
        return ""
    form = next(form for each, form in zip(results, forms, strict=True) if each.dtype != form.dtype)
    name = form.dtype.name
    if form.shape:
        return f': .astype("{name}") at its end converts it'
    return f": np.{name}(...) around it converts it"
