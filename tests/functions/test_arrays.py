"""Arrays that people have: used where they lie, brought to a device at most, never from one; or refused in one line."""

from __future__ import annotations

import array as python_array
import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from conftest import has_device, marked_backends, skip_or_fail, targets_of
from given_arrays import (
    CPU,
    CUDA,
    BrainFloats,
    FarTensor,
    HalfTensor,
    LostTensor,
    OddTensor,
    OldTensor,
    Tensor,
    WithGradient,
    drawn,
    read_only,
)

import py_backends as pb
from py_backends import registry
from py_backends.contract import Array
from py_backends.functions import call, foreign_arrays

FLOAT32 = np.dtype(np.float32)


def on_every_backend(test: Callable[..., None]) -> Callable[..., None]:
    return pytest.mark.usefixtures("device_at_hand")(pytest.mark.parametrize("backend", marked_backends())(test))


@pytest.fixture
def device_at_hand(backend: str, pytestconfig: pytest.Config) -> None:
    if not has_device(backend):
        skip_or_fail(pytestconfig, backend, f"{targets_of(backend)[0].reason}")


FOREIGN: dict[str, Callable[[Array], Any]] = {
    "DLPack": Tensor,
    "DLPack without keywords": OldTensor,
    "read-only, by DLPack": lambda array: Tensor(read_only(array)),
    "pinned, by DLPack": lambda array: Tensor(array, foreign_arrays.Memory.CUDA_PINNED),
    "on a device, in memory that the host addresses": lambda array: Tensor(array, CUDA),
    "a buffer": memoryview,
}


@on_every_backend
@pytest.mark.parametrize("kind", FOREIGN)
def test_arrays_on_the_host_are_read_where_they_lie(backend: str, kind: str, seen: list[Any]) -> None:
    x, y, a, b = drawn(37), drawn(37, seed=4), drawn(5, 7), drawn(7, 3)
    as_foreign = FOREIGN[kind]
    if registry.kernel_texts("vecadd", backend):
        np.testing.assert_array_equal(pb.vecadd(as_foreign(x), as_foreign(y), backend=backend), x + y)
        assert [each.ctypes.data for each in seen[:2]] == [x.ctypes.data, y.ctypes.data]
    np.testing.assert_array_equal(pb.matmul(as_foreign(a), b, backend=backend, variant="lecture"), a @ b)
    assert [each.ctypes.data for each in seen[:2]] == [a.ctypes.data, b.ctypes.data]


@pytest.mark.numpy
def test_no_copy_is_accepted_of_memory_on_a_device() -> None:
    tensor = Tensor(drawn(4), CUDA)
    pb.vecadd(tensor, tensor, backend="numpy")
    assert {(how["copy"], how["dl_device"]) for how in tensor.asked} == {(False, (CPU, 0))}


@pytest.mark.numpy
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_strided_arrays_of_other_libraries(dtype: str) -> None:
    a, b = drawn(8, 6, dtype=dtype)[::2, ::-1], drawn(5, 6, dtype=dtype).T
    np.testing.assert_array_equal(pb.matmul(Tensor(a), Tensor(b), backend="numpy"), a @ b)


@pytest.mark.cpp
def test_buffers_of_python_are_arrays_too() -> None:
    x, y = python_array.array("d", [1, 2, 3]), (ctypes.c_double * 3)(4, 5, 6)
    assert pb.vecadd(x, y, backend="cpp").tolist() == [5, 7, 9]
    assert pb.vecadd(x, memoryview(y), backend="cpp", out=x) is x
    assert x.tolist() == [5, 7, 9]


@on_every_backend
def test_out_of_another_library_is_written_where_it_lies(backend: str) -> None:
    a, b, out = drawn(5, 6), drawn(6, 7), Tensor(np.full((5, 7), np.nan, FLOAT32))
    assert pb.matmul(Tensor(a), b, backend=backend, variant="lecture", out=out) is out
    np.testing.assert_array_equal(out.array, a @ b)
    if not registry.kernel_texts("vecadd", backend):
        return
    shared = Tensor(drawn(33))
    expected = 2 * shared.array
    assert pb.vecadd(shared, shared, backend=backend, out=shared) is shared
    np.testing.assert_array_equal(shared.array, expected)


@pytest.mark.cpp
def test_out_that_a_library_does_not_let_others_write_to() -> None:
    x = drawn(4)
    for out in (Tensor(read_only(drawn(4))), OldTensor(drawn(4))):  # an old capsule cannot say that it may be written
        with pytest.raises(ValueError, match="out is read-only"):
            pb.vecadd(x, x, backend="cpp", out=out)


