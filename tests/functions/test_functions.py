"""The Python functions: what they refuse, and with which words.

What they compute, accept and leave alone is the affair of the conformance suite (`conformance.calls`), which calls each
backend in a process of its own; here all are in one.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from conftest import has_device, marked_backends, skip_or_fail, targets_of
from numpy.lib.stride_tricks import as_strided

import py_backends as pb
from py_backends import registry
from py_backends.contract import Array
from py_backends.functions import call
from py_backends.results.check import check_output

with_every_backend = pytest.mark.parametrize("backend", marked_backends())


def on_every_backend(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test on every backend that has its device, since the functions do not emulate: all in this process."""
    return pytest.mark.usefixtures("device")(with_every_backend(test))


@pytest.fixture
def device(backend: str, pytestconfig: pytest.Config) -> None:
    """Skip where a backend is there for checking only, since its GPU is not."""
    if not has_device(backend):
        reason = f"{targets_of(backend)[0].reason} (its kernels are tested where they are emulated)"
        skip_or_fail(pytestconfig, backend, reason)


def call_simply(backend: str) -> None:
    for dtype in ("float32", "float64"):
        pb.vecadd(np.ones(2, dtype), np.ones(2, dtype), backend=backend)
        pb.matmul(np.ones((2, 2), dtype), np.ones((2, 2), dtype), backend=backend)


def test_a_device_needs_no_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that is a dataclass has none."""
    monkeypatch.setattr(type(registry.backend("numpy").open("cpu", 1)), "__hash__", None)
    ones = np.ones(2, np.float32)
    np.testing.assert_array_equal(pb.vecadd(ones, ones, backend="numpy", threads=11), [2, 2])


@pytest.mark.numpy
def test_threads_may_be_any_whole_number() -> None:
    """An array of one number has no hash."""
    ones = np.ones(2, np.float32)
    for threads in (2, np.int64(2), np.array(2), True):
        np.testing.assert_array_equal(pb.vecadd(ones, ones, backend="numpy", threads=threads), [2, 2])


def drawn(shape: tuple[int, ...], dtype: str, seed: int = 3) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def read_only(array: Array) -> Array:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def assert_right(kernel: str, result: Array, *inputs: Array) -> None:
    problem = registry.problem(kernel)
    verdict = check_output(np.ascontiguousarray(result), problem.reference(inputs), problem.rule)
    assert verdict.check.passed, verdict.reason


@on_every_backend
def test_several_threads_at_once(backend: str) -> None:
    """The conformance suite has this in a process of the backend's own; here all are in one."""

    def work(seed: int) -> None:
        generator = np.random.default_rng(seed)
        for _ in range(5):
            m, n, k = generator.integers(1, 40, 3)
            a, b = drawn((m, k), "float32", seed), drawn((k, n), "float32", seed + 1)
            assert_right("matmul", pb.matmul(a, b, backend=backend, variant="lecture"), a, b)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


