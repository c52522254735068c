"""Arrays of any dtype lie in memory that knows the number formats alone, and come back bit for bit."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from py_backends.errors import WrongRequest
from py_backends.number_formats import FORMATS
from py_backends.racing.form import Form, arrays_of, remedy

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


TAKEN: list[tuple[Any, Any, Any]] = [
    (2.5, np.float32, np.float32),
    (2.5, ml_dtypes.bfloat16, ml_dtypes.bfloat16),
    (2, np.float32, np.float32),
    (2, np.uint8, np.uint8),
    (True, np.bool_, np.bool_),
    (2.5, np.complex64, np.complex64),
    (1e300, np.float32, np.float32),
    (300, np.uint8, np.int64),
    (10**400, np.float64, object),
    (2.5, np.int32, np.float64),
    (1j, np.float64, np.complex128),
    (2, np.bool_, np.int64),
    (2, "M8[s]", np.int64),
    (np.float64(2.5), np.float32, np.float64),
    (np.array(2.5), np.float32, np.float64),
]


@pytest.mark.parametrize(("result", "beside", "taken"), TAKEN, ids=str)
def test_a_number_of_python_takes_the_dtype_of_a_right_one_if_it_is_of_its_kind(
    result: Any, beside: Any, taken: Any
) -> None:
    """One of NumPy has a dtype of its own. A function may return fewer results, or more."""
    form = Form((), np.dtype(beside))
    for answer, count in ((result, 1), ((result, 2.5), 2)):
        found = arrays_of(answer, (form,))
        assert len(found) == count
        assert found[0].dtype == taken
    assert arrays_of(result, (form, form))[0].dtype == taken
    assert arrays_of(2.5, (Form((1,), np.dtype(np.float32)),))[0].dtype == np.float64


def test_a_result_of_another_dtype_is_told_how_it_is_converted() -> None:
    """Where that is what is wrong with it."""
    several, one = Form((2,), np.dtype(np.float32)), Form((), np.dtype(np.float32))
    given = np.zeros(2), np.zeros((), np.float32)
    assert remedy(given, (several, one)) == ': .astype("float32") at its end converts it'
    assert remedy((np.zeros(()),), (one,)) == ": np.float32(...) around it converts it"
    assert remedy(given, (several,)) == remedy((np.zeros(3),), (several,)) == ""
    assert remedy((np.array(None),), (one,)) == ""