@on_every_backend
def test_arrays_on_a_device_out_of_reach_are_not_copied(backend: str) -> None:
    x = drawn(4, 4)
    with pytest.raises(TypeError, match=rf"b is a \w+ array \(FarTensor\) in memory that {backend} cannot reach: "):
        pb.matmul(x, FarTensor(x, CUDA), backend=backend)
    with pytest.raises(TypeError, match=r"cannot reach: pass an array on the host as out$"):
        pb.matmul(x, x, backend=backend, out=FarTensor(x, CUDA))


@pytest.mark.cpp
@pytest.mark.parametrize(
    ("given", "words"),
    [
        (WithGradient(drawn(4)), "a: Can't export tensors that require gradient"),
        (BrainFloats(), "a: Unsupported .*; bfloat16 is taken in arrays of NumPy"),
        (Tensor(np.ones(4, np.int16)), "not int16: vecadd of cpp takes no other dtype"),
        (np.ones(4, np.int16), r"not int16: .* for instance with a\.astype\('float32'\)"),
        (b"abcd", r"not uint8: .* for instance with np\.frombuffer\(a, 'float32'\)$"),
        (python_array.array("i", [1] * 4), r"not int32: .* for instance with np\.asarray\(a, 'float32'\)$"),
        (HalfTensor(), "a: 'HalfTensor' object has no attribute '__dlpack_device__'"),
        (LostTensor(), "a: 'LostTensor' object has no attribute 'capsule'"),
        (OddTensor(KeyError("device")), "a: KeyError 'device'$"),
        (OddTensor(OSError("two\nlines")), "a: two / lines$"),
        (OddTensor(ZeroDivisionError()), "a: ZeroDivisionError$"),
        (Tensor, r"another array that hands its memory out, not type$"),
        (np.ndarray, r"another array that hands its memory out, not type$"),
        (np, "another array that hands its memory out, not module$"),
        ([1.0] * 4, r"not list; convert it first, for instance with np\.asarray\(a, 'float32'\)$"),
        (1.0, r"not float$"),
        (OddTensor(KeyError("device"), np.int16), r"not int16: .* for instance with np\.asarray\(a, 'float32'\)$"),
        (Tensor(np.ones(4, ">f4")), "a must be float32, .* in native byte order, not "),
        (np.ma.array(drawn(4)), r"not MaskedArray; convert it first, for instance with a\.filled\(0\)$"),
        (
            "abcd",
            "a must be a NumPy array of float32, .* or bfloat16, or another array that hands its memory out, not str",
        ),
        (np.float32(1), "not float32|a single number"),
        (SimpleNamespace(dtype=FLOAT32, shape=(4,)), "copy it to a NumPy array first"),
    ],
)
def test_refusals_say_what_to_do(given: Any, words: str) -> None:
    x = drawn(4)
    pb.vecadd(x, x, backend="cpp")
    with pytest.raises((TypeError, ValueError), match=words) as refusal:
        pb.vecadd(given, x, backend="cpp")
    assert "\n" not in str(refusal.value)


@on_every_backend
def test_results_may_stay_where_they_are(backend: str) -> None:
    """Where the host is the device, they are NumPy's. Whatever they are, the same backend takes them again."""
    a, b = drawn(6, 6), drawn(6, 6, seed=4)
    product = pb.matmul(a, b, backend=backend, variant="lecture", to="device")
    assert product.shape == (6, 6)
    assert product.dtype == FLOAT32
    np.testing.assert_array_equal(pb.matmul(product, a, backend=backend, variant="lecture", to="host"), (a @ b) @ a)
    device = call._device(("matmul", backend, None, None, None, type(None)), "float32")
    assert isinstance(product, np.ndarray) == (device.new((1,), FLOAT32) is None)


@pytest.mark.parametrize("backend", [pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("cpp", "numpy")])
class TestPlaces:
    def test_names(self, backend: str) -> None:
        with pytest.raises(ValueError, match="unknown place of a result 'devise': did you mean 'device'"):
            pb.vecadd(drawn(4), drawn(4), backend=backend, to="devise")

    def test_out_is_a_place_already(self, backend: str) -> None:
        with pytest.raises(ValueError, match="give one of the two"):
            pb.vecadd(drawn(4), drawn(4), backend=backend, to="host", out=drawn(4))
