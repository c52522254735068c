"""Factors and products: what each makes of all fields, by the formulas of the module's own lines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from open_sums import SINGLE, drawn, fields, spread

from py_backends.bounds.array import Bounded, Facts
from py_backends.bounds.precision import LARGEST_STEP, Precision

INF, MOST = np.inf, SINGLE.largest
FLUSHING = Precision.of(np.dtype("bfloat16"), np.dtype(np.float32))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("least", [-INF, 0.0, 0.25])
@pytest.mark.parametrize("error", [0.0, 0.125])
@pytest.mark.parametrize("number", [0.0, 1.0, 2.0, -4.0, 0.5, -0.25, 3.0, -0.75])
def test_a_number_is_a_factor_of_each_term(number: float, error: float, least: float, side: str) -> None:
    x = drawn(3, least=least)
    factor = spread(number, error, facts=Facts(abs(number) or LARGEST_STEP, abs(number)))
    found = x * factor if side == "left" else factor * x
    power = error == 0 and number not in {3.0, -0.75}
    size, most = abs(number), abs(number) + error
    loses = not (power and (size >= 1 or number == 0))
    right = {
        "value": x.value * number,
        "error": x.error * most + x.magnitude * error,
        "magnitude": x.magnitude * size,
        "roundings": x.roundings + (not power),
        "terms": x.terms,
        "losses": x.losses * most + loses * x.terms,
        "overflow": x.overflow,
    }
    for name, field in right.items():
        assert np.array_equal(fields(found)[name], field), name
    assert found.facts.step == 0.25 * abs(number) or number == 0
    assert found.facts.least == (0.99 * number * least if number > 0 and least >= 0 else -INF)


def test_no_terms_at_all_may_lose_what_one_does() -> None:
    x = Bounded(SINGLE, np.zeros(2), terms=0.0)
    assert fields(x * 0.1)["losses"].tolist() == [1.0, 1.0]
    assert fields(x / 3)["losses"].tolist() == [1.0, 1.0]


def test_a_sum_may_overflow_before_it_is_made_smaller_and_a_product_before_it_is_added_to() -> None:
    open_sum = Bounded(SINGLE, [1.0, 1.0], magnitude=[3.0, 1.5 * MOST], terms=2.0)
    assert not open_sum.overflow.any()
    assert fields(open_sum * 0.5)["overflow"].tolist() == [False, True]
    assert fields(open_sum * 1.0)["overflow"].tolist() == [False, False], "it is still open"
    assert fields(open_sum * 2.0)["overflow"].tolist() == [False, True]
    beside = Bounded(SINGLE, [1.0, 1.0], [0.0, 0.3 * MOST], magnitude=[0.5 * MOST, 0.25 * MOST], terms=2.0)
    assert fields(beside * 2.0)["overflow"].tolist() == [False, True]
    assert fields(beside * 3.0)["overflow"].tolist() == [True, True]
    with np.errstate(all="ignore"):
        assert not fields(spread([1.0, INF]) * spread(2.0, 1.0))["overflow"].any()
        assert fields(spread([1.0, INF]) * spread(1.0, 1.0))["overflow"].tolist() == [False, True]
        assert fields(spread([1.0, INF, np.nan]) * spread(1.0, overflow=True))["overflow"].tolist() == [
            True,
            True,
            False,
        ]


@pytest.mark.parametrize("count", [3, -3, 0.1, 7.5])
@pytest.mark.parametrize("least", [-INF, 0.25])
def test_division_by_a_number_rounds_its_reciprocal_too(count: float, least: float) -> None:
    """A count that has more digits than float32 was rounded by itself."""
    x = drawn(3, least=least)
    found, size = x / count, 1 / abs(count)
    right = {
        "value": x.value / count,
        "error": x.error * size,
        "magnitude": x.magnitude * size,
        "roundings": x.roundings + (3 if count == 0.1 else 2),
        "terms": x.terms,
        "losses": x.losses * size + x.terms + x.magnitude + x.error,
        "overflow": x.overflow,
    }
    for name, field in right.items():
        assert fields(found)[name] == pytest.approx(field, rel=1e-15), name
    assert np.array_equal(found.value, x.value / count)
    assert found.facts == Facts(0.0, 0.0 if count > 0 and least >= 0 else -INF)


@pytest.mark.parametrize("count", [2, -8, 0.25])
def test_division_by_a_power_of_two_is_a_factor(count: float) -> None:
    x = drawn(3, least=0.25)
    found, right = fields(x / count), fields(x * (1 / count))
    assert all(np.array_equal(found[name], right[name]) for name in found)
    assert (x / count).facts == Facts(0.25 / abs(count), 0.99 * 0.25 / count if count > 0 else -INF)


def test_a_reciprocal_that_is_infinite_leaves_no_number() -> None:
    with np.errstate(all="ignore"):
        assert fields(spread([0.0, 1.0, INF]) / 1e-39)["overflow"].tolist() == [True, True, False]
        assert not fields(spread([0.0, 1.0]) / (1.5 * 2.0**-128))["overflow"].any(), "which is 2e38"
        assert (spread([1.0, -1.0]) / 0).value.tolist() == [INF, -INF]
        assert (spread([1.0, -1.0]) / -0.0).value.tolist() == [-INF, INF]
        assert fields(spread([1.0, -1.0]) / 0)["overflow"].all()


A, B = (
    spread([[1.0, -2.0, 3.0], [0.5, 0.0, 4.0]], [[0.5, 1.0, 0.0], [0.25, 0.5, 2.0]]),
    spread([2.0, -1.0, 0.25], [1.0, 0.0, 0.5]),
)
BILINEAR: dict[str, tuple[Any, tuple[Bounded, Bounded]]] = {
    "multiply": (np.multiply, (A, B)),
    "dot": (np.dot, (A, B)),
    "dot of matrices": (np.dot, (A, A.T)),
    "dot of vectors": (np.dot, (B, A[0])),
    "dot of many": (np.dot, (A.reshape(1, 2, 3), A.T.reshape(1, 3, 2))),
    "the method dot": (lambda a, b: a.dot(b), (A, B)),
    "matmul": (np.matmul, (A, A.T)),
    "matmul of many": (np.matmul, (A.reshape(2, 1, 3), A.reshape(2, 3, 1))),
    "matmul of many by a vector": (np.matmul, (A.reshape(2, 1, 3), B)),
    "vdot": (np.vdot, (A, A[::-1])),
    "inner": (np.inner, (A, B)),
    "kron": (np.kron, (A, B)),
    "convolve": (np.convolve, (B, A[0])),
    "convolve alike": (lambda a, b: np.convolve(a, b, mode="same"), (B, A[0])),
    "correlate": (np.correlate, (B, A[0])),
    "correlate in full": (lambda a, b: np.correlate(a, b, "full"), (B, A[0])),
    "tensordot": (lambda a, b: np.tensordot(a, b, axes=1), (A, A.T)),
    "tensordot over both": (lambda a, b: np.tensordot(a, b, axes=([0, 1], [0, 1])), (A, A[::-1])),
    "outer": (np.outer, (A, B)),
    "einsum": (lambda a, b: np.einsum("ij,j->i", a, b), (A, B)),
    "einsum, optimized": (lambda a, b: np.einsum("ij,kj->ik", a, b, optimize=True), (A, A)),
}


def sides(function: Any, x: Bounded, y: Bounded) -> dict[str, Any]:
    """The fields of a sum of products of two numbers, by NumPy's own function."""
    sizes = [np.abs(each.value) for each in (x, y)]
    return {
        "value": function(x.value, y.value),
        "error": function(x.error, sizes[1] + y.error) + function(sizes[0], y.error),
        "magnitude": function(*sizes),
        "terms": function(*(np.ones(each.shape) for each in (x, y))),
        "losses": function(*(np.ones(each.shape) for each in (x, y))),
    }


