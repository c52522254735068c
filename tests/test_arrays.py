"""Arrays that people have: used where they lie, brought to a device at most, never from one; or refused in one line."""

from __future__ import annotations

import array as python_array
import ctypes
import gc
import inspect
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from conftest import has_device, marked_backends, skip_or_fail, targets_of

import py_backends as pb
from py_backends import api, calls, contract, foreign_arrays, registry
from py_backends.backend import cuda as cuda_backend
from py_backends.backend import numba_cuda
from py_backends.backend._cupy import Memory
from py_backends.contract import Adopted, Array, Buffer, Launch, Problem, Reference, Target
from py_backends.kernel_text import KernelText

FLOAT32 = np.dtype(np.float32)
CPU, CUDA = foreign_arrays.Memory.CPU, foreign_arrays.Memory.CUDA


def drawn(*shape: int, dtype: str = "float32", seed: int = 3) -> Array:
    """Small whole numbers, whose sums and products come out exact in any order."""
    return np.random.default_rng(seed).integers(-9, 9, shape).astype(dtype)


def on_every_backend(test: Callable[..., None]) -> Callable[..., None]:
    return pytest.mark.usefixtures("device_at_hand")(pytest.mark.parametrize("backend", marked_backends())(test))


@pytest.fixture
def device_at_hand(backend: str, pytestconfig: pytest.Config) -> None:
    if not has_device(backend):
        skip_or_fail(pytestconfig, backend, f"{targets_of(backend)[0].reason}")


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The arrays of the last call as its device got them: inputs, then output."""
    arrays: list[Any] = []
    run = calls._run

    def spying(device: Any, launch: Any, inputs: Any, output: Any, sizes: Any) -> None:
        arrays[:] = [*inputs, output]
        run(device, launch, inputs, output, sizes)

    monkeypatch.setattr(calls, "_run", spying)
    return arrays


# On the host, of other libraries


class Tensor:
    """An array of a library that speaks DLPack: it is somewhere, and hands its memory out."""

    def __init__(self, array: Array, where: int = CPU) -> None:
        self.array, self.where, self.asked = array, where, list[dict[str, Any]]()
        self.dtype, self.shape = array.dtype, array.shape

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.where, 0

    def __dlpack__(self, **how: Any) -> Any:
        self.asked.append(how)
        if self.where == CUDA and how.get("dl_device") != (CPU, 0):
            raise BufferError("it is not on the CPU")
        return self.array.__dlpack__(max_version=how.get("max_version"))


class OldTensor(Tensor):
    """As before the array API of 2023, as Arrow's: no version, device or copy to be asked for."""

    def __dlpack__(self, stream: None = None) -> Any:  # type: ignore[override]
        return self.array.__dlpack__()


class FarTensor(Tensor):
    """On a GPU, whose memory the host cannot reach."""

    def __dlpack__(self, **how: Any) -> Any:
        raise BufferError("that needs a copy")

    def cpu(self) -> Tensor:
        return Tensor(self.array)


class WithGradient(Tensor):
    def __dlpack__(self, **how: Any) -> Any:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")


class BrainFloats(Tensor):
    """bfloat16, as PyTorch has them, of which NumPy knows nothing."""

    def __init__(self) -> None:
        super().__init__(np.zeros(4, np.uint16))
        self.dtype: Any = "torch.bfloat16"

    def __dlpack__(self, **how: Any) -> Any:
        raise BufferError("Unsupported dtype in DLTensor.")


def read_only(array: Array) -> Array:
    array.flags.writeable = False
    return array


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
    np.testing.assert_array_equal(pb.matmul(as_foreign(a), b, backend=backend), a @ b)
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
    assert pb.matmul(Tensor(a), b, backend=backend, out=out) is out
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
    with pytest.raises(TypeError, match=r"copy it first: out\.cpu\(\)$"):
        pb.matmul(x, x, backend=backend, out=FarTensor(x, CUDA))


