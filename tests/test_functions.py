"""The Python functions: what they accept, refuse and leave alone, on every backend."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import at_hand, has_device, marked_backends, skip_or_fail, targets_of
from numpy.lib.stride_tricks import as_strided

import py_backends as pb
from py_backends import _discovery, _functions
from py_backends._contract import Array
from py_backends.harness import machine
from py_backends.harness.check import judge

with_every_backend = pytest.mark.parametrize("backend", marked_backends())
at_first_and_later = pytest.mark.parametrize("prepared", [False, True], ids=["first call", "later call"])
in_both_dtypes = pytest.mark.parametrize("dtype", ["float32", "float64"])


def on_every_backend(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test on every backend that has its device, since the functions do not emulate; twice, see `calls`."""
    return pytest.mark.usefixtures("device", "calls")(with_every_backend(at_first_and_later(test)))


@pytest.fixture
def device(backend: str, pytestconfig: pytest.Config) -> None:
    """Skip where a backend is there for checking only, since its GPU is not."""
    if not has_device(backend):
        reason = f"{targets_of(backend)[0].reason} (its kernels are tested where they are emulated)"
        skip_or_fail(pytestconfig, backend, reason)


@pytest.fixture
def calls(backend: str, prepared: bool) -> None:
    """Begin a test as in a fresh process, or with everything prepared: a later call may take a shortcut."""
    forget_calls()
    if prepared:
        call_simply(backend)


def forget_calls() -> None:
    _functions._ready.clear()
    _functions._shortcuts.clear()


def call_simply(backend: str) -> None:
    for dtype in ("float32", "float64"):
        pb.vecadd(np.ones(2, dtype), np.ones(2, dtype), backend=backend)
        pb.matmul(np.ones((2, 2), dtype), np.ones((2, 2), dtype), backend=backend)


def drawn(shape: tuple[int, ...], dtype: str, seed: int = 3) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def assert_right(kernel: str, result: Array, *inputs: Array) -> None:
    problem = _discovery.problem(kernel)
    verdict = judge(np.ascontiguousarray(result), problem.reference(inputs), problem.rule)
    assert verdict.check.passed, verdict.reason


def misaligned(array: Array) -> Array:
    memory = np.zeros(array.nbytes + 1, np.uint8)[1:]
    view = memory.view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


def read_only(array: Array) -> Array:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "contiguous": lambda array: array.copy(),
    "fortran order": np.asfortranarray,
    "reversed": lambda array: array[::-1].copy()[::-1],
    "every second": lambda array: np.repeat(array, 2, axis=-1)[..., ::2],
    "misaligned": misaligned,
    "read-only": read_only,
}


@on_every_backend
@in_both_dtypes
@pytest.mark.parametrize("layout", LAYOUTS)
def test_inputs_may_lie_in_memory_in_any_way(backend: str, dtype: str, layout: str) -> None:
    lay = LAYOUTS[layout]
    x, y = lay(drawn((37,), dtype)), lay(drawn((37,), dtype, 4))
    a, b = lay(drawn((13, 7), dtype)), lay(drawn((7, 11), dtype, 4))
    before = [array.tobytes() for array in (x, y, a, b)]
    assert_right("vecadd", pb.vecadd(x, y, backend=backend), x, y)
    assert_right("matmul", pb.matmul(a, b, backend=backend), a, b)
    assert [array.tobytes() for array in (x, y, a, b)] == before, "inputs are never changed"


@on_every_backend
@in_both_dtypes
def test_out_is_written_and_returned(backend: str, dtype: str) -> None:
    a, b = drawn((5, 6), dtype), drawn((6, 7), dtype)
    for out in (
        np.full((5, 7), np.nan, dtype),
        np.full((7, 5), np.nan, dtype).T,
        np.full((5, 14), np.nan, dtype)[:, ::2],
    ):
        assert pb.matmul(a, b, backend=backend, out=out) is out
        assert_right("matmul", out, a, b)


@on_every_backend
@in_both_dtypes
def test_vecadd_works_in_place_and_into_a_part_of_its_inputs(backend: str, dtype: str) -> None:
    memory = drawn((50,), dtype)
    expected = memory[:40] + memory[10:]
    assert pb.vecadd(memory[:40], memory[10:], backend=backend, out=memory[5:45]) is not None
    np.testing.assert_array_equal(memory[5:45], expected)
    a, b = drawn((33,), dtype), drawn((33,), dtype, 4)
    expected = a + b
    pb.vecadd(a, b, backend=backend, out=a)
    np.testing.assert_array_equal(a, expected)


