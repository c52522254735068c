"""Order: what is sorted moves no further than its elements, and places are given where no rounding decides them."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from open_sums import SINGLE, spread

from py_backends.bounds import bounded
from py_backends.bounds.array import Bounded, Facts


@pytest.mark.parametrize("axis", [{}, {"axis": 0}, {"axis": -1}, {"axis": 1}, {"axis": None}])
def test_a_sorted_array_moves_no_further_than_its_elements(axis: dict[str, Any]) -> None:
    generator = np.random.default_rng(1)
    value, error = generator.integers(-9, 9, (3, 4)).astype(float), generator.integers(0, 3, (3, 4)).astype(float)
    found = np.sort(spread(value, error, facts=Facts(0.5, 0.25)), **axis)
    right = np.sort(value, **axis)
    ends = [np.sort(value + sign * error, **axis) for sign in (-1, 1)]
    assert np.array_equal(found.value, right)
    assert found.error == pytest.approx(np.abs(np.stack(ends) - right).max(0), abs=1e-12)
    assert found.facts == Facts(0.5, 0.0 if axis == {"axis": None} else 0.25)
    for count in (1, 2, 3, 4, 5):
        row = spread(value.reshape(-1)[:count], error.reshape(-1)[:count])
        assert np.median(row).value == np.median(row.value)
    middle = np.median(spread(value, error), **({} if axis.get("axis") is None else axis))
    assert np.array_equal(middle.value, np.median(value, **({} if axis.get("axis") is None else axis)))


def decided(function: Any, values: Any, errors: Any, axis: Any) -> bool:
    """Whether no numbers within the errors, ends included, stand in another order, nor as equals of one another."""
    right = function(values, axis=axis)
    grid = [np.linspace(-1, 1, 3)] * values.size
    for signs in product(*grid):
        moved_values = values + errors * np.array(signs).reshape(values.shape)
        if not np.array_equal(function(moved_values, axis=axis), right):
            return False
    return True


@pytest.mark.parametrize("name", ["argmax", "argmin", "argsort"])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_a_place_is_given_where_no_rounding_decides_it(name: str, axis: Any) -> None:
    """Given: it is right for all numbers within. Refused: some of these are equals, or stand elsewhere."""
    generator, function, given, refused = np.random.default_rng(2), getattr(np, name), 0, 0
    shape = (4,) if axis is None else (2, 2)
    axis = -1 if name == "argsort" and axis is None else axis
    for _ in range(60):
        values = generator.choice(7, shape, replace=False).astype(float)
        errors = generator.choice([0.0, 0.25, 0.75, 1.5], shape)
        sure = decided(function, values, errors, axis) and decided(function, values, errors * (1 + 1e-9), axis)
        x = spread(values, errors)
        if sure:
            given += 1
            assert np.array_equal(function(x, axis=axis), function(values, axis=axis))
        else:
            refused += 1
            with pytest.raises(TypeError, match=f"rounding decides np.{name}: it has no bound here"):
                function(x, axis=axis)
    assert min(given, refused) >= 4


@pytest.mark.parametrize("name", ["argmax", "argmin", "argsort"])
def test_places_of_exact_numbers_are_those_of_numpy(name: str) -> None:
    values = np.array([[1.0, 3.0, 3.0], [0.0, -2.0, 0.5]])
    function = getattr(np, name)
    for options in ({}, {"axis": 0}, {"axis": 1}):
        assert np.array_equal(function(spread(values), **options), function(values, **options))
        assert np.array_equal(getattr(spread(values), name)(**options), function(values, **options))
    with pytest.raises(TypeError, match="rounding decides"):
        function(spread([1.0, 2.0], overflow=[True, False]))
    if name != "argsort":
        assert np.array_equal(function(spread(values), axis=1, keepdims=True), function(values, axis=1, keepdims=True))
    else:
        assert np.array_equal(np.argsort(spread(values), kind="stable"), np.argsort(values, kind="stable"))


def test_places_beside_errors_elsewhere() -> None:
    """The best one alone has to stand apart from all others, whatever these are among themselves."""
    x = spread([1.0, 1.25, 9.0, 2.0], [1.0, 1.0, 0.5, 6.0])
    assert np.argmax(x) == 2
    for error in (0.5, 6.5, 7.0):
        with pytest.raises(TypeError, match=r"np.argmin"):
            np.argmin(spread([1.0, 1.25, 9.0, 2.0], [0.0, error, 0.0, 0.0]))
    with pytest.raises(TypeError, match=r"np.argmax"):
        np.argmax(spread([1.0, 8.0, 9.0, 2.0], [0.0, 0.0, 0.5, 6.75]))


def test_places_in_a_sorted_array_are_those_of_exact_numbers() -> None:
    a, v = spread([1.0, 2.0, 2.0, 5.0]), spread([2.0, 0.0, 6.0])
    assert np.searchsorted(a, v).tolist() == a.searchsorted(v).tolist() == [1, 0, 4]
    assert np.searchsorted(a, v, side="right").tolist() == [3, 0, 4]
    assert np.searchsorted([1.0, 2.0], v).tolist() == [1, 0, 2]
    for wrong in (
        (spread([1.0], [0.1]), v),
        (a, spread([2.0], [0.1])),
        (spread([1.0], overflow=[True]), v),
        (a, spread([2.0], overflow=[True])),
    ):
        with pytest.raises(TypeError, match=r"rounding decides np.searchsorted"):
            np.searchsorted(*wrong)


def test_nothing_of_a_sort_may_overflow() -> None:
    with pytest.raises(TypeError, match=r"np.sort of numbers that may overflow has no bound"):
        np.sort(Bounded(SINGLE, [1.0, 2.0], overflow=[False, True]))


def test_plain_answers_beside_unsure_ones() -> None:
    found = bounded(lambda x: np.where(np.array([True, False]) & (x > 0), x, 0.0), np.float32([1, 2]))
    assert found.value.tolist() == [1, 0]
