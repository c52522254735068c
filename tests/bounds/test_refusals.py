"""What has no bound is refused in one clear line."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

from py_backends.bounds import bounded, within

X = np.random.default_rng(1).standard_normal((6, 6)).astype(np.float32)
UNSURE = np.float32([1, 2.0**-24, -1, 5])
"""Its first three elements add up to 0, or to 2^-24."""


def first_element(x: Any) -> Any:
    c = np.zeros(3)
    c[0] = x[0, 0]
    return c


def added(x: Any) -> Any:
    c = np.zeros((6, 6))
    c += x
    return c


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (np.fft.fft, r"np.fft.fft has no bound here: give the Problem a tolerance, relative to the norm of the output"),
        (np.linalg.inv, r"np.linalg.inv has no bound"),
        (lambda x: x % 2, r"np.remainder has no bound"),
        (np.gradient, r"np.gradient has no bound"),
        (
            lambda x: x ** (1 + x[0] * x[1] - x[0] * x[1]),
            r"np.power of numbers that may be negative or 0 to a power that was rounded has",
        ),
        (
            lambda x: np.diag(np.abs(x[0]) + 1) ** (x[0] * x[1] - x[0] * x[1]),
            r"np.power of numbers that may be negative or 0 to a power that was rounded has",
        ),
        (lambda x: np.sort(1e30 * x * 1e30), r"np.sort of numbers that may overflow has no bound"),
        (lambda x: np.sum(x, where=x > 0), r"np.sum with where has no bound"),
        (lambda x: np.pad(x, 1, "mean"), r"np.pad with mode 'mean'.* has no bound"),
        (lambda x: x.tofile("x"), r"the method tofile of arrays has no bound"),
        (lambda x: math.exp(x[0, 0]), r"a number of Python or NumPy cannot hold one with a bound"),
        (np.array, r"an array without a bound, as np.array\(\) gives, cannot hold one with a bound"),
        (first_element, r"cannot hold one with a bound: np.zeros_like\(a\) and"),
        (added, r"the result of np.add has a bound, and goes to an array without"),
        (lambda x: x + "1", r"a number is needed beside arrays with a bound"),
    ],
)
def test_the_message_names_what_has_no_bound(function: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message) as caught:
        bounded(function, X)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x if x[:3].sum() > 0 else -x,
        lambda x: x[np.add.reduceat(x, [0, 3]) > 0],
        lambda x: x if np.all(np.add.reduceat(x, [0, 3]) > 0) else -x,
        lambda x: x if np.any(np.add.reduceat(x, [0, 3]) < 0) else -x,
        lambda x: np.argmax(np.stack([x[:3].sum(), x[0] * 0])),
        lambda x: np.argsort(np.stack([x[:3].sum(), x[0] * 0])),
        lambda x: x[:3].sum().astype(int),
        lambda x: x[:3].sum() == 0,
        lambda x: np.nonzero(np.add.reduceat(x, [0, 3])),
        lambda x: np.searchsorted(np.cumsum(np.abs(x)), x * 0.1),
    ],
)
def test_a_branch_that_rounding_decides_is_refused(function: Any) -> None:
    with pytest.raises(TypeError, match="rounding decides"):
        bounded(function, UNSURE)


def test_a_branch_that_no_rounding_decides_is_taken() -> None:
    assert (bounded(lambda x: x if x.sum() > 0 else -x, UNSURE).value == UNSURE).all()
    assert bounded(lambda x: x[x > 0.5], UNSURE).value.tolist() == [1, 5]
    assert bounded(np.argsort, UNSURE).value.tolist() == [2, 1, 0, 3]
    assert bounded(lambda x: np.argmax(x * x * x), UNSURE).value == 3
    assert bounded(lambda x: (x > 0) & (np.add(x, x) < 3), UNSURE).value.tolist() == [True, True, False, False]


def test_facts_of_the_user_narrow_what_rounding_may_do() -> None:
    """The scores are so huge that their roundings could make any weights."""

    def softmax(s: Any, fact: bool) -> Any:
        weights = np.exp(s @ s.T - (s @ s.T).max(axis=1, keepdims=True))
        return (within(weights, 0, 1) if fact else weights) / 4

    huge = 1e6 * X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        without, given = (bounded(lambda s, fact=fact: softmax(s, fact), huge) for fact in (False, True))
    assert without.overflow.any()
    assert given.overflow is None
    assert (given.bound <= 0.251).all()


def test_a_bound_that_judges_little_says_so() -> None:
    with pytest.warns(UserWarning, match="in the median: it judges little"):
        bounded(lambda x: (x + 1e6) - 1e6, X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bounded(lambda x: x * x + 1, X)