@pytest.mark.parametrize("name", BILINEAR)
def test_sums_of_products_of_two(name: str) -> None:
    function, (x, y) = BILINEAR[name]
    found = function(x, y)
    for field, right in sides(function, x, y).items():
        assert np.allclose(fields(found)[field], right, rtol=1e-15, atol=0), field
    assert (fields(found)["roundings"] == 1).all()
    assert not found.overflow.any()
    ones = [np.ones(each.shape) for each in (x, y)]
    for at, operand in enumerate((x, y)):
        mask = np.zeros(operand.shape, bool)
        mask.reshape(-1)[1] = True
        operands, counts = [x, y], list(ones)
        operands[at] = spread(operand.value, operand.error, overflow=mask)
        counts[at] = mask.astype(float)
        assert np.array_equal(fields(function(*operands))["overflow"], function(*counts) > 0)


@pytest.mark.parametrize("name", BILINEAR)
@pytest.mark.parametrize(
    ("leasts", "right"), [((0.5, 0.25), 0.99 * 0.125), ((0.0, 2.0), 0.0), ((-INF, 2.0), -INF), ((2.0, -INF), -INF)]
)
def test_products_of_numbers_that_are_not_negative_are_neither(name: str, leasts: Any, right: float) -> None:
    function, operands = BILINEAR[name]
    given = [
        spread(np.abs(x.value), 0 * x.error, facts=Facts(step, least))
        for x, step, least in zip(operands, (0.5, 0.125), leasts, strict=True)
    ]
    facts = function(*given).facts
    assert facts.step == 0.0625
    assert facts.least <= right
    assert (facts.least >= 0) == (right >= 0)
    if name in {"multiply", "dot"}:
        assert facts.least == pytest.approx(right)