@pytest.mark.cpp
@pytest.mark.parametrize(
    ("given", "words"),
    [
        (WithGradient(drawn(4)), "a: Can't export tensors that require gradient"),
        (BrainFloats(), "a: Unsupported .*; bfloat16 is taken in arrays of NumPy"),
        (Tensor(np.ones(4, np.int16)), "not int16: cpp takes no other dtype"),
        (np.ones(4, np.int16), r"not int16: .* for instance with a\.astype\('float32'\)"),
        (b"abcd", "not uint8"),
        (
            "abcd",
            "a must be a NumPy array of float32 or .* or bfloat16, or another array that hands its memory out, not str",
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
    product = pb.matmul(a, b, backend=backend, to="device")
    assert product.shape == (6, 6)
    assert product.dtype == FLOAT32
    np.testing.assert_array_equal(pb.matmul(product, a, backend=backend, to="host"), (a @ b) @ a)
    device = calls._device(("matmul", backend, None, None, None, type(None)), "float32")
    assert isinstance(product, np.ndarray) == (device.new((1,), FLOAT32) is None)


@pytest.mark.parametrize("backend", [pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("cpp", "numpy")])
class TestPlaces:
    def test_names(self, backend: str) -> None:
        with pytest.raises(ValueError, match="unknown place of a result 'devise': did you mean 'device'"):
            pb.vecadd(drawn(4), drawn(4), backend=backend, to="devise")

    def test_out_is_a_place_already(self, backend: str) -> None:
        with pytest.raises(ValueError, match="give one of the two"):
            pb.vecadd(drawn(4), drawn(4), backend=backend, to="host", out=drawn(4))


# A device whose memory is its own


class FarArray:
    """An array on the device of the backend `far`: elsewhere than on the host, as far as anybody is told."""

    def __init__(self, elements: Array, device: int = 0, writable: bool = True) -> None:
        self.elements, self.device, self.writable = elements, device, writable
        self.dtype, self.shape = elements.dtype, elements.shape

    def get(self) -> Array:
        return self.elements.copy()


@dataclass
class FarMemory:
    """A buffer. Kernels use it until it is released."""

    elements: Array | None
    owner: Any = None


@dataclass
class Far(contract.Device):
    """Computes when it is waited for, in memory of its own, and counts what crosses the bus."""

    uploads: int = 0
    downloads: int = 0
    buffers: list[FarMemory] = field(default_factory=list)
    queued: list[Callable[[], None]] = field(default_factory=list)
    keeps_results: bool = True
    on_cpu: bool = False

    __hash__ = object.__hash__

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        def launch(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            def compute() -> None:
                assert all(buffer.elements is not None for buffer in buffers), "memory that has been released"
                *inputs, output = text.shaped([buffer.elements for buffer in buffers], sizes)
                output[...] = COMPUTED[text.kernel](*inputs)

            self.queued.append(compute)

        return launch

    def upload(self, array: Array) -> Buffer:
        self.uploads += array.size > 0
        return self._buffer(array.copy())

    def allocate(self, array: Array) -> Buffer:
        return self._buffer(np.full_like(array, -1))

    def wait(self) -> None:
        while self.queued:
            self.queued.pop(0)()

    def download(self, buffer: Buffer, array: Array) -> None:
        self.downloads += array.size > 0
        array[...] = buffer.elements

    def release(self, buffer: Buffer) -> None:
        buffer.elements = buffer.owner = None

    def adopt(self, array: Any) -> Adopted | None:
        if not isinstance(array, FarArray):
            return None
        if array.device != 0:
            raise TypeError(f"it lies on device {array.device}, and this is device 0; copy it there first")
        elements = array.elements
        if not elements.size:
            return Adopted(None, elements.shape, elements.dtype, 0)
        if not elements.flags.c_contiguous:
            raise foreign_arrays.out_of_order()
        buffer = self._buffer(elements.reshape(-1), array)
        return Adopted(buffer, elements.shape, elements.dtype, elements.ctypes.data, array.writable)

    def new(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        return FarArray(np.full(shape, -1, dtype)) if self.keeps_results else None

    def _buffer(self, elements: Array, owner: Any = None) -> FarMemory:
        self.buffers.append(FarMemory(elements, owner))
        return self.buffers[-1]

    def counted(self) -> tuple[int, int]:
        """Uploads and downloads of the call before; all that it took has been given back, and nothing is queued."""
        assert all(buffer.elements is None for buffer in self.buffers)
        assert not self.queued
        counts = self.uploads, self.downloads
        self.uploads = self.downloads = 0
        self.buffers.clear()
        return counts


class OneInput(Problem):
    """c = -x"""

    name, signature, inputs, rule, rate = "negated", "(n)->(n)", ("x",), "bitwise", "gbytes_per_second"
    in_place, default_sizes = True, (5,)

    def reference(self, inputs: Sequence[Array]) -> Reference:
        return Reference(-inputs[0])

    def flops(self, sizes: Sequence[int]) -> int:
        return sizes[0]


class ThreeInputs(OneInput):
    """c = u v + w, where w has one element more: a shape that is computed from the size."""

    name, inputs = "fused", ("u", "v", "w")

    def shapes(self, sizes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        (n,) = sizes
        return (n,), (n,), (n + 1,), (n,)

    def sizes(self, *inputs: Array) -> tuple[int, ...]:
        u, v, w = inputs
        if not u.shape == v.shape == (w.size - 1,):
            raise ValueError(f"fused takes u and v of n elements and w of n + 1, not {u.size}, {v.size} and {w.size}")
        return (u.size,)


COMPUTED: dict[str, Callable[..., Array]] = {
    "vecadd": lambda a, b: a + b,
    "matmul": lambda a, b: a @ b,
    "negated": lambda x: -x,
    "fused": lambda u, v, w: u * v + w[:-1],
}
PROBLEMS: dict[str, Problem] = {each.name: each for each in (OneInput(), ThreeInputs())}


class Near(contract.HostDevice):
    """The host, for the kernels of these tests."""

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        def launch(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            *inputs, output = text.shaped(buffers, sizes)
            output[...] = COMPUTED[text.kernel](*inputs)

        return launch


class TestBackend(contract.Backend):
    __test__ = False
    dtypes: ClassVar[tuple[str, ...]] = contract.Backend.dtypes

    def __init__(self, device: contract.Device) -> None:
        self.device = device

    def targets(self) -> list[Target]:
        return [Target("only")]

    def open(self, target: str, threads: int) -> contract.Device:
        return self.device


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
    forget(calls._targets, lambda name: name in made)
    forget(calls._dtypes, lambda key: key[1] in made)
    forget(calls._devices, lambda key: key[0] in made)
    forget(calls._launches, lambda key: key[0] in devices)
    forget(calls._ready, lambda key: key[0][1] in made)


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
        (FarArray(np.ones(4, np.float16)), TypeError, "b must be float32 or float64 .* not float16: far takes no"),
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
        with pytest.raises(TypeError, match="must be float32 or float64 or float16 in native byte order, not int8"):
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
        assert "x: an array of n elements." in (negated.__doc__ or "")
        assert "u: an array.\nv: an array.\nw: an array." in (fused.__doc__ or ""), "whose shapes are computed"
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
    assert "a: an array of m x k elements.\nb: an array of k x n elements." in (pb.matmul.__doc__ or "")
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'backend'"):
        pb.vecadd(x, y)  # type: ignore[call-overload]


# GPUs, whose libraries are stand-ins here: there may be no GPU at hand


class CupyArray:
    """As much of `cupy.ndarray` as is looked at. Its memory is the host's."""

    def __init__(self, elements: Array, gpu: int = 0) -> None:
        self.elements, self.device = elements, SimpleNamespace(id=gpu)
        self.data = SimpleNamespace(ptr=elements.ctypes.data)
        self.shape, self.dtype, self.size, self.flags = elements.shape, elements.dtype, elements.size, elements.flags

    def reshape(self, shape: int) -> CupyArray:
        return CupyArray(self.elements.reshape(shape), self.device.id)


class OnGpu:
    """An array of another library on a GPU, by NVIDIA's protocol alone, as numba-cuda's."""

    def __init__(self, elements: Array, *, read_only: bool = False) -> None:
        self.elements, self.read_only = elements, read_only
        self.shape, self.dtype = elements.shape, elements.dtype

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.elements.shape,
            "typestr": self.elements.dtype.str,
            "strides": None if self.elements.flags.c_contiguous else self.elements.strides,
            "data": (self.elements.ctypes.data if self.elements.size else 0, self.read_only),
            "version": 3,
            "stream": 7,
        }


class FakeCupy:
    """CuPy's ways to take an array over, and what they were asked for."""

    ndarray = CupyArray

    def __init__(self) -> None:
        self.taken: list[str] = []

    def from_dlpack(self, array: Any) -> CupyArray:
        self.taken.append("DLPack")
        return CupyArray(array.array, 0)

    def asarray(self, array: Any) -> CupyArray:
        self.taken.append("__cuda_array_interface__")
        return CupyArray(array.elements)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> CupyArray:
        return CupyArray(np.empty(shape, dtype))


@pytest.fixture
def cupy_gpu() -> Any:
    gpu: Any = object.__new__(cuda_backend.Gpu)
    gpu._cupy = FakeCupy()
    gpu._gpu = Number(0)
    return gpu


class Number(nullcontext[None]):
    """A GPU, which is entered."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.id = number


class TestOfCupy:
    @pytest.mark.parametrize(
        ("make", "way"),
        [
            (CupyArray, []),
            (lambda elements: Tensor(elements, CUDA), ["DLPack"]),
            (lambda elements: Tensor(elements, foreign_arrays.Memory.CUDA_MANAGED), ["DLPack"]),
            (OnGpu, ["__cuda_array_interface__"]),
        ],
        ids=["CuPy's", "DLPack", "managed", "NVIDIA's protocol"],
    )
    def test_arrays_on_the_gpu_are_taken_as_they_are(self, cupy_gpu: Any, make: Any, way: list[str]) -> None:
        elements = drawn(5, 7)
        adopted = cupy_gpu.adopt(make(elements))
        assert cupy_gpu._cupy.taken == way
        assert (adopted.shape, adopted.dtype, adopted.writable) == ((5, 7), FLOAT32, True)
        assert adopted.address == adopted.buffer.array.data.ptr == elements.ctypes.data
        assert adopted.buffer.array.shape == (35,), "launches take flat buffers"
        assert isinstance(adopted.buffer, Memory)
        cupy_gpu.release(adopted.buffer)
        assert adopted.buffer.array is None

    def test_arrays_elsewhere_are_left_to_others(self, cupy_gpu: Any) -> None:
        assert [cupy_gpu.adopt(each) for each in (Tensor(drawn(4)), FarArray(drawn(4)), [1.0], None)] == [None] * 4

    def test_arrays_of_another_gpu_are_refused(self, cupy_gpu: Any) -> None:
        with pytest.raises(TypeError, match="it lies on GPU 1, and this is GPU 0; copy it there first"):
            cupy_gpu.adopt(CupyArray(drawn(4), gpu=1))
        cupy_gpu._cupy.asarray = lambda array: CupyArray(array.elements.copy())  # as CuPy may, from GPU to GPU
        with pytest.raises(TypeError, match="it lies on another GPU"):
            cupy_gpu.adopt(OnGpu(drawn(4)))

    @pytest.mark.parametrize("make", [CupyArray, OnGpu])
    def test_strided_and_empty_ones(self, cupy_gpu: Any, make: Any) -> None:
        with pytest.raises(TypeError, match="not C-contiguous"):
            cupy_gpu.adopt(make(drawn(5, 7).T))
        empty = cupy_gpu.adopt(make(np.zeros((0, 3), FLOAT32)))
        assert (empty.buffer, empty.shape, empty.dtype) == (None, (0, 3), FLOAT32)

    def test_read_only_ones_are_no_outputs(self, cupy_gpu: Any) -> None:
        assert cupy_gpu.adopt(OnGpu(drawn(4), read_only=True)).writable is False

    def test_new_ones(self, cupy_gpu: Any) -> None:
        made = cupy_gpu.new((3, 4), FLOAT32)
        assert (type(made), made.shape, made.dtype) == (CupyArray, (3, 4), FLOAT32)
        assert cupy_gpu.adopt(made).shape == (3, 4)


class NumbaArray(OnGpu):
    """As much of a device array of Numba as is looked at."""

    @property
    def size(self) -> int:
        return self.elements.size

    def is_c_contiguous(self) -> bool:
        return bool(self.elements.flags.c_contiguous)

    def reshape(self, *shape: int) -> NumbaArray:
        return NumbaArray(self.elements.reshape(shape))

    def view(self, dtype: Any) -> NumbaArray:
        return NumbaArray(self.elements.view(dtype))


@pytest.fixture
def numba_gpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    gpu: Any = object.__new__(numba_cuda.Gpu)
    gpu._ordinal, gpu._context, gpu._stream = 0, nullcontext(), object()
    gpu._cuda = SimpleNamespace(
        as_cuda_array=lambda array: NumbaArray(array.elements),
        device_array=lambda shape, dtype: NumbaArray(np.empty(shape, dtype)),
    )
    monkeypatch.setattr(numba_cuda, "_ordinal_of", lambda _: 0)
    return gpu


class TestOfNumba:
    @pytest.mark.parametrize("make", [NumbaArray, OnGpu])
    def test_arrays_on_the_gpu_are_taken_as_they_are(self, numba_gpu: Any, make: Any) -> None:
        elements = drawn(5, 7)
        adopted = numba_gpu.adopt(make(elements))
        assert (adopted.shape, adopted.dtype, adopted.writable) == ((5, 7), FLOAT32, True)
        assert adopted.address == adopted.buffer.elements.ctypes.data == elements.ctypes.data
        assert adopted.buffer.shape == (35,), "kernels are compiled for flat arrays"

    @pytest.mark.parametrize(("dtype", "seen"), [("float16", "int16"), ("bfloat16", "uint16"), ("int8", "int8")])
    def test_formats_that_numba_does_not_know_are_seen_as_bits(self, numba_gpu: Any, dtype: str, seen: str) -> None:
        """By the dtype of the array: the interface has no name for bfloat16."""
        numba_gpu._cuda.as_cuda_array = lambda array: NumbaArray(array.elements.view(array.dtype.str))
        elements = drawn(5, 7).astype(dtype)
        adopted = numba_gpu.adopt(NumbaArray(elements))
        assert (adopted.shape, adopted.dtype, adopted.buffer.dtype) == ((5, 7), elements.dtype, np.dtype(seen))
        assert adopted.buffer.elements.ctypes.data == elements.ctypes.data

    def test_arrays_elsewhere_are_left_to_others(self, numba_gpu: Any) -> None:
        assert [numba_gpu.adopt(each) for each in (Tensor(drawn(4), CUDA), FarArray(drawn(4)), [1.0])] == [None] * 3

    def test_arrays_of_another_gpu_are_refused(self, numba_gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(numba_cuda, "_ordinal_of", lambda _: 1)
        with pytest.raises(TypeError, match="it lies on GPU 1, and this is GPU 0"):
            numba_gpu.adopt(OnGpu(drawn(4)))

    def test_strided_and_empty_ones(self, numba_gpu: Any) -> None:
        with pytest.raises(TypeError, match="not C-contiguous"):
            numba_gpu.adopt(OnGpu(drawn(5, 7).T))
        empty = numba_gpu.adopt(OnGpu(np.zeros((0, 3), FLOAT32)))
        assert (empty.buffer, empty.shape) == (None, (0, 3))

    def test_read_only_ones_are_no_outputs(self, numba_gpu: Any) -> None:
        assert numba_gpu.adopt(OnGpu(drawn(4), read_only=True)).writable is False

    def test_new_ones(self, numba_gpu: Any) -> None:
        made = numba_gpu.new((3, 4), FLOAT32)
        assert (made.shape, made.dtype, numba_gpu.adopt(made).shape) == ((3, 4), FLOAT32, (3, 4))


# SYCL and OpenCL, whose CPUs are devices with arrays of their own


class UsmView:
    """An array of a library that allocates USM, such as dpnp's. Strides and offset are counted in elements."""

    def __init__(self, memory: Any, *shape: int, dtype: str = "float32", **how: Any) -> None:
        self.memory, self.shape, self.dtype = memory, shape, np.dtype(dtype)
        self.how = {"strides": None, "offset": 0} | how

    @property
    def __sycl_usm_array_interface__(self) -> dict[str, Any]:
        address, _ = self.memory.__sycl_usm_array_interface__["data"]
        described = {"data": (address, self.how.get("read_only", False)), "shape": self.shape}
        laid = {name: self.how[name] for name in ("strides", "offset")}
        return self.memory.__sycl_usm_array_interface__ | described | laid | {"typestr": self.dtype.str}

    @property
    def elements(self) -> Array:
        """What lies in it, copied to the host."""
        return np.asarray(self.memory.copy_to_host()).view(self.dtype)


def usm(where: Any, kind: str, elements: Array) -> UsmView:
    """Elements in new USM, of a queue's context and device."""
    from dpctl import memory

    made = getattr(memory, f"MemoryUSM{kind}")(max(1, elements.nbytes), queue=where)
    if elements.size:
        made.copy_from_host(np.ascontiguousarray(elements).reshape(-1).view(np.uint8))
    return UsmView(made, *elements.shape, dtype=str(elements.dtype))


@pytest.mark.sycl
class TestOfSycl:
    @pytest.fixture
    def device(self) -> Any:
        """Intel's CPU, as the functions open it."""
        if "intel-cpu" not in {target.name for target in targets_of("sycl") if target.available}:
            pytest.skip("sycl: Intel's CPU runtime is not here, the device that is known to have USM")
        return calls._device(("vecadd", "sycl", None, "intel-cpu", None, type(None)), "float32")

    @pytest.fixture
    def queue(self, device: Any) -> Any:
        """As a caller makes one."""
        from dpctl import SyclQueue

        return SyclQueue(device._device)

    @pytest.mark.parametrize("kind", ["Device", "Shared", "Host"])
    def test_usm_is_used_where_it_lies(self, queue: Any, kind: str, seen: list[Any]) -> None:
        a, b = drawn(5, 7), drawn(7, 3)
        there, out = usm(queue, kind, a), usm(queue, kind, np.zeros((5, 3), np.float32))
        assert pb.matmul(there, b, backend="sycl", target="intel-cpu", out=out) is out
        assert seen[0].address == there.__sycl_usm_array_interface__["data"][0]
        assert isinstance(seen[1], np.ndarray)
        assert seen[2].address == out.__sycl_usm_array_interface__["data"][0]
        np.testing.assert_array_equal(out.elements.reshape(5, 3), a @ b)

    @pytest.mark.parametrize("kind", ["Device", "Shared", "Host"])
    def test_what_is_changed_in_it_later_is_seen(self, device: Any, queue: Any, kind: str) -> None:
        x, c = usm(queue, kind, np.zeros(100, np.float32)), np.zeros(100, np.float32)
        adopted = device.adopt(x)
        x.memory.copy_from_host(np.full(100, 3, np.float32).view(np.uint8))
        launch = device.prepare(registry.kernel_texts("vecadd", "sycl")["lecture"], FLOAT32)
        launch([adopted.buffer, adopted.buffer, device.allocate(c)], [100])
        device.wait()
        assert set(c) == {6}

    def test_its_array_lives_as_long_as_the_buffer(self, device: Any, queue: Any) -> None:
        x = usm(queue, "Device", drawn(9))
        alive, adopted = weakref.ref(x), device.adopt(x)
        del x
        gc.collect()
        assert alive() is not None
        device.release(adopted.buffer)
        gc.collect()
        assert alive() is None

    def test_results_stay_in_usm(self, device: Any) -> None:
        from dpctl.memory import as_usm_memory

        a, b = drawn(6, 6), drawn(6, 6, seed=4)
        product = pb.matmul(a, b, backend="sycl", target="intel-cpu", to="device")
        assert as_usm_memory(product).sycl_device == device._device
        assert (product.shape, product.dtype) == ((6, 6), FLOAT32)
        assert product.__sycl_usm_array_interface__["data"] == (product.memory._pointer, False)
        np.testing.assert_array_equal(product.get(), a @ b)
        for threads in (None, 1, 2):
            again = pb.matmul(product, b, backend="sycl", target="intel-cpu", threads=threads, to="device")
            np.testing.assert_array_equal(again.get(), a @ b @ b)
        assert "(6, 6) and dtype float32" in repr(again)
        assert pb.vecadd(drawn(0), drawn(0), backend="sycl", to="device").get().shape == (0,)

    def test_devices_that_are_no_cpu_have_memory_of_their_own(self, device: Any) -> None:
        other = type(device)(device._device, device._device.max_compute_units)
        other._in_place = False
        assert other.new((3,), FLOAT32).memory.get_usm_type() == "device"
        assert device.new((3,), FLOAT32).memory.get_usm_type() == "shared"

    def test_one_memory_seen_twice(self, queue: Any) -> None:
        """As USM, and as NumPy sees it: vecadd may write over an input, and may not over a part of it."""
        x = usm(queue, "Shared", drawn(20))
        seen_by_numpy = np.frombuffer(x.memory, np.float32)
        expected = 2 * seen_by_numpy
        pb.vecadd(seen_by_numpy, x, backend="sycl", target="intel-cpu", out=x)
        np.testing.assert_array_equal(seen_by_numpy, expected)
        first, last = UsmView(x.memory, 15), UsmView(x.memory, 15, offset=5)
        with pytest.raises(ValueError, match="overlaps a part of an input"):
            pb.vecadd(first, first, backend="sycl", target="intel-cpu", out=last)
        expected = 2 * seen_by_numpy[:15]
        pb.vecadd(first, first, backend="sycl", target="intel-cpu", out=seen_by_numpy[5:])
        np.testing.assert_array_equal(seen_by_numpy[5:], expected)
        square = UsmView(x.memory, 4, 4)
        with pytest.raises(ValueError, match="overlaps an input of matmul"):
            pb.matmul(square, square, backend="sycl", target="intel-cpu", out=seen_by_numpy[:16].reshape(4, 4))

    def test_work_that_its_library_queued_comes_first(self, queue: Any) -> None:
        n = 2**24
        x, ones = usm(queue, "Shared", np.zeros(n, np.float32)), usm(queue, "Shared", np.ones(n, np.float32))
        copied = queue.memcpy_async(x.memory, ones.memory, ones.memory.nbytes)
        total = pb.vecadd(x, x, backend="sycl", target="intel-cpu")
        copied.wait()
        assert set(np.unique(total)) == {2}

    def test_what_another_context_has_is_refused_unless_the_host_has_it_too(self, device: Any) -> None:
        from dpctl import SyclQueue

        part = SyclQueue(device._device.create_sub_devices(partition=[1])[0])
        x = drawn(9)
        with pytest.raises(TypeError, match="a: it lies in USM of another SYCL context"):
            pb.vecadd(usm(part, "Device", x), x, backend="sycl", target="intel-cpu")
        for kind in ("Shared", "Host"):
            there = usm(part, kind, x)
            np.testing.assert_array_equal(pb.vecadd(there, there, backend="sycl", target="intel-cpu"), 2 * x)

    def test_what_another_device_has_is_refused(self, device: Any) -> None:
        other: Any = SimpleNamespace(get_usm_type=lambda *_: "device", sycl_device=SimpleNamespace(name="GPU 1"))
        with pytest.raises(TypeError, match="it lies on another SYCL device, GPU 1; copy it first"):
            device._check_reach(other)

    @pytest.mark.parametrize(
        ("how", "error", "words"),
        [
            ({"strides": (2,)}, TypeError, "a: its elements do not lie in order"),
            ({"dtype": "int16"}, TypeError, "a must be float32 or float64 .* not int16"),
            ({"dtype": "uint8"}, TypeError, "a must be float32 or float64 .* not uint8"),
        ],
    )
    def test_unfit_ones(self, queue: Any, how: Any, error: type[Exception], words: str) -> None:
        with pytest.raises(error, match=words):
            pb.vecadd(UsmView(usm(queue, "Shared", drawn(20)).memory, 9, **how), drawn(9), backend="sycl")

    def test_read_only_ones_are_no_outputs(self, queue: Any) -> None:
        out = UsmView(usm(queue, "Shared", drawn(9)).memory, 9, read_only=True)
        with pytest.raises(ValueError, match="out is read-only"):
            pb.vecadd(drawn(9), drawn(9), backend="sycl", target="intel-cpu", out=out)

    def test_offsets_and_strides_of_no_importance(self, device: Any, queue: Any) -> None:
        memory = usm(queue, "Device", drawn(20)).memory
        view = UsmView(memory, 1, 9, strides=(77, 1), offset=5)
        assert device.adopt(view).address == memory._pointer + 20

    def test_empty_ones(self, queue: Any) -> None:
        nothing = UsmView(usm(queue, "Device", drawn(0)).memory, 0)
        assert pb.vecadd(nothing, nothing, backend="sycl", target="intel-cpu").shape == (0,)


@pytest.mark.opencl
class TestOfOpenCl:
    @pytest.fixture(params=["intel-cpu", "pocl"])
    def target(self, request: pytest.FixtureRequest) -> str:
        if request.param not in {target.name for target in targets_of("opencl") if target.available}:
            pytest.skip(f"opencl: {request.param} is not here")
        return str(request.param)

    @pytest.fixture
    def device(self, target: str) -> Any:
        return calls._device(("vecadd", "opencl", None, target, None, type(None)), "float32")

    def array(self, device: Any, elements: Array) -> Any:
        """An array of pyopencl in the device's context, made as a caller makes one."""
        from pyopencl.array import to_device

        return to_device(device.new((1,), FLOAT32).queue, elements)

    def test_results_stay_and_are_used_again(self, target: str, seen: list[Any]) -> None:
        from pyopencl.array import Array as ClArray

        a, b = drawn(5, 7), drawn(7, 5)
        product = pb.matmul(a, b, backend="opencl", target=target, to="device")
        assert type(product) is ClArray
        np.testing.assert_array_equal(product.get(), a @ b)
        again = pb.matmul(product, product, backend="opencl", target=target, to="device")
        assert [each.address >> 64 for each in seen] == [
            product.base_data.int_ptr,
            product.base_data.int_ptr,
            again.base_data.int_ptr,
        ]
        np.testing.assert_array_equal(again.get(), a @ b @ a @ b)
        assert pb.vecadd(drawn(0), drawn(0), backend="opencl", target=target, to="device").get().shape == (0,)

    def test_arrays_in_its_context_are_used_where_they_lie(self, target: str, device: Any) -> None:
        a, b = drawn(5, 7), drawn(7, 3)
        there, out = self.array(device, a), self.array(device, np.zeros((5, 3), np.float32))
        assert pb.matmul(there, b, backend="opencl", target=target, out=out) is out
        np.testing.assert_array_equal(out.get(), a @ b)
        np.testing.assert_array_equal(there.get(), a), "which its owner goes on using"
        total = self.array(device, drawn(9))
        pb.vecadd(total, total, backend="opencl", target=target, out=total)
        np.testing.assert_array_equal(total.get(), 2 * drawn(9))
        square = self.array(device, drawn(4, 4))
        with pytest.raises(ValueError, match="overlaps an input of matmul"):
            pb.matmul(square, square, backend="opencl", target=target, out=square)

    def test_a_buffer_is_a_handle_of_its_own(self, device: Any) -> None:
        there = self.array(device, drawn(9))
        adopted = device.adopt(there)
        assert adopted.buffer.int_ptr == there.base_data.int_ptr
        before = there.base_data.reference_count
        device.release(adopted.buffer)
        assert there.base_data.reference_count == before - 1 >= 1

    def test_parts_of_buffers(self, target: str, device: Any) -> None:
        x = drawn(300)
        there, step = self.array(device, x), device._device.mem_base_addr_align // 8 // 4
        first, last = there[:50], there[step : step + 50]
        np.testing.assert_array_equal(
            pb.vecadd(first, last, backend="opencl", target=target), x[:50] + x[step : step + 50]
        )
        with pytest.raises(TypeError, match="b: it begins 4 bytes behind the start of its buffer"):
            pb.vecadd(first, there[1:51], backend="opencl", target=target)
        with pytest.raises(ValueError, match="overlaps a part of an input"):
            pb.vecadd(first, first, backend="opencl", target=target, out=there[step : step + 50])

    def test_work_that_its_library_queued_comes_first(self, target: str, device: Any) -> None:
        import pyopencl as cl

        ones = np.ones(2**24, np.float32)
        there = self.array(device, np.zeros_like(ones))
        queue = cl.CommandQueue(device._context)
        copied = cl.enqueue_copy(queue, there.base_data, ones, is_blocking=False)
        there.add_event(copied)
        queue.flush()
        assert set(np.unique(pb.vecadd(there, there, backend="opencl", target=target))) == {2}

    def test_what_another_context_has_is_refused(self, target: str, device: Any) -> None:
        import pyopencl as cl
        from pyopencl.array import to_device

        context = cl.Context([device._device])
        there = to_device(cl.CommandQueue(context), drawn(9))
        with pytest.raises(TypeError, match=r"a: it lies in another OpenCL context, .* copy it first with \.get\(\)"):
            pb.vecadd(there, drawn(9), backend="opencl", target=target)

    def test_unfit_ones(self, target: str, device: Any) -> None:
        with pytest.raises(TypeError, match="a: its elements do not lie in order"):
            pb.matmul(self.array(device, drawn(7, 5)).T, drawn(7, 3), backend="opencl", target=target)
        with pytest.raises(TypeError, match=r"a must be float32 or float64 .* not int16"):
            pb.vecadd(self.array(device, drawn(9, dtype="int16")), drawn(9), backend="opencl", target=target)
        nothing = self.array(device, drawn(0))
        assert pb.vecadd(nothing, nothing, backend="opencl", target=target).shape == (0,)
