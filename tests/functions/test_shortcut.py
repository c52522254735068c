"""The shortcut of the functions: what it takes is computed, and whatever it declines ends as it did without it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import py_backends as pb
from py_backends import registry
from py_backends.backend import _cpu_kernels
from py_backends.contract import Array, Problem
from py_backends.functions import call

pytestmark = pytest.mark.cpp

BYTES = 8192
"""As much as the longest array takes of which every second element is used: that of a length which never changes."""
LONGEST = 4


class Own(np.ndarray):
    """A class of arrays of somebody's own."""


@contextmanager
def without_shortcuts() -> Iterator[None]:
    """Within, every call takes the way through Python."""
    kept = dict(call.shortcuts)
    call.shortcuts.clear()
    try:
        yield
    finally:
        call.shortcuts.update(kept)


@pytest.fixture(autouse=True)
def _later_calls() -> None:
    """Each call of a test is one of those that find everything prepared."""
    for dtype in ("float32", "float64", "bfloat16"):
        pb.vecadd(np.ones(2, dtype), np.ones(2, dtype), backend="cpp")
        pb.matmul(np.ones((2, 2), dtype), np.ones((2, 2), dtype), backend="cpp")


def shortcut(kernel: str) -> Any:
    return next(each for asked, each in call.shortcuts.items() if asked[:2] == (kernel, "cpp"))


def vector(n: int, dtype: str = "float32") -> Array:
    return np.arange(n, dtype=dtype)


def swapped(n: int) -> Array:
    """bfloat16 in the other byte order, which has the same number among NumPy's types."""
    native = vector(n, "bfloat16")
    return native.view(np.uint16).byteswap().view(native.dtype.newbyteorder())


@dataclass(frozen=True)
class View:
    """An array within a piece of memory: where it begins, how long it is in each dimension, and how it is laid out."""

    offset: int
    shape: tuple[int, ...]
    steps: tuple[int, ...]
    dtype: str
    kind: str

    def of(self, memory: Array) -> Any:
        count = [length * abs(step) for length, step in zip(self.shape, self.steps, strict=True)]
        size = int(np.prod(count, dtype=int)) * np.dtype(self.dtype).itemsize
        whole = memory[self.offset : self.offset + size].view(self.dtype)
        whole = whole.reshape(count, order="F" if self.kind == "columns first" else "C")
        view = whole[(*(slice(None, None, step) for step in self.steps), ...)]
        if self.kind == "read-only":
            view.flags.writeable = False
        return {"own": lambda: view.view(Own), "masked": lambda: np.ma.masked_array(view), "list": view.tolist}.get(
            self.kind, lambda: view
        )()


@st.composite
def views(draw: st.DrawFn, shape: tuple[int, ...], dtype: str) -> View:
    """Most often what the shortcut takes; else of another layout, shape, class or dtype."""
    dtype = draw(st.sampled_from([dtype] * 12 + ["float32", "float64", ">f4", "int32"]))
    if draw(st.integers(0, 9)) == 0:
        shape = tuple(draw(st.lists(st.integers(0, LONGEST), max_size=3)))
    steps = tuple(draw(st.sampled_from([1] * 12 + [2, -1])) for _ in shape)
    kind = draw(st.sampled_from(["plain"] * 14 + ["columns first", "read-only", "own", "masked", "list"]))
    offset = draw(st.sampled_from([0, 4, 8, 16, 32, 64, 128, 256, 512])) + draw(st.sampled_from([0] * 9 + [1]))
    return View(offset, shape, steps, dtype, kind)


@st.composite
def drawn_calls(draw: st.DrawFn) -> tuple[str, list[View | None]]:
    """A kernel, and its arrays in one piece of memory: they overlap often. The output may be None."""
    kernel = draw(st.sampled_from(registry.kernel_names()))
    problem = registry.problem(kernel)
    sizes = [draw(st.integers(int(name in problem.nonzero_sizes), LONGEST)) for name in problem.dimensions]
    dtypes = problem.array_dtypes(np.dtype(draw(st.sampled_from(["float32", "float64"]))))
    arrays: list[View | None] = [
        draw(views(shape, dtype.name)) for shape, dtype in zip(problem.shapes(sizes), dtypes, strict=True)
    ]
    if draw(st.integers(0, 3)) == 0:
        arrays[-1] = None
    return kernel, arrays


