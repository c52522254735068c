"""Infinities, NaN, overflow and subnormal numbers."""

from __future__ import annotations

from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from py_backends.bounds import bounded
from py_backends.results.check import _check_answer, check_output

pytestmark = pytest.mark.filterwarnings("ignore:the bound is")
HUGE, TINY = np.float32(3e38), np.float32(1e-42)


def passes(reference: Any, *results: float) -> bool:
    return check_output(np.float32(results), reference, "componentwise").reason is None


def test_where_a_product_overflows_beside_infinity_no_number_is_right() -> None:
    """alpha x is -infinity in float32, and infinity - infinity is NaN: the proof of axpy's bound once refused it."""
    x, y = np.float32([-3e38]), np.float32([np.inf])
    reference = bounded(lambda x, y, alpha: alpha * x + y, x, y, numbers=(float(HUGE),))
    assert passes(reference, np.nan)
    assert passes(reference, np.inf)


def test_what_is_infinite_or_no_number_is_so_in_every_order() -> None:
    x = np.float32([[1, 2, np.inf], [np.nan, 1, 2], [np.inf, -np.inf, 1]])
    reference = bounded(lambda x: x.sum(axis=1), x)
    assert passes(reference, np.inf, np.nan, np.nan)
    assert not passes(reference, 3.0, np.nan, np.nan)
    assert not passes(reference, np.inf, 3.0, np.nan)


def test_a_running_maximum_behind_what_is_infinite_or_may_overflow() -> None:
    x = np.float32([[-np.inf, 0.3, 0.7], [1.0, np.nan, 2.0]])
    reference = bounded(lambda x: np.maximum.accumulate(x * 1.1, axis=1), x)
    assert passes(reference, [-np.inf, 0.33, 0.77], [1.1, np.nan, np.nan])
    assert not passes(reference, [-np.inf, 0.33, 0.34], [1.1, np.nan, np.nan])
    assert not passes(reference, [-np.inf, 0.33, 0.77], [1.1, np.nan, 2.2])
    most = np.finfo(np.float32).max
    sums = bounded(lambda x: np.maximum.accumulate((x[:-1] + x[1:]) / 4), np.float32([1, 1, most, 1, 1]))
    assert sums.overflow.tolist() == [False, True, True, True]


def test_partial_sums_may_overflow() -> None:
    reference = bounded(lambda x: x.sum(axis=1), np.float32([[HUGE, HUGE, -HUGE, -HUGE, 1]]))
    assert passes(reference, np.nan)
    assert bounded(np.sum, np.float32([1e38, -1e38, 1])).overflow is None
    assert bounded(lambda x: x.sum() / 4, np.float32([HUGE, HUGE])).overflow.all(), "before it is divided"


def test_what_overflows_on_its_way_may_end_as_a_finite_number() -> None:
    """The sum is 3e38, of which e^x is infinite; -infinity in float32, from left to right, of which e^x is 0."""
    reference = bounded(lambda x: np.expm1(x.sum()), np.float32([-HUGE, -HUGE, HUGE, HUGE, HUGE]))
    for result in (-1.0, np.inf, np.nan):
        assert check_output(np.asarray(result, np.float32), reference, "componentwise").reason is None


def test_a_sum_that_a_narrow_result_cannot_hold_may_be_infinite_there() -> None:
    """It lies so close to where float16 ends that its order decides."""
    x = np.float16([65504, 15.8, 0.2])
    reference = bounded(np.sum, x, sums="float32", results=["float16"])
    for right in (65504, np.inf):
        assert check_output(np.float16(right), reference, "componentwise").reason is None
    assert check_output(np.float16(65_440), reference, "componentwise").reason


def test_a_square_that_overflows_spoils_its_reciprocal() -> None:
    x = np.float32([1e25, 2.0])
    reference = bounded(lambda x: 1 / (x * x), x)
    assert passes(reference, 0.0, 0.25)
    assert not passes(reference, 0.0, 0.2501)


def test_an_infinite_factor_beside_one_of_unknown_sign() -> None:
    inf = np.float32([np.inf])
    x = np.float32([[1.0, 2.0**-30, -1.0]])
    reference = bounded(lambda x, y: x.sum(axis=1) * y, x, inf)
    for result in (np.inf, -np.inf, np.nan):
        assert passes(reference, result)


def test_products_may_lose_a_subnormal_number_and_sums_lose_none() -> None:
    x, y = np.full((2, 4), TINY)
    reference = bounded(lambda x, y: np.float32(0.3) * (x * y) + x, x, y)
    assert (reference.bound > 0).all()
    assert (reference.bound < 4e-45).all()
    assert not bounded(np.sum, x).bound.any()


def test_a_weight_may_vanish() -> None:
    reference = bounded(lambda x: np.exp(x) + 0 * x, np.float32([-100.0]))
    assert passes(reference, 0.0)


