"""Infinities, NaN, overflow and subnormal numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from py_backends.bounds import bounded
from py_backends.results.check import check_output

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


def test_partial_sums_may_overflow() -> None:
    reference = bounded(lambda x: x.sum(axis=1), np.float32([[HUGE, HUGE, -HUGE, -HUGE, 1]]))
    assert passes(reference, np.nan)
    assert bounded(np.sum, np.float32([1e38, -1e38, 1])).overflow is None
    assert bounded(lambda x: x.sum() / 4, np.float32([HUGE, HUGE])).overflow.all(), "before it is divided"


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
