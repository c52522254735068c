"""Arrays of any dtype lie in memory that knows the number formats alone, and come back bit for bit."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from py_backends.errors import WrongRequest
from py_backends.number_formats import FORMATS
from py_backends.racing.form import Form, arrays_of

pytestmark = pytest.mark.stamped

ARRAYS: dict[str, Any] = {
    "float64": np.arange(6.0).reshape(2, 3),
    "float32, not in C order": np.arange(6, dtype=np.float32).reshape(2, 3).T,
    "bfloat16": np.arange(3).astype(ml_dtypes.bfloat16),
    "complex128": np.array([1 + 2j, -3j]),
    "complex64": np.array([[1 + 2j]], np.complex64),
    "bool": np.array([True, False]),
    "uint8": np.array([0, 255], np.uint8),
    "uint64": np.array([2**64 - 1], np.uint64),
    "int16": np.array([-5, 7], np.int16),
    "big-endian": np.array([1.5, 2.5], ">f8"),
    "text": np.array(["a", "bcd"]),
    "times": np.array(["2020-01-01"], "M8[s]"),
    "records": np.array([(1.5, 2)], [("x", "f8"), ("n", "i2")]),
    "a single number": np.array(2.5),
    "empty": np.zeros((0, 3), np.complex128),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_what_is_kept_comes_back(name: str) -> None:
    array = ARRAYS[name]
    form = Form.of(array, "it")
    kept = form.kept(array)
    assert kept.dtype.name in FORMATS
    assert (kept.dtype, kept.shape) == (form.kept_as, form.kept_shape)
    more = np.concatenate([kept.reshape(-1), kept.reshape(-1)])
    back = form.given(more)
    assert (back.dtype, back.shape, back.tobytes()) == (array.dtype, array.shape, array.tobytes())


@pytest.mark.parametrize(
    "array",
    [np.array([None]), np.zeros(2, np.longdouble), np.zeros(2, [("x", object)])],
    ids=["object", "long", "field"],
)
def test_what_cannot_be_kept_is_one_line(array: Any) -> None:
    with pytest.raises(WrongRequest, match="input 2 is an array of") as raised:
        Form.of(array, "input 2")
    assert "\n" not in str(raised.value)


def test_results_are_arrays_or_tuples_of_them() -> None:
    assert [each.shape for each in arrays_of(2.5)] == [()]
    assert [each.shape for each in arrays_of(np.linalg.eigh(np.eye(3)))] == [(3,), (3, 3)]
    assert [each.dtype for each in arrays_of(np.ones(2, ">f4"))] == [np.float32]


class OnAGpu:
    """An array of a library whose arrays lie on a GPU, as far as it matters here."""

    __cuda_array_interface__: dict[str, Any] = {}

    def get(self) -> Any:
        return np.ones(2)


def test_arrays_on_a_gpu_are_fetched() -> None:
    assert [each.tolist() for each in arrays_of((OnAGpu(), 1))] == [[1, 1], 1]