@on_every_backend
@in_both_dtypes
def test_empty_shapes(backend: str, dtype: str) -> None:
    assert pb.vecadd(drawn((0,), dtype), drawn((0,), dtype), backend=backend).shape == (0,)
    assert pb.matmul(drawn((0, 3), dtype), drawn((3, 4), dtype), backend=backend).shape == (0, 4)
    np.testing.assert_array_equal(
        pb.matmul(drawn((2, 0), dtype), drawn((0, 3), dtype), backend=backend), np.zeros((2, 3), dtype)
    )


@on_every_backend
@in_both_dtypes
def test_special_values_of_vecadd(backend: str, dtype: str) -> None:
    """Signed zeros, subnormals, overflow, infinities and NaN, as IEEE 754 has them."""
    limits = np.finfo(dtype)
    special = np.array(
        [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, limits.max, limits.tiny, limits.smallest_subnormal], dtype
    )
    a, b = (np.ascontiguousarray(grid.ravel()) for grid in np.meshgrid(special, special))
    assert_right("vecadd", pb.vecadd(a, b, backend=backend), a, b)


def beyond_the_caches() -> list[Any]:
    """Every (backend, target) whose tuned vecadd may treat vectors apart that no cache holds."""
    return [
        pytest.param(backend, target.name, marks=getattr(pytest.mark, backend), id=f"{backend}-{target.name}")
        for backend, target in at_hand()
        if target.available and not target.emulated and "tuned" in _discovery.kernel_texts("vecadd", backend)
    ]