def test_three_factors_lose_twice_to_what_the_largest_of_them_multiplies() -> None:
    x, y, z = spread([8.0, 1.0]), spread([2.0, 3.0], [0.0, 0.5]), spread([0.5, 0.25])
    found = np.einsum("i,i,i->i", x, y, z)
    assert fields(found)["losses"].tolist() == [16.0, 16.0]
    assert fields(found)["roundings"].tolist() == [2.0, 2.0]
    assert fields(found)["error"].tolist() == [0.0, 0.125]
    whole = np.einsum("i,i,i->", x, y, z)
    assert (whole.losses, whole.terms, whole.roundings) == (32.0, 2.0, 2.0)
    small = np.einsum("i,i,i->i", z, z, z)
    assert fields(small)["losses"].tolist() == [2.0, 2.0], "at least by one"
    four = np.einsum("i,i,i,i->i", x, y, z, y)
    assert fields(four)["losses"].tolist() == [3 * 8 * 3.5] * 2


def test_a_product_of_some_factors_may_overflow_where_that_of_all_does_not() -> None:
    huge, small = spread([1e30, 1.0]), spread([1e-30, 1.0])
    assert fields(np.einsum("i,i,i->i", huge, huge, small))["overflow"].tolist() == [True, False]
    assert not fields(np.einsum("i,i,i->i", huge, small, small))["overflow"].any()
    assert not fields(huge * small)["overflow"].any()
    wide = spread([1.0, 1.0], [1e30, 1.0])
    assert fields(np.einsum("i,i,i->i", huge, wide, small))["overflow"].tolist() == [True, False]


def test_infinity_beside_what_may_be_zero_of_either_sign_or_underflow() -> None:
    with np.errstate(all="ignore"):
        for at, (other, spoilt) in enumerate(
            [
                ((1.0, 0.5), False),
                ((1.0, 1.0), True),
                ((-1.0, 2.0), True),
                ((0.0, 0.0), False),
                ((2.0**-130, 0.0), False),
            ]
        ):
            x, y = spread([INF, 1.0]), spread([other[0], 0.0], [other[1], 5.0])
            for product in (x * y, y * x):
                assert fields(product)["overflow"].tolist() == [spoilt, False], at
        tiny = spread([1e-25, 1.0])
        three = np.einsum("i,i,i->i", spread([INF, INF]), tiny, tiny)
        assert fields(three)["overflow"].tolist() == [True, False], "the others' product may be zero"
        assert (
            fields(np.einsum("i,i,i->i", spread([INF, INF]), spread([1e-18] * 2), spread([1.0] * 2)))["overflow"].sum()
            == 0
        )


def test_matrix_units_take_a_subnormal_factor_for_zero() -> None:
    tiny = FLUSHING.normal / 2
    x = spread([tiny, tiny, FLUSHING.normal, 1.0], [0.0, 2 * tiny, 0.0, 0.25], FLUSHING)
    y = spread([2.0, 2.0, 2.0, 2.0], precision=FLUSHING)
    assert (x * y).error.tolist() == [2 * tiny, 4 * tiny, 0.0, 0.5]
    assert (y * x).error.tolist() == [2 * tiny, 4 * tiny, 0.0, 0.5]
    assert np.einsum("i,i->", x, y).error == pytest.approx(0.5)
    assert (spread(x.value, x.error) * spread(y.value)).error.tolist() == [0.0, 4 * tiny, 0.0, 0.5]


def test_a_square_is_never_negative_and_a_product_of_two_may_be() -> None:
    x, y = spread([-1.0, 2.0]), spread([-1.0, 2.0])
    assert np.square(x).facts.least == (x * x).facts.least == (x**2).facts.least == (x**4).facts.least == 0.0
    assert (x * y).facts.least == (x**3).facts.least == (x**1).facts.least == -INF
    assert np.einsum("i,i->i", x, x).facts.least == -INF
