"""Functions of one number and of two: how often each rounds, where it is defined, and what none of its results is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from open_sums import SINGLE, fields, spread

from py_backends.bounds.array import Facts
from py_backends.bounds.precision import Precision

INF = np.inf
ULPS = {
    np.exp: 2,
    np.exp2: 2,
    np.expm1: 3,
    np.log: 3,
    np.log2: 3,
    np.log10: 3,
    np.log1p: 2,
    np.sqrt: 3,
    np.tanh: 3,
    np.sin: 4,
    np.cos: 4,
    np.sinh: 4,
    np.cosh: 4,
    np.arctan: 5,
    np.arcsinh: 4,
}
"""Of a library, by which programs of others are judged: to change one is to change what is right."""
NEVER_NEGATIVE = {np.exp, np.exp2, np.sqrt, np.cosh}
VANISH = {np.exp, np.exp2}


@pytest.mark.parametrize("function", ULPS, ids=lambda each: each.__name__)
def test_the_ulps_of_a_library_count_twice(function: Any) -> None:
    """An ulp is up to two roundoffs."""
    x = spread([0.5, 2.0])
    found = function(x)
    assert fields(found)["roundings"].tolist() == [2.0 * ULPS[function]] * 2
    assert np.array_equal(found.value, function(x.value))
    assert np.array_equal(found.magnitude, np.abs(found.value))
    assert found.terms == 1
    assert not found.error.any()
    assert not found.overflow.any()
    least = SINGLE.normal / SINGLE.least if function in VANISH else 1.0
    assert fields(found)["losses"].tolist() == [least] * 2
    assert found.facts == Facts(0.0, 0.0 if function in NEVER_NEGATIVE else -INF)
    wide = spread([0.5], precision=replace(SINGLE, ulps={function.__name__: 70}))
    assert function(wide).roundings == 140


def test_where_matrix_units_flush_an_exponential_loses_as_little_as_they_do() -> None:
    flushing = Precision.of(np.dtype("bfloat16"), np.dtype(np.float32))
    assert flushing.normal == flushing.least
    assert np.exp(spread([1.0], precision=flushing)).losses == 1.0
    tiny = replace(SINGLE, normal=2.0**-10, least=2.0**-8)
    assert np.exp(spread([1.0], precision=tiny)).losses == 1.0


@pytest.mark.parametrize(
    ("function", "roundings", "error", "least"), [(np.hypot, 8, 0.75, 0.0), (np.logaddexp, 8, 0.5, -INF)]
)
def test_functions_of_two(function: Any, roundings: int, error: float, least: float) -> None:
    x, y = spread([3.0, 1.0], [0.5, 0.5]), spread([4.0, -2.0], [0.25, 0.25])
    found = function(x, y)
    assert np.array_equal(found.value, function(x.value, y.value))
    assert fields(found)["roundings"].tolist() == [roundings] * 2
    assert fields(found)["losses"].tolist() == [1.0] * 2
    assert fields(found)["error"].tolist() == [error] * 2
    assert found.facts == Facts(0.0, least)
    sizes = [5.0, np.hypot(1, 2)] if function is np.hypot else [5.25, 3.25]
    assert found.magnitude.tolist() == pytest.approx(sizes)
    wide = replace(SINGLE, ulps={function.__name__: 20})
    assert function(spread([3.0], precision=wide), spread([4.0], precision=wide)).roundings == 40
    for spoilt in (
        function(spread([3.0], overflow=[True]), spread([4.0])),
        function(4.0, spread([3.0], overflow=[True])),
    ):
        assert spoilt.overflow.all()
        assert np.isinf(spoilt.error).all()


@pytest.mark.parametrize("function", [np.log, np.log2, np.log10, np.sqrt, np.log1p], ids=lambda each: each.__name__)
def test_where_an_argument_may_be_outside_a_function_may_give_no_number(function: Any) -> None:
    """Unless it is known not to be below the least one."""
    lowest = -1.0 if function is np.log1p else 0.0
    at, error = lowest + np.array([0.5, 1.0, 2.0, 0.0, -1.0]), [1.0, 0.5, 2.0, 0.0, 0.25]
    with np.errstate(all="ignore"):
        found = function(spread(at, error))
        may_be_zero = fields(found)["overflow"][2]
        assert fields(found)["overflow"].tolist() == [True, False, may_be_zero, False, True]
        assert np.isinf(found.error).tolist()[:2] == [True, False]
        known = function(spread(at[:4], error[:4], facts=Facts(0.0, lowest)))
        assert fields(known)["overflow"].tolist()[:2] == [False, False]
        if function is np.sqrt:
            assert known.error == pytest.approx([1.0, np.sqrt(1.0) - np.sqrt(0.5), np.sqrt(2.0), 0.0])


def test_exponentials_that_may_be_infinite() -> None:
    with np.errstate(all="ignore"):
        found = np.exp(spread([800.0, 800.0, 1.0], [1.0, 0.0, 1.0]))
    assert fields(found)["overflow"].tolist() == [True, False, False]


@pytest.mark.parametrize("function", ULPS, ids=lambda each: each.__name__)
def test_an_error_moves_a_result_as_far_as_the_steepest_slope_beside_it(function: Any) -> None:
    """No further than the steepest slope within twice the error: so a bound that is too wide is seen too."""
    at = np.array([0.5, 1.0, 3.0]) if function not in {np.log, np.log2, np.log10} else np.array([1.0, 2.0, 3.0])
    for e in (1e-6, 0.25):
        found = function(spread(at, np.full(3, e)))
        ends = np.abs(np.stack([function(at - e), function(at + e)]) - function(at)).max(0)
        wide = np.abs(function(at + 2 * e) - function(at - 2 * e))
        assert (found.error >= ends * (1 - 1e-9)).all()
        limit = np.full(3, e) if function in {np.sin, np.cos} else wide
        assert (found.error <= limit + 1e-15).all()
    assert function(spread([0.75], [0.0])).error == 0


def test_far_away_slopes_are_small_and_sines_stay_between_one_and_minus_one() -> None:
    far = np.tanh(spread([400.0, -400.0], [1.0, 50.0]))
    assert (far.error < 1e-200).all()
    assert np.tanh(spread([0.25, -3.0], [0.5, 4.0])).error.tolist() == [0.5, 4.0], "zero is within, where it is 1"
    for function in (np.sin, np.cos):
        assert function(spread([1.0, 1.0], [1.5, 100.0])).error.tolist() == [1.5, 2.0]
    assert np.arctan(spread([2.0], [1.0])).error == 0.5
    assert np.arctan(spread([-0.5], [1.0])).error == 1.0
    assert np.arcsinh(spread([-0.5], [1.0])).error == 1.0
    assert np.arcsinh(spread([2.0], [1.0])).error == pytest.approx(np.sqrt(0.5))
