"""Quotients, and products of all elements."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from open_sums import SINGLE, drawn, fields, spread

from py_backends.bounds import linear, products
from py_backends.bounds.array import Bounded, Facts

INF = np.inf

QUOTIENTS = [
    # value, error, magnitude of x; value, error of y; error, magnitude and overflow of the quotient
    (6.0, 0.5, 6.0, 2.0, 0.5, (0.5 + 3 * 0.5) / 1.5, 3.0, False),
    (-6.0, 0.5, 10.0, 2.0, 0.5, (0.5 + 5 * 0.5) / 1.5, 5.0, False),
    (6.0, 0.5, 6.0, -2.0, 0.0, 0.25, 3.0, False),
    (6.0, 0.0, 6.0, 2.0, 2.0, INF, 3.0, True),
    (6.0, 0.0, 6.0, 2.0, 3.0, INF, 3.0, True),
    (6.0, 0.0, 6.0, 0.25, 0.5, INF, 24.0, True),
    (6.0, 0.0, 6.0, 0.0, 0.0, 0.0, 0.0, True),
    (6.0, 1.0, 6.0, 0.0, 0.0, INF, 0.0, True),
    (6.0, 1.0, 6.0, INF, 0.0, 0.0, 0.0, False),
    (0.0, 0.0, 0.0, 2.0, 0.5, 0.0, 0.0, False),
    (6.0, 0.0, 6.0, 1e-39, 0.0, 0.0, 6e39, True),
    (6e-3, 0.0, 6e-3, 1.5 * 2.0**-128, 0.0, 0.0, 4e-3 * 2.0**128, False),
]


@pytest.mark.parametrize(("value", "error", "size", "by", "of_by", "right", "magnitude", "spoilt"), QUOTIENTS)
def test_quotients(
    value: float, error: float, size: float, by: float, of_by: float, right: float, magnitude: float, spoilt: bool
) -> None:
    x = Bounded(SINGLE, value, error, size, roundings=3.0, terms=2.0, losses=5.0)
    with np.errstate(all="ignore"):
        found = x / spread(by, of_by)
        assert found.value == np.divide(value, by)
    assert found.error == pytest.approx(right)
    assert found.magnitude == pytest.approx(magnitude)
    assert found.overflow == spoilt
    assert (found.roundings, found.terms) == (5.0, 2.0)
    nearest = abs(by) - of_by
    if np.isfinite(nearest):
        assert found.losses == pytest.approx(5.0 / (nearest if nearest > 0 else 1.0) + 2.0 + size + error)
    assert found.facts.step == 0.0


def test_a_divisor_that_is_known_to_be_positive_is_never_zero() -> None:
    known = spread([2.0, 2.0], [2.0, 3.0], facts=Facts(0.0, 0.5))
    found = spread([6.0, 6.0], [0.5, 0.0]) / known
    assert found.error.tolist() == [(0.5 + 3 * 2) / 0.5, 3 * 3 / 0.5]
    assert not found.overflow.any()
    assert fields(spread([6.0]) / spread([2.0], [2.0], facts=Facts(0.0, 0.0)))["overflow"].all()
    spoilt = spread([6.0, 1.0]) / spread([2.0, 4.0], overflow=[True, False])
    assert spoilt.error.tolist() == [INF, 0.0]
    assert fields(spoilt)["overflow"].tolist() == [True, False]
    wide = replace(SINGLE, ulps={"divide": 7})
    assert (spread([6.0, 1.0], precision=wide) / spread([2.0, 3.0], precision=wide)).roundings == 14
    assert fields(spread([6.0, np.nan]) / spread(0.0))["overflow"].tolist() == [True, False]


@pytest.mark.parametrize("leasts", [(0.0, 0.0), (0.5, 0.5), (-INF, 0.0), (0.0, -INF), (-INF, -INF)])
def test_a_quotient_of_numbers_that_are_not_negative_is_neither(leasts: Any) -> None:
    x, y = (spread([1.0, 2.0], facts=Facts(1.0, least)) for least in leasts)
    assert (x / y).facts == Facts(0.0, 0.0 if min(leasts) >= 0 else -INF)


def test_elements_divided_by_one_number_stay_open() -> None:
    x = drawn(3)
    assert np.array_equal((x / spread(3.0)).terms, x.terms)
    assert ((x / spread([3.0, 3.0, 3.0])).terms == 1).all()
    assert (x / spread([3.0, 3.0, 3.0])).error == pytest.approx(x.closed().error / 3)
    assert np.array_equal(np.reciprocal(spread([4.0, 0.5])).value, [0.25, 2.0])
    assert fields(np.reciprocal(spread([4.0, 0.5])))["roundings"].tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    ("count", "roundings"), [(0, 0), (1, 0), (2, 1), (3, 2), (4, 3), (5, 4), (7, 6), (8, 7), (9, 8)]
)
def test_a_product_of_all_rounds_once_less_than_it_has_factors(count: int, roundings: int) -> None:
    x = spread(np.arange(1.0, count + 1) * 1.1)
    for found in (np.prod(x), np.multiply.reduce(x), x.prod()):
        assert found.value == pytest.approx(np.prod(x.value), rel=1e-14)
        assert found.closed().error == pytest.approx(roundings * SINGLE.roundoff * found.value, rel=1e-5)


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (2, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_a_product_along_dimensions_is_that_of_numpy(axis: Any, keepdims: bool) -> None:
    x = spread(np.random.default_rng(1).uniform(1, 2, (3, 2, 5)), 1e-9)
    found = np.prod(x, axis=axis, keepdims=keepdims)
    assert np.allclose(found.value, np.prod(x.value, axis=axis, keepdims=keepdims))
    assert found.shape == np.prod(x.value, axis=axis, keepdims=keepdims).shape
    count = x.size / found.size
    assert (found.closed().error > count * 0.5e-9).all()
    assert np.multiply.reduce(x).shape == (2, 5)
    assert np.prod(np.zeros((0, 2)) * spread(1.0), axis=0).value.tolist() == [1.0, 1.0]


def test_helpers() -> None:
    assert linear.rounded_down(2.0) == 1.98
    assert linear.rounded_down(0.0) == 0.0
    assert linear.rounded_down(0.5) == 0.495
    assert linear.rounded_down(-0.5) == -INF
    assert linear.axes_of(None, 3) == (0, 1, 2)
    assert linear.axes_of((-1, 0), 3) == (2, 0)
    assert products._largest_product([spread([9.0]), spread([9.0])]) == 1.0