@on_every_backend
def test_every_target_by_name(backend: str) -> None:
    texts = registry.kernel_texts("matmul", backend)
    for target in targets_of(backend):
        if target.available and not target.emulated and not target.environment:
            taken = ((variant, name) for variant, text in texts.items() for name in registry.dtypes(text, target))
            variant, dtype = next(taken)  # tiles of AMX are no matter of the lecture's source
            a, b = drawn((31, 17), dtype), drawn((17, 29), dtype)
            assert_right("matmul", pb.matmul(a, b, backend=backend, variant=variant, target=target.name), a, b)


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
            (SQUARE, np.ones((3, 4), np.float32), "takes a of m x k and b of k x n: a is 4 x 4 and b is 3 x 4"),
            (VECTOR, SQUARE, "a is 4 elements and b is 4 x 4"),
            (SQUARE[None], SQUARE, "a is 1 x 4 x 4 and b is 4 x 4"),
        ],
    )
    def test_wrong_shapes_of_matmul(self, refusing: str, a: Array, b: Array, words: str) -> None:
        with pytest.raises(ValueError, match=words):
            pb.matmul(a, b, backend=refusing)

    def test_wrong_shapes_of_vecadd(self, refusing: str) -> None:
        with pytest.raises(ValueError, match="a is 4 elements and b is 3 elements"):
            pb.vecadd(VECTOR, VECTOR[:3], backend=refusing)
        with pytest.raises(ValueError, match="takes a of n elements and b of n elements: a is 4 x 4"):
            pb.vecadd(SQUARE, SQUARE, backend=refusing)

    @pytest.mark.parametrize(
        "dtype",
        sorted({"int8", "int32", "complex64", ">f4", "longdouble", "object"} - {*registry.problem("vecadd").dtypes}),
    )
    def test_wrong_dtypes(self, refusing: str, dtype: str) -> None:
        with pytest.raises(TypeError, match=r"must be float32, float64, .* or \w+ in native byte order, not"):
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
            (as_strided(np.zeros(1, np.float32), (4, 4), (0, 0)), ValueError, "elements of out share memory"),
            (as_strided(np.zeros(7, np.float32), (4, 4), (4, 4)), ValueError, "elements of out share memory"),
        ],
    )
    def test_unfit_out(self, refusing: str, out: Any, error: type[Exception], words: str) -> None:
        before = SQUARE.copy()
        with pytest.raises(error, match=words):
            pb.matmul(SQUARE, before, backend=refusing, out=out)
        np.testing.assert_array_equal(SQUARE, before)

    @pytest.mark.parametrize("step", [0, 2])
    def test_elements_of_a_vector_that_share_memory(self, refusing: str, step: int) -> None:
        """All of it, or half of their bytes."""
        out = as_strided(np.zeros(VECTOR.size, np.float32), VECTOR.shape, (step,))
        with pytest.raises(ValueError, match="elements of out share memory"):
            pb.vecadd(VECTOR, VECTOR, backend=refusing, out=out)

    def test_steps_that_lead_apart(self, refusing: str) -> None:
        """Elements 0, 3, 6, 9 and 2, 5, 8, 11: the rows lie within one another, and no element over another."""
        memory = np.zeros(12, np.float32)
        out = as_strided(memory, (2, 4), (8, 12))
        pb.matmul(SQUARE[:2], SQUARE, backend=refusing, out=out)
        np.testing.assert_array_equal(np.flatnonzero(memory), [0, 2, 3, 5, 6, 8, 9, 11])

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
            ({"backend": "numpy", "threads": np.array([2, 3])}, "threads must be a whole number"),
            ({"backend": np.array(["numpy", "cpp"])}, "backend: it must be a name, not ndarray; there are "),
            (
                {"backend": "numpy", "variant": np.array(["tuned"] * 2)},
                "variant of numpy: it must be a name, not ndarray",
            ),
            ({"backend": "numpy", "target": np.array(["cpu"] * 2)}, "target of numpy: it must be a name, not ndarray"),
            ({"backend": "numpy", "to": np.array(["host"] * 2)}, "place of a result: it must be a name, not ndarray"),
            (
                {"backend": "numpy", "target": ["cpu"]},
                "target of numpy: it must be a name, not list; there is only 'cpu'",
            ),
        ],
    )
    def test_unknown_names(self, arguments: dict[str, Any], words: str) -> None:
        with pytest.raises(ValueError, match=words):
            pb.vecadd(VECTOR, VECTOR, **arguments)

    def test_what_is_no_name_of_anything(self) -> None:
        for name in ("x.y", "harness.x", "two words", ""):
            assert getattr(pb, name, None) is None

    def test_unknown_kernel(self) -> None:
        with pytest.raises(AttributeError, match="no attribute 'matmull'"):
            pb.matmull  # noqa: B018


@pytest.mark.parametrize("backend", ["opencl", "sycl", "mpi"])
def test_a_call_within_a_call_of_its_thread_is_refused(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would overwrite the arguments and the scratch memory of the first, whose result would be wrong."""
    if not has_device(backend):
        skip_or_fail(backend)
    pb.vecadd(VECTOR, VECTOR, backend=backend)
    device = next(each for (of, *_), each in call._devices.items() if of == backend)
    wait, within = device.wait, list[BaseException]()

    def interrupted() -> None:
        monkeypatch.setattr(device, "wait", wait)
        with pytest.raises(RuntimeError, match="within another one of its thread") as refused:
            pb.vecadd(VECTOR, VECTOR, backend=backend)
        within.append(refused.value)
        wait()

    monkeypatch.setattr(device, "wait", interrupted)
    np.testing.assert_array_equal(pb.vecadd(VECTOR, VECTOR, backend=backend), VECTOR + VECTOR)
    assert len(within) == 1
    np.testing.assert_array_equal(pb.vecadd(VECTOR, VECTOR, backend=backend), VECTOR + VECTOR)