@pytest.mark.parametrize(("backend", "target"), beyond_the_caches())
def test_vectors_that_no_cache_holds(backend: str, target: str) -> None:
    sizes = Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
    last_level = max([2**25, *(1024 * int(size.read_text().strip().removesuffix("K")) for size in sizes)])
    n = last_level // 12 + 4099
    if 6 * last_level > machine.free_memory():
        pytest.skip(f"three vectors beyond a cache of {last_level} bytes need more memory than is free")
    a = np.tile(drawn((2**16,), "float32"), n // 2**16 + 1)[:n]
    b, memory = a[::-1].copy(), np.full(n + 2, np.nan, np.float32)
    pb.vecadd(a, b, backend=backend, target=target, out=memory[1:-1])  # not aligned to any register
    assert np.array_equal(memory[1:-1], a + b)
    assert np.isnan(memory[[0, -1]]).all()


@on_every_backend
def test_several_threads_at_once(backend: str) -> None:
    def work(seed: int) -> None:
        generator = np.random.default_rng(seed)
        for _ in range(5):
            m, n, k = generator.integers(1, 40, 3)
            a, b = drawn((m, k), "float32", seed), drawn((k, n), "float32", seed + 1)
            assert_right("matmul", pb.matmul(a, b, backend=backend), a, b)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


@on_every_backend
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_numbers_of_threads(backend: str, threads: int) -> None:
    a, b = drawn((31, 17), "float32"), drawn((17, 29), "float32")
    assert_right("matmul", pb.matmul(a, b, backend=backend, threads=threads), a, b)


@on_every_backend
def test_every_target_by_name(backend: str) -> None:
    a, b = drawn((31, 17), "float64"), drawn((17, 29), "float64")
    for target in targets_of(backend):
        if target.available and not target.emulated:
            assert_right("matmul", pb.matmul(a, b, backend=backend, target=target.name), a, b)


@with_every_backend
def test_emulated_targets_are_not_for_callers(backend: str) -> None:
    a = drawn((4,), "float32")
    for target in targets_of(backend):
        if target.emulated:
            with pytest.raises(pb.BackendUnavailable, match="not available"):
                pb.vecadd(a, a, backend=backend, target=target.name)
    if not has_device(backend):
        with pytest.raises(pb.BackendUnavailable, match="not available"):
            pb.vecadd(a, a, backend=backend)


SQUARE = np.ones((4, 4), np.float32)
VECTOR = np.ones(4, np.float32)


class TestRefusals:
    """Bad input: one clear line, and nothing touched. It matters only what looks at the arrays first."""

    @pytest.fixture(
        params=[
            pytest.param("numpy", marks=pytest.mark.numpy, id="by Python"),
            pytest.param("cpp", marks=pytest.mark.cpp, id="by the shortcut"),
        ]
    )
    def refusing(self, request: pytest.FixtureRequest) -> str:
        name = str(request.param)
        call_simply(name)
        return name

    @pytest.mark.parametrize(
        ("a", "b", "words"),
        [
            (SQUARE, np.ones((3, 4), np.float32), "a is 4 x 4, b is 3 x 4"),
            (VECTOR, SQUARE, "a has 1 dimensions"),
            (SQUARE[None], SQUARE, "a has 3 dimensions"),
        ],
    )
    def test_wrong_shapes_of_matmul(self, refusing: str, a: Array, b: Array, words: str) -> None:
        with pytest.raises(ValueError, match=words):
            pb.matmul(a, b, backend=refusing)

    def test_wrong_shapes_of_vecadd(self, refusing: str) -> None:
        with pytest.raises(ValueError, match="a has 4 elements, b has 3"):
            pb.vecadd(VECTOR, VECTOR[:3], backend=refusing)
        with pytest.raises(ValueError, match="takes vectors"):
            pb.vecadd(SQUARE, SQUARE, backend=refusing)

    @pytest.mark.parametrize("dtype", ["float16", "int32", "complex64", ">f4", "longdouble", "object"])
    def test_wrong_dtypes(self, refusing: str, dtype: str) -> None:
        with pytest.raises(TypeError, match="float32 or float64"):
            pb.vecadd(VECTOR.astype(dtype), VECTOR.astype(dtype), backend=refusing)

    @pytest.mark.parametrize("array", [[1.0, 2.0], 3.0, None, np.ma.masked_array([1.0], [True])])
    def test_what_is_no_array(self, refusing: str, array: Any) -> None:
        with pytest.raises(TypeError, match="must be a NumPy array"):
            pb.vecadd(array, array, backend=refusing)

    def test_mixed_dtypes(self, refusing: str) -> None:
        with pytest.raises(TypeError, match="a is float32, b is float64"):
            pb.vecadd(VECTOR, VECTOR.astype(np.float64), backend=refusing)

    @pytest.mark.parametrize(
        ("out", "error", "words"),
        [
            (np.ones((4, 4)), TypeError, "dtype float32"),
            ([], TypeError, "out must be a NumPy array"),
            (np.ones((4, 3), np.float32), ValueError, "shape"),
            (np.ones(16, np.float32), ValueError, "shape"),
            (read_only(SQUARE), ValueError, "read-only"),
            (as_strided(SQUARE, (4, 4), SQUARE.strides), ValueError, "overlaps an input"),
        ],
    )
    def test_unfit_out(self, refusing: str, out: Any, error: type[Exception], words: str) -> None:
        before = SQUARE.copy()
        with pytest.raises(error, match=words):
            pb.matmul(SQUARE, before, backend=refusing, out=out)
        np.testing.assert_array_equal(SQUARE, before)

    def test_out_between_the_columns_of_an_input_does_not_overlap(self, refusing: str) -> None:
        memory = np.ones((4, 8), np.float32)
        out = pb.matmul(memory[:, ::2], SQUARE, backend=refusing, out=memory[:, 1::2])
        np.testing.assert_array_equal(out, np.full((4, 4), 4, np.float32))

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ({"backend": "nunpy"}, "did you mean 'numpy'"),
            ({"backend": "numpy", "variant": "tunde"}, "unknown variant of numpy 'tunde'"),
            ({"backend": "numpy", "variant": "tuned"}, "variant"),
            ({"backend": "numpy", "target": "gpu"}, "unknown target of numpy 'gpu'"),
            ({"backend": "numpy", "threads": 0}, "threads must be from 1"),
            ({"backend": "openmp", "threads": 10**6}, "threads must be from 1"),
            ({"backend": "openmp", "threads": 1.5}, "threads must be a whole number"),
        ],
    )
    def test_unknown_names(self, arguments: dict[str, Any], words: str) -> None:
        with pytest.raises(ValueError, match=words):
            pb.vecadd(VECTOR, VECTOR, **arguments)

    def test_unknown_kernel(self) -> None:
        with pytest.raises(AttributeError, match="no attribute 'matmull'"):
            pb.matmull  # noqa: B018
