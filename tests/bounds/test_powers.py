"""Powers: whole ones are products, others exponentials of logarithms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from open_sums import SINGLE, drawn, fields, spread

from py_backends.bounds.array import FIELDS, Bounded, Facts

INF, U = np.inf, 2.0**-24


@pytest.mark.parametrize(("count", "roundings"), [(2, 1), (3, 8), (4, 8), (9, 8), (10, 9), (20, 19)])
def test_whole_powers_round_as_products_do_or_as_a_library(count: int, roundings: int) -> None:
    x = spread([1.5, -1.25], facts=Facts(0.25, -INF))
    for found in (x**count, np.power(x, count), np.float_power(x, float(count))):
        assert np.allclose(found.value, x.value**count, rtol=1e-14)
        assert (fields(found)["roundings"] == roundings).all()
        assert (fields(found)["terms"] == 1).all()
        assert found.facts == Facts(0.25**count, 0.0 if count % 2 == 0 else -INF)
    accurate = replace(SINGLE, ulps={"power": 0.5})
    assert (spread([1.5], precision=accurate) ** count).roundings == count - 1
    wide = replace(SINGLE, ulps={"power": 50})
    assert (spread([1.5], precision=wide) ** count).roundings == (100 if count > 2 else 1)


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_errors_of_whole_powers_are_those_of_products(count: int) -> None:
    x = spread([1.5, -2.0, 0.25], [0.5, 0.25, 1.0])
    right = (np.abs(x.value) + x.error) ** count - np.abs(x.value) ** count
    assert (x**count).error == pytest.approx(right)


def test_the_first_powers_and_negative_ones() -> None:
    x = drawn(3, least=0.5)
    none = x**0
    assert none.value.tolist() == [1, 1, 1]
    assert not none.closed().error.any()
    one = x**1
    assert all(np.array_equal(fields(one)[name], field) for name, field in fields(x).items())
    assert one.facts.step == x.facts.step
    y = spread([1.5, -2.0], [0.25, 0.5])
    for count in (1, 2, 3):
        found, right = fields(y**-count), fields(1.0 / (y**count))
        assert all(np.array_equal(found[name], right[name]) for name in found)
    root = spread([4.0, 2.0], [0.5, 0.0])
    assert np.array_equal((root**0.5).error, np.sqrt(root).error)
    assert np.array_equal((root**-0.5).error, (1.0 / np.sqrt(root)).error)
    assert ((root**0.5).roundings == 6).all()
    assert (root**0.5).value.tolist() == [2.0, np.sqrt(2)]


def test_the_root_of_minus_infinity_is_no_number_or_its_power() -> None:
    with np.errstate(all="ignore"):
        for exponent in (0.5, -0.5):
            found = spread([-INF, 4.0]) ** exponent
            assert np.array_equal(found.value, np.array([-INF, 4.0]) ** exponent, equal_nan=True)
            assert fields(found)["overflow"].tolist() == [True, False]
            assert np.isinf(found.error).tolist() == [True, False]
            one = spread(-INF) ** exponent
            assert all(isinstance(getattr(one, name), np.ndarray) for name in FIELDS)


def test_roots_of_unsure_answers_are_roots_of_numbers() -> None:
    found = (spread([0.0, 2.0], [1.0, 1.0]) > 0) ** 0.5
    assert found.value.tolist() == [0, 1]
    assert found.error.tolist() == [1, 0]


def test_real_powers_round_as_the_exponential_of_a_logarithm() -> None:
    x = spread([2.0, 3.0, 1.5])
    found = x**1.5
    assert np.array_equal(found.value, x.value**1.5)
    assert (fields(found)["roundings"] == 8).all()
    assert not found.overflow.any()
    size = 1.5 * np.log(x.value)
    assert found.error == pytest.approx((6 + 1) * U * size * found.value, rel=1e-3)
    wide = replace(SINGLE, ulps={"power": 50})
    assert (spread([2.0], precision=wide) ** 1.5).roundings == 100
    low = replace(SINGLE, ulps={"power": 0.5})
    assert (spread([2.0], precision=low) ** 1.5).roundings == 4, "that of the exponential"
    assert (found.losses == np.exp(spread([1.0])).losses).all()


@pytest.mark.parametrize("least", [-INF, 0.0, 0.5])
def test_powers_of_numbers_that_are_not_negative_are_neither(least: float) -> None:
    x = spread([2.0, 3.0], [0.5, 0.5], facts=Facts(0.5, least))
    assert (x**1.5).facts == Facts(0.0, 0.0 if least >= 0 else -INF)
    assert np.power(x, np.array([1.5, 2.0])).facts.least == (0.0 if least >= 0 else -INF)


def test_powers_of_what_may_be_zero() -> None:
    """Four times the largest one, if the exponent is positive, and whole or the base never negative."""
    cases = [
        # value and error of the base, the exponent and its error, whether the base is known not to be negative
        ((0.5, 1.0), (2.0, 0.0), False, 4 * 1.5**2),
        ((-0.5, 1.0), (3.0, 0.0), False, 4 * 1.5**3),
        ((0.0, 0.25), (2.0, 0.0), False, 4 * 0.25**2),
        ((0.5, 1.0), (2.5, 0.0), False, INF),
        ((0.5, 1.0), (2.5, 0.0), True, 4 * 1.5**2.5),
        ((0.5, 1.0), (-2.0, 0.0), False, INF),
        ((0.5, 1.0), (-2.0, 0.0), True, INF),
        ((0.5, 1.0), (2.5, 0.25), True, 4 * 1.5**2.75),
        ((0.25, 0.5), (2.5, 0.25), True, 4 * 0.75**2.25),
        ((0.5, 0.5), (2.5, 0.0), True, 4.0),
        ((0.5, 1.0), (0.0, 0.0), False, 0.0),
    ]
    for (value, error), (exponent, of_exponent), known, right in cases:
        x = spread([value], [error], facts=Facts(0.0, 0.0 if known else -INF))
        found = np.power(x, spread([exponent], [of_exponent]))
        assert found.error == pytest.approx(right), (value, exponent)
        assert fields(found)["overflow"].tolist() == [bool(np.isinf(right))], (value, exponent)


def test_an_exponent_of_either_sign_leaves_no_bound_beside_zero() -> None:
    """Though the base is known to be positive, its error reaches zero."""
    x = spread([2.0], [2.5], facts=Facts(0.0, 0.5))
    for exponent, right in ((0.25, np.inf), (-0.25, np.inf), (0.75, 4 * 4.5**1.25)):
        assert np.power(x, spread([exponent], [0.5])).error == pytest.approx(right)


@pytest.mark.parametrize(
    ("base", "exponent", "least", "refused"),
    [
        ((-2.0, 0.0), (2.5, 0.25), -INF, False),
        ((-2.0, 0.0), (2.5, 0.5), -INF, True),
        ((-2.0, 0.0), (2.75, 0.5), -INF, True),
        ((2.0, 0.5), (2.75, 0.5), -INF, False),
        ((2.0, 2.5), (2.75, 0.5), 0.0, False),
        ((2.0, 2.5), (2.75, 0.5), -INF, True),
        ((2.0, 2.5), (0.25, 0.5), 0.0, True),
        ((2.0, 2.5), (0.25, 0.25), 0.0, True),
        ((2.0, 2.5), (0.25, 0.125), 0.0, False),
        ((2.0, 2.5), (0.25, 0.5), 0.5, False),
        ((0.0, 0.0), (0.25, 0.5), -INF, True),
        ((0.0, 0.0), (0.25, 0.125), -INF, False),
        ((2.0, 2.0), (0.25, 0.5), -INF, True),
        ((2.0, 2.0), (0.25, 0.125), -INF, False),
        ((-2.0, 0.0), (2.5, 0.0), -INF, False),
        ((-0.0, 0.0), (-2.5, 0.5), 0.0, True),
        ((-0.0, 0.0), (-2.5, 0.25), 0.0, False),
        ((-0.0, 0.0), (2.5, 0.5), 0.0, False),
        ((0.0, 0.0), (-2.5, 0.5), 0.0, False),
        ((-0.0, 0.0), (-3.0, 0.0), 0.0, False),
    ],
)
def test_a_power_is_refused_where_rounding_decides_whether_it_is_one(
    base: Any, exponent: Any, least: float, refused: bool
) -> None:
    x, y = spread([base[0]], [base[1]], facts=Facts(0.0, least)), spread([exponent[0]], [exponent[1]])
    with np.errstate(all="ignore"):
        if refused:
            with pytest.raises(
                TypeError,
                match=r"np.power of numbers that may be negative or 0 to a power that was rounded has no bound",
            ):
                np.power(x, y)
            return
        assert np.array_equal(np.power(x, y).value, np.power(x.value, y.value), equal_nan=True)


def test_an_exponent_that_may_overflow_is_refused_beside_zero_or_negative_numbers() -> None:
    y = spread([2.5], overflow=[True])
    for base in (0.0, -2.0):
        with pytest.raises(TypeError, match=r"np.power of numbers"):
            np.power(spread([base]), y)
    found = np.power(spread([2.0]), y)
    assert found.error == INF
    assert found.overflow.all()


def test_bases_about_one_and_factors_that_overflow() -> None:
    with np.errstate(all="ignore"):
        for base, error, exponent, spoilt in (
            (1.0, 0.25, INF, True),
            (-1.25, 0.25, INF, True),
            (1.5, 0.25, INF, False),
            (1.0, 0.0, INF, False),
            (1.0, 0.25, 5.0, False),
            (INF, 0.0, 2.0, False),
        ):
            found = np.power(spread([base], [error]), spread([exponent]))
            assert fields(found)["overflow"].tolist() == [spoilt], (base, exponent)
            assert np.isinf(found.error).tolist() == [spoilt]
        for of_exponent, spoilt in ((0.25, False), (0.5, True)):
            found = np.power(spread([INF]), spread([0.5], [of_exponent]))
            assert fields(found)["overflow"].tolist() == [spoilt]
        of_overflow = spread([2.0, 2.0], overflow=[True, False])
        assert fields(np.power(of_overflow, np.array([1.5, 1.5])))["overflow"].tolist() == [True, False]
        assert fields(np.power(of_overflow, np.array([0.0, 0.0])))["overflow"].tolist() == [False, False]
        of_any_size = np.power(spread([1.0, 1.0]), spread([2.5, 2.5], [1e300, 0.5]))
        assert fields(of_any_size)["overflow"].tolist() == [True, False]
        huge = np.power(spread([1e300, 2.0], [1.0, 0.5]), np.array([3.0, 3.0]))
        assert fields(huge)["overflow"].tolist() == [True, False]


def test_answers_that_rounding_decides_have_roots() -> None:
    undecided = spread([0.1, 2.0], [0.5, 0.0]) > 0
    assert (undecided**0.5).error.tolist() == [1, 0]
    assert (undecided**0.5).value.tolist() == [1, 1]


def test_exact_powers_of_special_numbers_are_given() -> None:
    with np.errstate(all="ignore"):
        bases, exponents = (
            np.array([0.0, 0.0, INF, INF, -2.0, 1.0, 0.0]),
            np.array([2.5, -2.0, 2.0, -1.5, INF, INF, 0.0]),
        )
        found = np.power(spread(bases), spread(exponents))
        assert np.array_equal(found.value, np.power(bases, exponents))
        assert not found.error[np.isfinite(found.value)].any()
        assert not found.overflow.any()
    with_error = Bounded(SINGLE, [3.0, 2.0], [0.5, 0.5])
    assert (np.power(with_error, np.array([0.0, 0.0])).error == 0).all()
