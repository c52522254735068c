"""What each rule makes of errors: no number within the errors of the arguments leads out of that of the result."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from py_backends.bounds.array import Bounded
from py_backends.bounds.precision import Precision

PRECISION = Precision.of(np.dtype(np.float32), np.dtype(np.float32))
U = 2.0**-24


def spread(value: Any, error: Any) -> Bounded:
    return Bounded(PRECISION, np.asarray(value, float), np.asarray(error, float))


def corners(*operands: Bounded) -> Any:
    """Each way to move every element of every operand by its whole error, by half of it, or not at all."""
    sizes = [each.size for each in operands]
    for signs in product((-1, -0.5, 0, 1), repeat=sum(sizes)):
        parts = np.split(np.array(signs), np.cumsum(sizes)[:-1])
        yield [x.value + x.error * part.reshape(x.shape) for x, part in zip(operands, parts, strict=True)]


def furthest(function: Any, *operands: Bounded) -> Any:
    """How far the results go from that of the values."""
    at = function(*(each.value for each in operands))
    with np.errstate(all="ignore"):
        return np.max([np.abs(function(*each) - at) for each in corners(*operands)], axis=0)


TWO = spread([2.0, -1.5], [0.25, 1.0])
"""Errors so large that those of second order count."""
OTHER = spread([3.0, 1.25], [1.0, 0.5])
RULES = {
    "add": (np.add, (TWO, OTHER)),
    "subtract": (np.subtract, (TWO, OTHER)),
    "multiply": (np.multiply, (TWO, OTHER)),
    "square": (np.square, (TWO,)),
    "a power": (lambda x: x**3, (TWO,)),
    "an even power": (lambda x: x**4, (TWO,)),
    "divide": (np.divide, (TWO, OTHER)),
    "reciprocal": (lambda x: 1 / x, (OTHER,)),
    "dot": (np.dot, (TWO, OTHER)),
    "matmul": (np.matmul, (spread([[1, -2]], [[1, 0.5]]), spread([[2], [1]], [[0.5], [3]]))),
    "three factors": (
        lambda x, y, z: np.einsum("i,i,i->", x, y, z),
        (spread([1.0, 2], [1, 0.5]), spread([2.0, -1], [2, 1]), spread([1.0, 1], [0.25, 2])),
    ),
    "outer": (np.outer, (TWO, OTHER)),
    "convolve": (np.convolve, (TWO, OTHER)),
    "correlate": (lambda x, y: np.correlate(x, y, "full"), (TWO, OTHER)),
    "prod": (np.prod, (spread([1.0, 2, 3], [0.5, 1, 2]),)),
    "sum": (np.sum, (TWO,)),
    "mean": (np.mean, (TWO,)),
    "cumsum": (np.cumsum, (TWO,)),
    "reduceat": (lambda x: np.add.reduceat(x, [0, 1]), (TWO,)),
    "diff": (np.diff, (TWO,)),
    "a factor": (lambda x: 0.1 * x, (TWO,)),
    "a factor with an error": (lambda x, y: y * x, (TWO, spread(3.0, 2.0))),
    "exp": (np.exp, (TWO,)),
    "exp2": (np.exp2, (TWO,)),
    "expm1": (np.expm1, (TWO,)),
    "log": (np.log, (OTHER,)),
    "log2": (np.log2, (OTHER,)),
    "log10": (np.log10, (OTHER,)),
    "log1p": (np.log1p, (OTHER,)),
    "sqrt": (np.sqrt, (OTHER,)),
    "tanh": (np.tanh, (TWO,)),
    "sin": (np.sin, (TWO,)),
    "cos": (np.cos, (TWO,)),
    "sinh": (np.sinh, (TWO,)),
    "cosh": (np.cosh, (TWO,)),
    "arctan": (np.arctan, (TWO,)),
    "arcsinh": (np.arcsinh, (TWO,)),
    "hypot": (np.hypot, (TWO, OTHER)),
    "logaddexp": (np.logaddexp, (TWO, OTHER)),
    "a real power": (lambda x: x**1.5, (OTHER,)),
    "powers": (np.power, (OTHER, spread([1.5, -2.0], [0.5, 0.25]))),
    "powers of what may be negative": (lambda x: x ** np.array([3.0, 2.0]), (spread([-2.0, 0.5], [0.25, 1.0]),)),
    "abs": (np.abs, (TWO,)),
    "maximum": (np.maximum, (TWO, OTHER)),
    "minimum": (np.minimum, (TWO, OTHER)),
    "max": (np.max, (spread([1.0, 1.25, -4], [0.5, 0.125, 2]),)),
    "min": (np.min, (spread([1.0, 1.25, -4], [0.5, 0.125, 2]),)),
    "a running maximum": (np.maximum.accumulate, (spread([1.0, 1.25, -4, 0.75], [0.5, 0.125, 2, 1]),)),
    "a running minimum": (np.minimum.accumulate, (spread([1.0, 1.25, -4, 0.75], [0.5, 0.125, 2, 5]),)),
    "clip": (lambda x: np.clip(x, -1, 2), (TWO,)),
    "sort": (np.sort, (spread([1.0, 1.25, -4], [0.5, 0.125, 6]),)),
    "median": (np.median, (spread([1.0, 1.25, -4], [0.5, 0.125, 6]),)),
    "floor": (np.floor, (spread([0.9, 7.5], [0.2, 0.25]),)),
    "ceil": (np.ceil, (spread([0.9, 7.5], [0.2, 0.25]),)),
    "rint": (np.rint, (spread([0.4, 7.0], [0.2, 0.25]),)),
    "sign": (np.sign, (spread([0.4, 7.0], [0.5, 0.25]),)),
    "where": (lambda x, y: np.where(x > y, x, -y), (spread([1.0, 5], [0.5, 0.5]), spread([1.25, 1], [0.5, 0.5]))),
    "a step of either side": (lambda x: (x > 1) * x, (spread([1.0, 5], [0.5, 0.5]),)),
    "var": (np.var, (spread([1.0, 2, 4], [0.5, 0.25, 1]),)),
    "var of a sample": (lambda x: np.var(x, ddof=1), (spread([1.0, 2, 4], [0.5, 0.25, 1]),)),
    "std": (np.std, (spread([1.0, 2, 4], [0.5, 0.25, 1]),)),
    "norm": (np.linalg.norm, (TWO,)),
    "average": (lambda x, y: np.average(x, weights=y), (TWO, OTHER)),
    "trace": (np.trace, (spread([[1, 2], [3, 4]], [[1, 2], [3, 0.5]]),)),
    "pad": (lambda x: np.pad(x, 1), (TWO,)),
    "roll": (lambda x: np.roll(x, 1), (TWO,)),
}
LOOSE = {
    "powers of what may be negative",
    "an even power",
    "sin",
    "cos",
    "sign",
    "var",
    "var of a sample",
    "std",
    "average",
    "a real power",
    "powers",
    "norm",
    "sort",
    "median",
} | {
    *(
        "tanh",
        "arctan",
        "arcsinh",
        "hypot",
        "logaddexp",
        "cosh",
        "sinh",
        "max",
        "prod",
        "where",
        "minimum",
        "clip",
        "three factors",
    ),
}
"""Of a slope, or of one rule after another, which moves both ways what moves one way."""


@pytest.mark.parametrize("name", RULES)
def test_no_number_within_the_errors_leads_out_of_that_of_the_result(name: str) -> None:
    function, operands = RULES[name]
    reached = furthest(function, *operands)
    with np.errstate(all="ignore"):
        result = function(*operands)
    closed = result.closed()
    assert np.allclose(closed.value, function(*(each.value for each in operands)))
    assert (reached <= closed.error).all()
    if name not in LOOSE:
        size = np.abs(closed.value) + reached
        assert (closed.error <= 1.3 * reached + 32 * U * size).all(), "much wider than what errors reach"


SHAPES = (), (2,), (3, 2), (2, 2), (3, 2, 2), (2, 2, 2)
"""Of one to three dimensions, where a sum over the wrong ones of them has the same shape."""


@pytest.mark.parametrize("function", [np.dot, np.matmul])
@pytest.mark.parametrize("shapes", list(product(SHAPES, repeat=2)), ids=str)
def test_a_product_sums_over_the_dimensions_that_numpy_does(function: Any, shapes: tuple[Any, Any]) -> None:
    """Of more than two, np.dot and np.matmul are two products."""
    generator = np.random.default_rng(5)
    values = [generator.integers(-9, 10, shape).astype(float) for shape in shapes]
    operands = [spread(value, 0.0) for value in values]
    try:
        right = function(*values)
    except ValueError:  # shapes of which NumPy has no product
        with pytest.raises(ValueError, match=r"shape|dimension|size"):
            function(*operands)
        return
    found = function(*operands)
    assert np.array_equal(found.value, right)
    of_one, of_other = (function(np.abs(values[0]), np.abs(values[1])), function(*map(np.ones, shapes)))
    assert np.array_equal(np.broadcast_to(found.magnitude, right.shape), of_one)
    assert (found.terms == of_other).all()


@pytest.mark.parametrize("function", [np.multiply, np.dot, np.convolve, lambda x, y: np.einsum("i,i", x, y)])
def test_the_product_of_both_errors_counts(function: Any) -> None:
    """1 +- 1 times 1 +- 1 is up to 4, and 0 +- 1 times 0 +- 1 anything from -1 to 1."""
    for value, most in ((1.0, 3.0), (0.0, 1.0)):
        one = spread([value], [1.0])
        assert np.allclose(function(one, spread([value], [1.0])).closed().error, most)


def test_a_quotient_is_bounded_while_its_divisor_is_not_zero() -> None:
    x, y = spread([1.0, 1.0, 1.0], [0.5, 0.5, 0.5]), spread([2.0, 1.0, 0.5], [1.0, 1.0, 1.0])
    quotient = (x / y).closed()
    assert quotient.overflow.tolist() == [False, True, True]
    assert quotient.error[0] == pytest.approx(1.0)  # 1.5 / 1 beside 1 / 2
    assert np.isinf(quotient.error[1:]).all()


def test_a_root_of_what_may_be_negative_may_be_no_number_but_for_sums_of_squares() -> None:
    x = spread([0.5, 4.0], [1.0, 1.0])
    assert np.sqrt(x).closed().overflow.tolist() == [True, False]
    squares = np.sqrt((x * x).sum() + 1e-5).closed()
    assert not squares.overflow.any()
    assert np.isfinite(squares.error)


@pytest.mark.parametrize(
    ("function", "roundings"),
    [
        (lambda x, y: x * y, 1),
        (lambda x, y: x * y + x, 2),
        (lambda x, y: x + y + x, 2),
        (lambda x, y: (x + y) + (x + y), 3),
        (lambda x, y: (x * y).sum(), 8),
        (lambda x, y: x @ y, 8),
        (lambda x, y: (x + y) * 0.5, 1),
        (lambda x, y: (x + y) * 3, 2),
        (lambda x, y: (x + y) / 3, 3),
        (lambda x, y: x / y, 2),
        (lambda x, y: np.exp(x * 0 + y), None),
    ],
)
def test_roundings_of_exact_inputs(function: Any, roundings: int | None) -> None:
    """As many as the worst order has; magnitudes are those of the terms."""
    generator = np.random.default_rng(3)
    x, y = (spread(generator.uniform(1, 2, 8).astype(np.float32), 0.0) for _ in range(2))
    closed = function(x, y).closed()
    if roundings is not None:
        assert closed.error == pytest.approx(roundings * U * np.abs(closed.value), rel=1e-5)


def test_the_probable_error_grows_with_the_root_of_the_number_of_terms() -> None:
    precision = Precision.of(np.dtype(np.float32), np.dtype(np.float32), probable=True)
    x = Bounded(precision, np.full(10_000, 1 / 3))
    assert x.sum().closed().error == pytest.approx(600 * U * x.value.sum(), rel=1e-3)


def test_errors_of_libraries_are_the_users_to_widen() -> None:
    wide = Precision.of(np.dtype(np.float32), np.dtype(np.float32), ulps={"exp": 100, "divide": 50})
    x = Bounded(wide, [1.0])
    assert np.exp(x).closed().error == pytest.approx(200 * U * np.e, rel=1e-3)
    assert (Bounded(wide, [1.0, 1.0]) / x).closed().error == pytest.approx(100 * U, rel=1e-3)


def test_the_roundings_of_a_sum_are_those_of_terms_with_their_errors() -> None:
    closed = np.add(spread([1.0], [1e6]), spread([1.0], [1e6])).closed()
    assert closed.error - 2e6 >= U * (2 + 2e6)
