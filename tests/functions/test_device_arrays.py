"""Arrays on a device with memory of its own: what crosses the bus, what is refused, and when memory is released."""

from __future__ import annotations

import gc
import inspect
import re
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from far_backend import PROBLEMS, Far, FarArray, Near, TestBackend
from given_arrays import CUDA, FarTensor, Tensor, drawn

import py_backends as pb
from py_backends import registry
from py_backends.contract import Array
from py_backends.functions import api, call, dispatch
from py_backends.kernel_text import KernelText

FLOAT32 = np.dtype(np.float32)


@pytest.fixture
def backends(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Backends of these tests, by their names, which have all kernels, and those of these tests too."""
    made: dict[str, Any] = {}
    names, backend, problem, texts = (
        getattr(registry, name) for name in ("backend_names", "backend", "problem", "kernel_texts")
    )

    def text(kernel: str, name: str) -> dict[str, KernelText]:
        if name not in made:
            return dict(texts(kernel, name))
        found = registry.problem(kernel)
        path = next(iter(texts("vecadd", "numpy").values())).path
        return {"lecture": KernelText(found, "lecture", name, path)}

    monkeypatch.setattr(registry, "backend_names", lambda: [*names(), *made])
    monkeypatch.setattr(registry, "backend", lambda name: made.get(name) or backend(name))
    monkeypatch.setattr(registry, "problem", lambda kernel: PROBLEMS.get(kernel) or problem(kernel))
    monkeypatch.setattr(registry, "kernel_texts", text)
    yield made
    devices = {id(each.device) for each in made.values()}
    forget(dispatch._targets, lambda name: name in made)
    forget(dispatch._dtypes, lambda key: key[1] in made)
    forget(call._devices, lambda key: key[0] in made)
    forget(call._launches, lambda key: key[0] in devices)
    forget(call._ready, lambda key: key[0][1] in made)
    forget(call._places, lambda key: key[0][1] in made)


def forget(cached: dict[Any, Any], of_tests: Callable[[Any], bool]) -> None:
    for key in [key for key in cached if of_tests(key)]:
        del cached[key]


@pytest.fixture
def far(backends: dict[str, Any]) -> Far:
    backends["far"] = TestBackend(Far())
    device = backends["far"].device
    assert isinstance(device, Far)
    return device


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_lies_on_the_device_stays_there(far: Far, dtype: str) -> None:
    a, b = FarArray(drawn(5, 7, dtype=dtype)), FarArray(drawn(7, 3, dtype=dtype))
    before = a.get(), b.get()
    product = pb.matmul(a, b, backend="far", to="device")
    assert far.counted() == (0, 0)
    assert type(product) is FarArray
    np.testing.assert_array_equal(product.elements, a.elements @ b.elements)
    assert product.dtype == dtype
    again = pb.matmul(product, FarArray(b.elements.T.copy()), backend="far", to="device")
    assert far.counted() == (0, 0)
    np.testing.assert_array_equal(again.elements, product.elements @ b.elements.T)
    np.testing.assert_array_equal(a.elements, before[0])
    np.testing.assert_array_equal(b.elements, before[1])


@pytest.mark.parametrize("to", [None, "host"])
def test_a_result_for_the_host_crosses_the_bus_once(far: Far, to: str | None) -> None:
    x = FarArray(drawn(9))
    total = pb.vecadd(x, x, backend="far", to=to)
    assert far.counted() == (0, 1)
    assert type(total) is np.ndarray
    np.testing.assert_array_equal(total, 2 * x.elements)


def test_what_lies_on_the_host_is_brought_to_the_device(far: Far) -> None:
    """One input there and one here, of NumPy or of any library."""
    x, y = FarArray(drawn(9)), drawn(18)[::2]
    for on_host in (y, Tensor(y), memoryview(y.copy())):
        total = pb.vecadd(x, on_host, backend="far", to="device")
        assert far.counted() == (1, 0)
        np.testing.assert_array_equal(total.elements, x.elements + y)
    np.testing.assert_array_equal(pb.vecadd(y, y, backend="far"), 2 * y)
    assert far.counted() == (2, 1)


def test_out_may_be_an_array_on_the_device(far: Far) -> None:
    a, b, out = drawn(5, 7), FarArray(drawn(7, 3)), FarArray(np.zeros((5, 3), FLOAT32))
    assert pb.matmul(a, b, backend="far", out=out) is out
    assert far.counted() == (1, 0)
    np.testing.assert_array_equal(out.elements, a @ b.elements)


@pytest.mark.parametrize("lay", [lambda out: out, lambda out: out[:, ::-1], Tensor], ids=["plain", "strided", "DLPack"])
def test_out_may_be_on_the_host_where_inputs_are_not(far: Far, lay: Callable[[Array], Any]) -> None:
    a, b, out = FarArray(drawn(5, 7)), FarArray(drawn(7, 3)), lay(np.zeros((5, 3), FLOAT32))
    assert pb.matmul(a, b, backend="far", out=out) is out
    assert far.counted() == (0, 1)
    np.testing.assert_array_equal(np.from_dlpack(out), a.elements @ b.elements)


@pytest.mark.usefixtures("far")
def test_out_may_be_an_input_of_vecadd_but_not_a_part_of_it() -> None:
    memory = drawn(20)
    x, expected = FarArray(memory[:10]), memory[:10] * 2
    assert pb.vecadd(x, x, backend="far", out=x) is x
    np.testing.assert_array_equal(x.elements, expected)
    before = memory.copy()
    with pytest.raises(ValueError, match="out overlaps a part of an input on its device"):
        pb.vecadd(x, x, backend="far", out=FarArray(memory[5:15]))
    pb.vecadd(x, x, backend="far", out=FarArray(memory[10:]))
    np.testing.assert_array_equal(memory[:10], before[:10])
    np.testing.assert_array_equal(memory[10:], 2 * before[:10])


@pytest.mark.usefixtures("far")
def test_out_may_not_be_an_input_of_matmul() -> None:
    square = FarArray(drawn(4, 4))
    with pytest.raises(ValueError, match="out overlaps an input of matmul"):
        pb.matmul(square, drawn(4, 4), backend="far", out=square)
    with pytest.raises(ValueError, match="out overlaps an input of matmul"):
        pb.matmul(square, drawn(4, 4), backend="far", out=square.elements)


@pytest.mark.parametrize(
    ("out", "error", "words"),
    [
        (FarArray(np.ones(4, FLOAT32), writable=False), ValueError, "out is read-only"),
        (FarArray(np.ones(5, FLOAT32)), ValueError, r"out must have the shape \(4,\), not \(5,\)"),
        (FarArray(np.ones(4)), TypeError, "out must have the result's dtype float32, not float64"),
        (FarArray(np.ones(4, np.int32)), TypeError, "out must have the result's dtype float32, not int32"),
        (FarArray(np.ones(8, FLOAT32)[::2]), TypeError, "out: its elements do not lie in order"),
        (FarArray(np.ones(4, FLOAT32), device=1), TypeError, "out: it lies on device 1, and this is device 0"),
    ],
)
def test_unfit_outputs_on_the_device(far: Far, out: FarArray, error: type[Exception], words: str) -> None:
    before = out.elements.copy()
    for x in (drawn(4), FarArray(drawn(4))):
        with pytest.raises(error, match=words):
            pb.vecadd(x, x, backend="far", out=out)
    np.testing.assert_array_equal(out.elements, before)
    assert (far.uploads, far.downloads) == (0, 0)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (
            FarArray(np.ones(8, FLOAT32)[::2]),
            TypeError,
            "b: its elements do not lie in order .* make a contiguous copy",
        ),
        (FarArray(np.ones(4, FLOAT32), device=1), TypeError, "b: it lies on device 1, and this is device 0; copy it"),
        (
            FarArray(np.ones(4, np.float16)),
            TypeError,
            "b must be float32 or float64 .* not float16: vecadd of far",
        ),
        (FarArray(np.ones(4)), TypeError, "the inputs must have one dtype: a is float32, b is float64"),
        (FarArray(np.ones(5, FLOAT32)), ValueError, "a is 4 elements and b is 5 elements"),
        (FarArray(np.ones((2, 2), FLOAT32)), ValueError, "b is 2 x 2"),
        (
            FarTensor(np.ones(4, FLOAT32), CUDA),
            TypeError,
            r"in memory that far cannot reach: copy it first: b\.cpu\(\)",
        ),
    ],
)
def test_unfit_inputs_on_the_device(far: Far, given: Any, error: type[Exception], words: str) -> None:
    for x in (drawn(4), FarArray(drawn(4))):
        with pytest.raises(error, match=words):
            pb.vecadd(x, given, backend="far", to="device")
    assert (far.uploads, far.downloads) == (0, 0)


@pytest.mark.parametrize("to", ["host", "device"])
def test_empty_arrays_on_the_device(far: Far, to: str) -> None:
    nothing = FarArray(np.zeros(0, FLOAT32))
    assert pb.vecadd(nothing, nothing, backend="far", to=to).shape == (0,)
    assert pb.vecadd(nothing, np.zeros(0, FLOAT32), backend="far", out=nothing) is nothing
    product = pb.matmul(FarArray(np.zeros((2, 0), FLOAT32)), np.zeros((0, 3), FLOAT32), backend="far", to=to)
    assert product.shape == (2, 3)
    np.testing.assert_array_equal(product if to == "host" else product.get(), np.zeros((2, 3)))
    assert far.counted() == (0, to == "host")


def test_an_array_lives_until_its_kernel_has_ended(far: Far) -> None:
    given = [FarArray(drawn(9))]
    alive = weakref.ref(given[0])
    wait = far.wait

    def waiting() -> None:
        gc.collect()
        assert alive() is not None
        wait()

    far.wait = waiting  # type: ignore[method-assign]
    pb.vecadd(given.pop(), drawn(9), backend="far")
    gc.collect()
    assert alive() is None


def test_buffers_are_released_where_a_launch_fails(far: Far, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing() -> None:
        far.queued.clear()
        raise ArithmeticError

    monkeypatch.setattr(far, "wait", failing)
    with pytest.raises(ArithmeticError):
        pb.vecadd(FarArray(drawn(9)), drawn(9), backend="far", to="device")
    assert [buffer.elements for buffer in far.buffers] == [None] * 3


@pytest.mark.usefixtures("far")
def test_a_repeated_call_looks_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each read all sources of the kernel again."""
    array = FarArray(drawn(9))
    pb.vecadd(array, array, backend="far", to="device")
    monkeypatch.setattr(registry, "kernel_texts", None)
    pb.vecadd(array, array, backend="far", to="device")


def test_a_backend_may_have_no_arrays_for_its_results(far: Far) -> None:
    far.keeps_results = False
    with pytest.raises(ValueError, match="far has no arrays to leave a result in on its device: leave out to='device'"):
        pb.vecadd(drawn(4), drawn(4), backend="far", to="device")
    far.on_cpu = True
    assert type(pb.vecadd(drawn(4), drawn(4), backend="far", to="device")) is np.ndarray


@pytest.mark.parametrize("name", ["far", "near"])
class TestDtypes:
    """A backend declares the dtypes of the arrays that it takes."""

    def test_more_than_most_take(self, name: str, backends: dict[str, Any]) -> None:
        backends[name] = TestBackend(Far() if name == "far" else Near())
        backends[name].dtypes = ("float16", "float32", "float64")
        x = drawn(9, dtype="float16")
        assert pb.vecadd(x, x, backend=name).dtype == np.float16
        with pytest.raises(TypeError, match="must be float32, float64 or float16 in native byte order, not int8"):
            pb.vecadd(x.astype(np.int8), x, backend=name)

    def test_fewer_than_most_take(self, name: str, backends: dict[str, Any]) -> None:
        backends[name] = TestBackend(Far() if name == "far" else Near())
        backends[name].dtypes = ("float32",)
        pb.vecadd(drawn(9), drawn(9), backend=name)
        with pytest.raises(TypeError, match="a must be float32 in native byte order, not float64"):
            pb.vecadd(np.ones(9), np.ones(9), backend=name)


# Any number of inputs


@pytest.mark.parametrize("name", ["far", "near"])
class TestNumbersOfInputs:
    @pytest.fixture(autouse=True)
    def _backends(self, name: str, backends: dict[str, Any]) -> Iterator[None]:
        backends[name] = TestBackend(Far() if name == "far" else Near())
        yield
        api.function.cache_clear()  # of kernels that only these tests know

    def test_one(self, name: str) -> None:
        x, negated = drawn(5), api.function("negated")
        np.testing.assert_array_equal(negated(x, backend=name), -x)
        np.testing.assert_array_equal(negated(x=x, backend=name), -x)
        out = np.zeros(5, FLOAT32)
        assert negated(Tensor(x), backend=name, out=out) is out
        np.testing.assert_array_equal(out, -x)

    def test_three(self, name: str) -> None:
        u, v, w = drawn(5), drawn(5, seed=4), drawn(6, seed=5)
        fused = api.function("fused")
        for result in (
            fused(u, v, w, backend=name),
            fused(w=w, v=v, u=u, backend=name),
            fused(u, w=w, v=v, backend=name),
        ):
            np.testing.assert_array_equal(result, u * v + w[:-1])

    @pytest.mark.parametrize(
        ("call", "words"),
        [
            (lambda f, x, **how: f(x, **how), r"fused takes 3 inputs, u, v and w; 1 were given"),
            (lambda f, x, **how: f(x, x, x, x, **how), r"fused takes 3 inputs, u, v and w; 4 were given"),
            (lambda f, x, **how: f(x, x, w=x, v=x, **how), r"fused takes 3 inputs, u, v and w; 4 were given"),
            (lambda f, x, **how: f(x, x, v=x, **how), r"fused was given 'v' by position and by name"),
            (lambda f, x, **how: f(x, x, z=x, **how), r"fused has no parameter 'z'; its inputs are u, v and w"),
            (lambda f, x, **how: f(x, x, x, tread=1, **how), r"fused has no parameter 'tread'"),
        ],
    )
    def test_a_wrong_number_is_refused(self, name: str, call: Callable[..., Any], words: str) -> None:
        with pytest.raises(TypeError, match=words):
            call(api.function("fused"), drawn(5), backend=name)

    def test_signatures_and_words_have_the_inputs_names(self, name: str) -> None:
        fused, negated = api.function("fused"), api.function("negated")
        assert list(inspect.signature(fused).parameters)[:4] == ["u", "v", "w", "backend"]
        assert re.search(r"x: .*\bn elements", negated.__doc__ or "")
        inputs = re.findall(r"^[uvw]: .*", fused.__doc__ or "", re.MULTILINE)
        assert [" elements" in line for line in inputs] == [False] * 3, "whose shapes are computed"
        with pytest.raises(TypeError, match="v must be a NumPy array of float32 or float64"):
            fused(drawn(5), None, drawn(6), backend=name)
        with pytest.raises(TypeError, match="u is float32, v is float32, w is float64"):
            fused(drawn(5), drawn(5), drawn(6, dtype="float64"), backend=name)


@pytest.mark.cpp
def test_inputs_by_their_names() -> None:
    x, y = drawn(4), drawn(4, seed=4)
    for total in (
        pb.vecadd(a=x, b=y, backend="cpp"),
        pb.vecadd(x, b=y, backend="cpp"),
        pb.vecadd(b=y, a=x, backend="cpp"),
    ):
        np.testing.assert_array_equal(total, x + y)
    assert list(inspect.signature(pb.matmul).parameters)[:3] == ["a", "b", "backend"]
    assert re.search(r"a: .* m x k .*\nb: .* k x n ", pb.matmul.__doc__ or "")
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'backend'"):
        pb.vecadd(x, y)  # type: ignore[call-overload]
