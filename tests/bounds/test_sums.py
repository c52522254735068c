"""Which sums stay open, and what is exact."""

from __future__ import annotations

from itertools import permutations
from operator import attrgetter
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from py_backends.bounds import bounded
from py_backends.results.check import check_output

U = 2.0**-24
pytestmark = pytest.mark.filterwarnings("ignore:the bound is")
RANDOM = np.random.default_rng(1).standard_normal((3, 40)).astype(np.float32)


def test_any_order_of_a_sum_lies_within_its_bound() -> None:
    """(x + y) + z and x + (y + z) cancel differently: a running error, which follows one order, refuses the other."""
    x, y, z = (np.float32([each]) for each in (1.0, 2.0**24, -(2.0**24) + 0.5))
    reference = bounded(lambda x, y, z: (y + z) + x, x, y, z)
    for one, other, last in permutations((x, y, z)):
        assert check_output((one + other) + last, reference, "componentwise").reason is None


def test_a_loop_that_accumulates_is_a_sum_too() -> None:
    def by_loop(a: Any, b: Any) -> Any:
        c = np.zeros((5, 8), like=a)
        for p in range(6):
            c += a[:, p, None] * b[None, p]
        return c

    def by_rows(a: Any, b: Any) -> Any:
        c = np.zeros_like(a, shape=(5, 8))
        for row in range(5):
            for p in range(6):
                c[row] += a[row, p] * b[p]
        return c

    generator = np.random.default_rng(1)
    a, b = (generator.standard_normal(shape).astype(np.float32) for shape in ((5, 6), (6, 8)))
    whole = bounded(lambda a, b: a @ b, a, b)
    for function in (by_loop, by_rows):
        reference = bounded(function, a, b)
        assert reference.value == pytest.approx(whole.value, rel=1e-12)
        assert reference.bound == pytest.approx(whole.bound, rel=1e-6)


def test_an_assignment_closes_a_sum() -> None:
    def smoothed(u: Any) -> Any:
        for _ in range(30):
            after = u.copy()
            after[1:-1] = (u[:-2] + u[2:]) / 2
            u = after
        return u

    reference = bounded(smoothed, np.abs(RANDOM[0]))
    assert (reference.bound < 50 * U * reference.value).all()


def test_scattered_additions_are_sums() -> None:
    def rows_of(values: Any, x: Any) -> Any:
        return np.bincount(rows, values * x[columns], 5)

    def at_once(values: Any, x: Any) -> Any:
        y = np.zeros_like(x, shape=5)
        np.add.at(y, rows, values * x[columns])
        return y

    rows, columns = np.array([0, 0, 2, 2, 2, 4]), np.array([3, 1, 0, 3, 2, 1])
    values, x = RANDOM[0, :6], RANDOM[1, :4]
    terms = np.abs(values.astype(float) * x[columns])
    sizes, counts = np.bincount(rows, terms, 5), np.bincount(rows, minlength=5)
    for function in (rows_of, at_once):
        reference = bounded(function, values, x)
        assert reference.bound[[0, 2]] == pytest.approx((counts * U * sizes)[[0, 2]], rel=1e-6)
        assert reference.bound[[1, 3, 4]].tolist() == [0, 0, 0], "nothing, or one product"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_whole_numbers_that_fit_are_exact_and_larger_ones_are_not(dtype: str) -> None:
    digits = np.finfo(dtype).nmant + 1
    small = np.full(2**4, 2.0 ** (digits - 5) - 1, dtype)
    assert bounded(np.sum, small).bound == 0
    assert bounded(np.sum, 2 * small + 3).bound > 0
    assert bounded(lambda x: x.sum() / 8, small).bound == 0
    assert bounded(lambda x: x.sum() / 3, small).bound > 0


def test_partial_sums_of_one_sign_have_to_fit() -> None:
    x = np.float32([2.0**24, 1, -1, -(2.0**24)])
    assert bounded(np.sum, x).bound > 0
    x[[0, 3]] += -1, 1
    assert bounded(np.sum, x).bound == 0
    assert bounded(np.sum, x / 1024).bound == 0, "all are multiples of a step"


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("function", [np.add, np.subtract, np.multiply])
def test_one_operation_has_one_result(function: Any, dtype: str) -> None:
    a, b = np.random.default_rng(2).standard_normal((2, 1000)).astype(dtype)
    if dtype in {"float32", "float64"}:
        a[:2] = b[:2] = 1e-38, 3e38
    sums = dtype if dtype.startswith("float") and dtype != "float16" else "float32"
    reference = bounded(function, a, b, sums=sums, results=[dtype])
    with np.errstate(all="ignore"):
        right = function(a, b)
    assert (reference.bound == 0).all()
    assert check_output(right, reference, "componentwise").reason is None
    right[7] = np.nextafter(right[7], right[8]) if dtype != "bfloat16" else right[7] * right.dtype.type(1.01)
    assert check_output(right, reference, "componentwise").reason


def test_two_operations_have_not() -> None:
    assert (bounded(lambda x, y: x + y + x, *RANDOM[:2]).bound > 0).any()
    assert (bounded(lambda x, y: np.maximum(x * y, 0), *RANDOM[:2]).bound > 0).any()