def outcome(kernel: str, arrays: Sequence[View | None]) -> tuple[Any, ...]:
    """What a call returns or raises, and what it leaves in memory."""
    memory = np.random.default_rng(5).standard_normal(BYTES // 4).astype(np.float32).view(np.uint8)
    *inputs, out = (view if view is None else view.of(memory) for view in arrays)
    try:
        result = getattr(pb, kernel)(*inputs, backend="cpp", out=out)
    except (TypeError, ValueError) as error:
        return type(error), str(error), memory.tobytes()
    told = type(result), result.dtype, result.shape, result.strides, result.tobytes()
    return result is out, told, memory.tobytes()


@pytest.mark.slow
@settings(max_examples=2000)
@given(call=drawn_calls())
def test_every_call_ends_as_it_does_without_it(call: tuple[str, list[View | None]]) -> None:
    with without_shortcuts():
        expected = outcome(*call)
    assert outcome(*call) == expected


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_it_takes_simple_arrays(dtype: str) -> None:
    """Else nothing above would be tested."""
    a, b, out = vector(5, dtype), vector(5, dtype) * 2, np.empty(5, dtype)
    assert shortcut("vecadd")(a, b, out) is out
    np.testing.assert_array_equal(out, a + b)
    assert shortcut("vecadd")(a, b, a) is a
    np.testing.assert_array_equal(a, out)
    made = shortcut("matmul")(a[None], b[:, None], None)
    assert (type(made), made.dtype, made.tolist(), made.flags.owndata) == (np.ndarray, dtype, [[a @ b]], True)


MEMORY = np.zeros(16, np.float32)
SQUARE = MEMORY.reshape(4, 4)
DECLINED: dict[str, tuple[str, Any, Any, Any]] = {
    "no array": ("vecadd", [1.0], vector(1), None),
    "no element, of which some kernels need one": ("vecadd", vector(0), vector(0), None),
    "no second array": ("vecadd", vector(1), [1.0], None),
    "no array to write to": ("vecadd", vector(1), vector(1), [1.0]),
    "a subclass": ("vecadd", vector(4).view(Own), vector(4), None),
    "a subclass as output": ("vecadd", vector(4), vector(4), vector(4).view(Own)),
    "another dtype": ("vecadd", vector(4, "int32"), vector(4, "int32"), None),
    "another byte order": ("vecadd", vector(4, ">f4"), vector(4, ">f4"), None),
    "another byte order of a dtype that NumPy lacks": ("vecadd", swapped(4), swapped(4), None),
    "an output of another byte order": ("vecadd", vector(4, "bfloat16"), vector(4, "bfloat16"), swapped(4)),
    "mixed dtypes": ("vecadd", vector(4), vector(4, "float64"), None),
    "an output of another dtype": ("vecadd", vector(4), vector(4), vector(4, "float64")),
    "another length": ("vecadd", vector(4), vector(3), None),
    "another dimension": ("vecadd", SQUARE, SQUARE, None),
    "an output of another length": ("vecadd", vector(4), vector(4), vector(5)),
    "an output of another shape": ("matmul", vector(2)[None], vector(2)[:, None], vector(1)),
    "another depth": ("matmul", np.ones((2, 3), np.float32), np.ones((2, 3), np.float32), None),
    "a stride": ("vecadd", vector(8)[::2], vector(4), None),
    "an output with a stride": ("vecadd", vector(4), vector(4), vector(8)[::2]),
    "columns first": ("matmul", np.asfortranarray(SQUARE), SQUARE, None),
    "misaligned": ("vecadd", np.zeros(17, np.uint8)[1:].view(np.float32), vector(4), None),
    "misaligned output": ("vecadd", vector(4), vector(4), np.zeros(17, np.uint8)[1:].view(np.float32)),
    "an output that is an input of matmul": ("matmul", SQUARE, np.eye(4, dtype=np.float32), SQUARE),
    "an output that is the second input": ("matmul", np.eye(4, dtype=np.float32), SQUARE, SQUARE),
    "an output that overlaps the first input": ("vecadd", MEMORY[1:5], vector(4), MEMORY[2:6]),
    "an output that overlaps the second input": ("vecadd", vector(4), MEMORY[2:6], MEMORY[1:5]),
    "an output that ends with an input's first element": ("vecadd", MEMORY[3:6], vector(3), MEMORY[1:4]),
    "an output that begins with an input's last element": ("vecadd", MEMORY[1:4], vector(3), MEMORY[3:6]),
    "an output within an input": ("matmul", SQUARE, np.ones((4, 1), np.float32), MEMORY[6:10, None]),
    "a result that no memory holds": ("matmul", np.ones((2**22, 0), np.float32), np.ones((0, 2**22), np.float32), None),
    "a result of too many elements": ("matmul", np.ones((2**40, 0), np.float32), np.ones((0, 2**40), np.float32), None),
}  # fmt: skip


@pytest.mark.parametrize("name", DECLINED)
def test_it_declines(name: str) -> None:
    kernel, a, b, out = DECLINED[name]
    before = [np.array(array, copy=True).tobytes() for array in (a, b, out) if array is not None]
    assert shortcut(kernel)(a, b, out) is None
    assert [np.array(array, copy=True).tobytes() for array in (a, b, out) if array is not None] == before


def test_it_declines_outputs_that_are_read_only() -> None:
    out = vector(4)
    out.flags.writeable = False
    assert shortcut("vecadd")(vector(4), vector(4), out) is None
    assert shortcut("vecadd")(out, out, None).tolist() == [0, 2, 4, 6], "an input may be"


@pytest.mark.parametrize("arrays", [0, 1, 2, 4])
def test_it_declines_other_numbers_of_arrays(arrays: int) -> None:
    assert shortcut("vecadd")(*[vector(4)] * arrays) is None


def test_neighbours_in_memory_do_not_overlap() -> None:
    memory = np.ones(12, np.float32)
    for a, b, out in ((0, 4, 8), (8, 4, 0), (0, 8, 4)):
        parts = [memory[at : at + 4] for at in (a, b, out)]
        assert shortcut("vecadd")(*parts) is parts[2]


def test_a_result_that_no_memory_holds_is_a_memory_error() -> None:
    with pytest.raises(MemoryError):
        pb.matmul(np.ones((2**22, 0), np.float32), np.ones((0, 2**22), np.float32), backend="cpp")


@pytest.mark.parametrize("threads", [2.0, "2", [2], 2.5])
def test_numbers_of_threads_are_refused_though_a_like_one_is_known(threads: Any) -> None:
    x = vector(4)
    for _ in range(2):
        pb.vecadd(x, x, backend="cpp", threads=2)
        with pytest.raises(ValueError, match="threads must be a whole number"):
            pb.vecadd(x, x, backend="cpp", threads=threads)


@pytest.mark.parametrize("what", ["backend", "variant", "target"])
def test_lists_are_no_names(what: str) -> None:
    names: dict[str, Any] = {"backend": "cpp"} | {what: ["cpp"]}
    with pytest.raises(ValueError, match=f"unknown {what}"):
        pb.vecadd(vector(4), vector(4), **names)


class Made(Problem):
    """A problem with any shapes."""

    dimensions: ClassVar[tuple[str, ...]] = ("m", "n")

    def __init__(self, *shapes: Any) -> None:
        self._shapes = shapes

    def shapes(self, sizes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        return tuple(shape(*sizes) for shape in self._shapes)

    def sizes(self, *inputs: Array) -> tuple[int, ...]:
        raise AssertionError("no test here needs it")

    reference = flops = sizes  # type: ignore[assignment]


class TestShapesInGeneral:
    def test_of_the_kernels(self) -> None:
        assert registry.problem("vecadd").size_of_each_dimension() == ((0,), (0,), (0,))
        assert registry.problem("matmul").size_of_each_dimension() == ((0, 2), (2, 1), (0, 1))

    def test_there_are_none_where_a_problem_says_its_shapes_itself(self) -> None:
        plain = lambda m, n: (m, n)  # noqa: E731  # short, and named by what it is
        assert Made(plain, plain, plain).size_of_each_dimension() is None


def test_lengths_may_be_fixed_and_sizes_may_be_numbers() -> None:
    """matmul, as if it took flat arrays of these lengths, and its sizes behind them."""
    kernels = _cpu_kernels._kernels("cpp").items()
    kernel, _ = next(each for key, each in kernels if key[:2] == ("matmul", "lecture") and key[3] == "float32")
    multiply = kernel.shortcut([[-6], [-6], [-4]], in_place=False, threads=1, dtypes=["float32"])
    a, b = np.arange(6, dtype=np.float32), np.arange(6, 12, dtype=np.float32)
    assert multiply(a, b, None, 2, 2, 3).tolist() == (a.reshape(2, 3) @ b.reshape(3, 2)).reshape(-1).tolist()
    for unfit in ((a[:5], b, None, 2, 2, 3), (a, b, None, 2, 2), (a, b, None, 2, 2, -3), (a, b, None, 2, 2, 2.5)):
        assert multiply(*unfit) is None, "what is not plainly fit is left to Python"


@pytest.mark.parametrize(
    ("shapes", "threads"),
    [
        ([[0], [0]], 1),
        ([[0], [0], [1]], 1),
        ([[], [], [0]], 1),
        ([[0] * 17, [0], [0]], 1),
        ([[0], [0], [0]], 0),
    ],
)
def test_what_does_not_fit_the_kernel_is_refused(shapes: list[list[int]], threads: int) -> None:
    kernel, _ = next(each for key, each in _cpu_kernels._kernels("cpp").items() if key[0] == "vecadd")
    with pytest.raises(ValueError, match=r"shape|size|dimensions|thread"):
        kernel.shortcut(shapes, in_place=True, threads=threads, dtypes=["float32"])