def test_matrix_units_take_subnormal_bfloat16_for_zero() -> None:
    a = np.array([[1e-39, 1.0]], np.float32).astype("bfloat16")
    b = np.array([[1.0], [1e-39]], np.float32).astype("bfloat16")
    reference = bounded(lambda a, b: a @ b, a, b, sums="float32")
    assert check_output(np.float32([[0.0]]), reference, "componentwise").reason is None
    assert passes(bounded(np.sum, np.float32([2.0**-130] * 3).astype("bfloat16"), sums="float32"), 0.0)
    large = np.array([[1.0, 1.0]], np.float32).astype("bfloat16")
    assert bounded(lambda a, b: a @ b, large, b, sums="float32").bound < 1e-6


def test_integers_are_exact_modulo_what_their_results_have() -> None:
    a, b = np.full((2, 3, 3), 127, np.int8)
    reference = bounded(lambda a, b: (a @ b) * 2**20, a, b, results=["int32"])
    assert reference.bound is None
    assert reference.value.dtype == np.int32
    assert (reference.value == (3 * 127 * 127 * 2**20 + 2**31) % 2**32 - 2**31).all()
    assert bounded(lambda a: a.T, a, results=["int8"]).value.dtype == np.int8
    with pytest.raises(TypeError, match="real numbers made of whole ones"):
        bounded(lambda a: a / 2, a)


def test_nothing_at_all() -> None:
    empty = np.zeros((0, 3), np.float32)
    assert bounded(lambda x: x.sum(axis=0), empty).bound.tolist() == [0, 0, 0]
    assert bounded(lambda x: x.T @ x, empty).bound.tolist() == np.zeros((3, 3)).tolist()
    assert bounded(lambda x: x + 1, empty).bound.shape == (0, 3)


def test_what_underflows_is_not_exact_however_few_digits_it_has() -> None:
    x = np.full(2, 2.0**-80, np.float32)
    assert (bounded(lambda x: x * x + x * x, x).bound > 0).all()


def test_a_reciprocal_may_lose_digits_or_be_infinite() -> None:
    x, y = np.float32([2.0**100, 3.0]), np.float32([1.52 * 2.0**127, 1.1 * 2.0**-130])
    reference = bounded(lambda x, y: x / y, x, y)
    with np.errstate(over="ignore"):
        result = x * (np.float32(1) / y)
    assert abs(result[0] / (x[0].astype(float) / y[0]) - 1) > 2.0**-23
    assert passes(reference, *result)


def test_the_sign_of_a_sum_of_zeros_depends_on_how_it_begins() -> None:
    reference = bounded(lambda x, y: x / y.sum(), np.float32([-5.0]), np.float32([-0.0]))
    assert passes(reference, np.inf)
    assert passes(reference, -np.inf)


def test_infinity_times_a_number_that_may_be_zero() -> None:
    x = np.float32([1.0, 2.0**-30, -1.0])
    reference = bounded(lambda x, y: x.sum() * y, x, np.float32([np.inf, 1.0]))
    assert passes(reference, np.nan, 0.0)


FORMATS_OF_NUMPY = [np.dtype(each) for each in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)]
BY_POWERS_OF_TWO = {
    "2x + y": lambda x, y: 2 * x + y,
    "x - 2y": lambda x, y: x - 2 * y,
    "2x - x": lambda x, _: 2 * x - x,
    "2x + 2y": lambda x, y: 2 * x + 2 * y,
    "8x / 8": lambda x, _: x * 8 / 8,
    "x / 2 * 2": lambda x, _: x * 0.5 * 2,
    "x / 4 + y": lambda x, y: x * 0.25 + y,
    "4 (x / 4 + y / 4)": lambda x, y: (x / 4 + y / 4) * 4,
    "2xy": lambda x, y: x * y * 2,
    "2 (x + y)": lambda x, y: 2 * (x + y),
}


@pytest.mark.parametrize("dtype", FORMATS_OF_NUMPY, ids=str)
@pytest.mark.parametrize("name", BY_POWERS_OF_TWO)
def test_a_factor_that_rounds_nothing_may_overflow_or_underflow(name: str, dtype: np.dtype[Any]) -> None:
    """At the largest and the smallest numbers, with each operation rounded, and with the last one alone."""
    limits = ml_dtypes.finfo(dtype)
    most, normal, least = (float(each) for each in (limits.max, limits.smallest_normal, limits.smallest_subnormal))
    numbers = [
        0,
        -0.0,
        1,
        1 / 3,
        most,
        -most,
        most / 2,
        0.75 * most,
        normal,
        -1.5 * normal,
        least,
        3 * least,
        -5 * least,
    ]
    x, y = (np.array(each).astype(dtype) for each in zip(*product([*numbers, np.inf, np.nan], repeat=2), strict=True))
    function = BY_POWERS_OF_TWO[name]
    reference = bounded(function, x, y)
    with np.errstate(all="ignore"):
        results = [function(x, y)]
        if dtype != np.float64:
            results.append(function(x.astype(float), y.astype(float)))
        for result in results:
            assert check_output(result.astype(dtype), reference, "componentwise").reason is None
    _check_answer(reference, dtype)