def test_elements_that_only_move_are_exact() -> None:
    a = RANDOM.reshape(8, 15)
    for function in (np.transpose, np.ravel, lambda x: np.sort(x, axis=0), lambda x: np.concatenate([x[3:], x[:3]])):
        reference = bounded(function, a)
        assert not reference.bound.any()
        assert (reference.value == function(a)).all()


def test_numbers_are_what_the_kernel_has_and_constants_may_be_rounded() -> None:
    (x,) = RANDOM[:1]
    exact = bounded(lambda x, alpha: alpha * x, x, numbers=(float(np.float32(0.1)),))
    rounded = bounded(lambda x: 0.1 * x, x)
    assert not exact.bound.any()
    assert rounded.bound == pytest.approx(2 * U * np.abs(rounded.value), rel=1e-6)


def test_views_share_what_is_assigned_and_others_refuse_it() -> None:
    def through_a_view(x: Any) -> Any:
        y = x.copy()
        y[0] = 1.0
        row = y[3:6]
        row += 1.0
        row[0] = 7.0
        return y

    def of_an_argument(x: Any) -> Any:
        part = x[2:]
        x[0] = 1.0
        return part

    (x,) = RANDOM[:1]
    assert bounded(through_a_view, x).value == pytest.approx(through_a_view(x.astype(float)))
    with pytest.raises(TypeError, match="has views"):
        bounded(of_an_argument, x)
    bounded(lambda x: np.add(x, 0.0).__iadd__(x), x)


@pytest.mark.parametrize("name", ["add.reduce", "multiply.reduce", "maximum.reduce", "minimum.reduce", "sum", "prod"])
@pytest.mark.parametrize("axis", [{}, {"axis": None}, {"axis": (0, 2)}, {"axis": -1}, {"axis": 1, "keepdims": True}])
def test_the_axis_of_a_reduction_is_that_of_numpy(name: str, axis: dict[str, Any]) -> None:
    """Methods of universal functions take the first one by default, and functions all of them."""
    x = RANDOM.reshape(3, 8, 5)
    function = attrgetter(name)(np)
    reference = bounded(lambda x: function(x, **axis), x)
    assert reference.value.shape == np.shape(function(x, **axis))
    assert check_output(np.asarray(function(x, **axis)), reference, "componentwise").reason is None


@pytest.mark.parametrize("name", ["add", "maximum", "minimum", "fmax", "fmin"])
@pytest.mark.parametrize("axis", [{}, {"axis": 2}, {"axis": -2}])
def test_the_axis_of_what_runs_along_one_is_that_of_numpy(name: str, axis: dict[str, Any]) -> None:
    """The largest so far is one of the elements, so it is exact."""
    x = RANDOM.reshape(3, 8, 5)
    accumulate = getattr(np, name).accumulate
    reference = bounded(lambda x: accumulate(x, **axis), x)
    assert check_output(accumulate(x, **axis), reference, "componentwise").reason is None
    assert name == "add" or not reference.bound.any()


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_a_narrower_format_rounds_once(dtype: Any) -> None:
    limits = ml_dtypes.finfo(dtype)
    x = np.concatenate([RANDOM[0].astype(float), [1.0, 1e300, float(limits.smallest_subnormal) / 3, np.inf, np.nan]])
    reference = bounded(lambda x: x.astype(dtype), x, results=[np.float64])
    with np.errstate(all="ignore"):
        right = x.astype(dtype).astype(np.float64)
    assert check_output(right, reference, "componentwise").reason is None
    assert check_output(x, reference, "componentwise").reason is None, "a kernel that does not round"
    assert reference.bound[40] == 0, "a number of the format"
    assert (reference.bound[:40] <= float(limits.eps) * np.abs(x[:40])).all()
    assert (bounded(lambda x: x.astype(np.float64), x).bound == 0).all()


def test_the_arithmetic_is_that_of_the_widest_input_or_result() -> None:
    wide = np.random.default_rng(2).standard_normal(40)
    narrow = wide.astype(np.float32)
    for inputs, results in (((wide, narrow), [np.float64]), ((narrow, narrow), [np.float64]), ((wide, narrow), None)):
        reference = bounded(lambda x, y: x * y + x, *inputs, results=results)
        assert check_output(inputs[0].astype(float) * narrow + inputs[0], reference, "componentwise").reason is None
        assert check_output((narrow * narrow + narrow).astype(float), reference, "componentwise").reason
    product = bounded(np.multiply, wide, wide[::-1], sums=np.float32)  # of numbers that were rounded before
    assert check_output(narrow * narrow[::-1], product, "componentwise").reason is None
    reference = bounded(lambda x, y: x * y + x, wide, narrow, sums=np.float32)
    assert check_output(narrow * narrow + narrow, reference, "componentwise").reason is None
    half, brain = wide.astype(np.float16), wide.astype(ml_dtypes.bfloat16)
    assert (bounded(lambda x, y: x + y, half, brain, results=[np.float32]).bound < 1e-6).all()
