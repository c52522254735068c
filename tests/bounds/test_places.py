"""Functions that are made of other rules: moments, means with weights, norms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from open_sums import SINGLE, drawn, fields, spread

from py_backends.bounds.array import Facts

U = SINGLE.roundoff
GRID = spread(np.array([[1.0, -2.0, 3.5], [0.5, 4.0, 2.0]]), 2.0**-12)
MOMENTS: dict[str, Any] = {
    "var": np.var,
    "var of rows": lambda x: np.var(x, axis=1),
    "var that keeps": lambda x: np.var(x, axis=0, keepdims=True),
    "var of a sample": lambda x: np.var(x, axis=-1, ddof=1),
    "var of a sample of all": lambda x: np.var(x, ddof=2),
    "the method var": lambda x: x.var(axis=0),
    "std": np.std,
    "std of rows": lambda x: np.std(x, axis=1, keepdims=True),
    "std of a sample": lambda x: x.std(axis=1, ddof=1),
    "average": np.average,
    "average of rows": lambda x: np.average(x, axis=1),
    "average with weights": lambda x: np.average(x, axis=0, weights=np.array([[1.0, 2, 3], [3, 2, 1]])),
    "average with weights of all": lambda x: np.average(x, weights=np.array([[1.0, 2, 3], [3, 2, 1]])),
    "mean of squares": lambda x: np.mean(x * x, axis=1),
    "norm": np.linalg.norm,
    "norm of rows": lambda x: np.linalg.norm(x, axis=1),
    "norm that keeps": lambda x: np.linalg.norm(x, axis=0, keepdims=True),
    "norm of Frobenius": lambda x: np.linalg.norm(x, "fro"),
    "norm of a vector": lambda x: np.linalg.norm(x[0]),
    "norm of order 2 of a vector": lambda x: np.linalg.norm(x[0], 2),
    "norm of order 2 of rows": lambda x: np.linalg.norm(x, 2, axis=1),
    "norm of order 1 of a vector": lambda x: np.linalg.norm(x[0], 1),
    "norm of order 1 of rows": lambda x: np.linalg.norm(x, 1, axis=1, keepdims=True),
    "norm of the largest of a vector": lambda x: np.linalg.norm(x[1], np.inf),
    "norm of the largest of rows": lambda x: np.linalg.norm(x, np.inf, axis=0),
    "median": np.median,
    "median of rows": lambda x: np.median(x, axis=1),
    "median of two": lambda x: np.median(x, axis=0),
    "prod of rows": lambda x: np.prod(x, axis=1),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_functions_made_of_others_are_those_of_numpy(name: str) -> None:
    """Their bound covers what the errors do, and is no more than some times that."""
    function, generator = MOMENTS[name], np.random.default_rng(1)
    found, right = function(GRID), function(GRID.value)
    assert np.shape(right) == found.shape
    assert np.allclose(found.value, right, rtol=1e-14)
    moved = [
        np.abs(function(GRID.value + GRID.error * generator.choice([-1.0, 1.0], GRID.shape)) - right) for _ in range(60)
    ]
    closed = found.closed()
    assert (np.max(moved, axis=0) <= closed.error).all()
    assert (closed.error <= 5 * np.max(moved, axis=0) + 64 * U * (np.abs(right) + 1)).all()
    assert not closed.overflow.any()


@pytest.mark.parametrize("name", [each for each in MOMENTS if "average" not in each and "median" not in each])
def test_squares_and_sizes_are_not_negative(name: str) -> None:
    result = MOMENTS[name](GRID)
    assert (result.facts.least >= 0) == ("prod" not in name)
    known = spread(np.abs(GRID.value), facts=Facts(0.25, 0.25))
    assert MOMENTS[name](known).facts.least >= 0


def test_a_moment_of_large_means_is_not_that_of_squares_less_a_square() -> None:
    x = spread(1e4 + np.array([1.0, 2.0, 4.0]))
    assert np.var(x).closed().error < 0.05 * np.var(x.value)


def test_how_often_moments_round() -> None:
    x = spread([1.1, 2.3, 4.2, 3.3])
    assert np.average(x).closed().error == pytest.approx(np.mean(x).error)
    assert np.linalg.norm(x, 1).closed().error == pytest.approx(3 * U * x.value.sum(), rel=1e-6)
    assert np.linalg.norm(x, np.inf).closed().error == 0
    assert fields(np.linalg.norm(x))["roundings"] == 6
    with np.errstate(all="ignore"):
        assert np.var(drawn(3), ddof=3).value == np.inf
    weights = np.array([1.0, 2.0, 3.0, 2.0])
    weighed = np.average(x, weights=weights).closed()
    assert weighed.error == pytest.approx(6 * U * weighed.value, rel=0.01)


def test_padding_by_zeros_is_said_in_either_way() -> None:
    x = drawn(3)
    for found in (np.pad(x, 1), np.pad(x, 1, "constant"), np.pad(x, (1, 1), mode="constant", constant_values=0)):
        assert fields(found)["value"].tolist() == [0, *x.value, 0]
        assert fields(found)["error"].tolist() == [0, *x.error, 0]