def test_where_the_result_overflows_no_finite_number_is_right() -> None:
    x, y = np.float32([HUGE, HUGE]), np.float32([HUGE, 1.0])
    for function in (lambda x, _: 2 * x, lambda x, y: x + x + x * y, lambda x, y: 2 * x + y):
        reference = bounded(function, x, y)
        assert passes(reference, np.inf, np.inf)
        assert not passes(reference, 1.0, np.inf)
        assert not passes(reference, np.inf, -3e38)


def test_a_product_of_some_factors_may_overflow_or_underflow() -> None:
    x, y = np.float32([HUGE, 2.0, 1e-30, 1e-30]), np.float32([0.0, 3.0, np.inf, 1e30])
    reference = bounded(lambda x, y: np.einsum("i,i,i->i", x, x, y), x, y)
    assert passes(reference, np.nan, 12.0, np.nan, 0.0)
    assert not passes(reference, np.nan, 12.01, np.nan, 0.0)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_powers_of_zero_of_negative_and_of_infinite_numbers(dtype: Any) -> None:
    most, least = np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal
    bases = [0, -0.0, 1, -1, 2, -2, -3, 0.5, 1.1, -1.1, most, -most, least, np.inf, -np.inf, np.nan]
    exponents = [0, -0.0, 1, -1, 2, 3, -2, 0.5, -2.5, 7.3, most, np.inf, -np.inf, np.nan]
    x, y = (np.array(each, dtype) for each in zip(*product(bases, exponents), strict=True))
    reference = bounded(np.power, x, y)
    with np.errstate(all="ignore"):
        assert check_output(np.power(x, y), reference, "componentwise").reason is None
        usual = (x > 0) & np.isfinite(y) & (np.abs(y) < 8) & (x < most) & (x > least)
        assert np.isfinite(reference.bound[usual]).all()
    some = bounded(np.power, dtype([-2, 0, 1, -3]), dtype([2, 0, np.inf, 0.5]))
    for wrong in ([-4, 1, 1, np.nan], [4, 0, 1, np.nan], [4, 1, 1.01, np.nan], [4, 1, 1, 1]):
        assert check_output(dtype(wrong), some, "componentwise").reason


def test_a_power_that_is_a_rounded_constant() -> None:
    """No whole number is near it, so that zero and negative numbers have one power."""
    x = np.float32([0.0, -1.0, 2.0, 1e-3])
    gamma = bounded(lambda x: np.maximum(x, 0) ** (1 / 2.2), x)
    assert passes(gamma, *np.maximum(x, 0) ** np.float32(1 / 2.2))
    assert (gamma.bound < 1e-5).all()
    reference = bounded(lambda x: x**0.1, x)
    assert passes(reference, 0, np.nan, *x[2:] ** np.float32(0.1))
    assert not passes(reference, 0, 1, *x[2:] ** np.float32(0.1))
    sums = bounded(lambda x: ((x + 1e-3) * (x + 1e-3)) ** 0.1, x)
    assert np.isfinite(sums.bound).all()


def test_a_power_of_what_may_be_zero() -> None:
    x, y = np.float32([[1.0, 2.0**-24, -1.0]]), np.float32([[2.0], [3.0], [-1.0], [0.5], [0.0]])
    reference = bounded(lambda x, y: x.sum(axis=1, keepdims=True) ** y, x, y)
    assert passes(reference, *[[0.0], [2.0**-72], [np.inf], [np.nan], [1.0]])
    assert not passes(reference, *[[0.1], [0.0], [1.0], [1.0], [1.0]])
    assert not passes(reference, *[[0.0], [0.0], [1.0], [1.0], [0.0]])


def test_an_infinite_power_of_what_may_be_one() -> None:
    """The sum is 1, or beside it, and so its power is 1, 0 or infinite."""
    reference = bounded(lambda x, y: x.sum(axis=1) ** y, np.float32([[0.1] * 10]), np.float32([np.inf]))
    for right in (0.0, 1.0, np.inf):
        assert passes(reference, right)


def test_a_root_of_a_sum_of_unknown_sign_may_be_no_number() -> None:
    x, y = np.float32([0.1]), np.nextafter(np.float32([-1.1]), np.float32(0))
    reference = bounded(lambda x, y: np.sqrt(x + y + 1), x, y)
    assert reference.value > 0
    assert passes(reference, np.nan)
