"""Numbers of formats: what an operation loses, how often sums round, and which numbers are multiples of a step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from open_sums import DOUBLE, SINGLE

from py_backends.bounds.precision import (
    LARGEST_STEP,
    ROUNDOFF,
    Precision,
    common_step,
    product_of_steps,
    written_exactly,
)

HALF, BRAIN, FLOAT, WIDE = (np.dtype(each) for each in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64))
U16, U32, U64 = 2.0**-11, 2.0**-24, 2.0**-53
OF_FLOAT = {"least": 2.0**-149, "normal": 2.0**-126, "largest": float(np.finfo(np.float32).max), "whole": 2.0**24}
OF_WIDE = {"least": 2.0**-1074, "normal": 2.0**-1022, "largest": float(np.finfo(np.float64).max), "whole": 2.0**53 - 1}
OF_HALF = {"least": 2.0**-24, "normal": 2.0**-14, "largest": 65504.0, "whole": 2.0**11}
OF_BRAIN = {"least": 2.0**-133, "normal": 2.0**-126, "largest": 3.3895313892515355e38, "whole": 2.0**8}
FORMATS: list[tuple[Any, Any, dict[str, Any]]] = [
    (FLOAT, FLOAT, {**OF_FLOAT, "roundoff": U32}),
    (WIDE, WIDE, {**OF_WIDE, "roundoff": U64}),
    (HALF, HALF, {**OF_HALF, "roundoff": U16}),
    (BRAIN, BRAIN, {**OF_BRAIN, "roundoff": 2.0**-8}),
    (HALF, FLOAT, {**OF_FLOAT, "roundoff": 2 * U32, "of_storage": (U16, 2.0**-25)}),
    (
        BRAIN,
        FLOAT,
        {**OF_FLOAT, "roundoff": 2 * U32, "of_storage": (2.0**-8, 2.0**-134), "flushes": True, "least": 2.0**-126},
    ),
    (FLOAT, WIDE, {**OF_WIDE, "roundoff": U64, "of_storage": (U32, 2.0**-150)}),
    (WIDE, FLOAT, {**OF_FLOAT, "roundoff": U32}),
    (HALF, WIDE, {**OF_WIDE, "roundoff": 2 * U64, "of_storage": (U16, 2.0**-25)}),
]


@pytest.mark.parametrize(("inputs", "sums", "right"), FORMATS, ids=lambda each: str(each)[:20])
def test_the_numbers_of_each_arithmetic(inputs: Any, sums: Any, right: dict[str, Any]) -> None:
    found = Precision.of(inputs, sums, probable=True, ulps={"exp": 7})
    usual = {"flushes": False, "nearest": True, "of_storage": None}
    for name, number in (usual | right).items():
        assert getattr(found, name) == number, name
    assert (found.dtype, found.probable, dict(found.ulps)) == (sums, True, {"exp": 7})
    assert not Precision.of(inputs, sums).probable


def test_roundings_of_kernel_and_reference_add_up() -> None:
    assert ROUNDOFF == U64
    for precision, u in ((SINGLE, U32), (DOUBLE, U64)):
        assert precision.gamma(np.array([0.0, -5.0])).tolist() == [0, 0]
        for k in (1, 3, 1000):
            assert precision.gamma(np.array(float(k))) == pytest.approx(k * (u + U64), rel=1e-3)
            assert precision.gamma(np.array(float(k))) >= k * (u + U64)
    large = float(SINGLE.gamma(np.array(2.0**26)))
    assert large == pytest.approx(np.e**4 - 1, rel=1e-3), "products of roundings grow"


def test_a_sum_rounds_once_less_than_it_has_terms_or_most_probably_by_the_root() -> None:
    terms = np.array([0.0, 1, 2, 36, 37, 38, 39, 40, 10_000])
    assert SINGLE.additions(terms).tolist() == [0, 0, 1, 35, 36, 37, 38, 39, 9999]
    found = replace(SINGLE, probable=True).additions(terms)
    assert found == pytest.approx([0, 0, 1, 35, 36, 6 * 38**0.5, 6 * 39**0.5, 6 * 40**0.5, 600])


def test_constants_of_few_digits_are_what_the_kernel_has() -> None:
    values = np.array([0.5, 0.1, 3.0, 2.0**24 + 1, 1e300, np.inf, np.nan, 0.0, -0.75])
    assert written_exactly(values).tolist() == [True, False, True, False, False, True, True, True, True]


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([1.0, 3.0], 1.0),
        ([0.5, 3.0], 0.5),
        ([-0.75, 6.0], 0.25),
        ([0.0, 12.0], 4.0),
        ([np.inf, np.nan, 2.0], 2.0),
        ([0.1], 2.0**-55),
        ([2.0**-1074], 2.0**-1074),
        ([2.0**1000], LARGEST_STEP),
        ([2.0**200], LARGEST_STEP),
        ([2.0**199], 2.0**199),
        ([], LARGEST_STEP),
        ([2.0**53 + 2], 2.0),
        ([1 + 2.0**-52], 2.0**-52),
    ],
)
def test_the_largest_step_of_which_numbers_are_multiples(values: list[float], step: float) -> None:
    assert common_step(np.array(values, float)) == step


@pytest.mark.parametrize(
    ("steps", "right"),
    [
        ((), 1.0),
        ((0.5, 0.25), 0.125),
        ((4.0, 0.5), 2.0),
        ((0.0, 4.0), 0.0),
        ((2.0**-100, 2.0**-49), 2.0**-149),
        ((2.0**-100, 2.0**-50), 0.0),
        ((2.0**-100, 2.0**-50, 2.0**20), 0.0),
        ((2.0**100, 2.0**-50, 2.0**-99), 2.0**-49),
        ((2.0**100, 2.0**-50, 2.0**-100), 0.0),
        ((LARGEST_STEP, LARGEST_STEP), LARGEST_STEP),
        ((LARGEST_STEP, 2.0, 0.5), LARGEST_STEP / 2),
    ],
)
def test_steps_of_products_are_lost_to_underflow(steps: tuple[float, ...], right: float) -> None:
    """What a product of some factors lost, no later factor brings back."""
    assert product_of_steps(SINGLE.least, *steps) == right


def test_numbers_of_the_format() -> None:
    assert SINGLE.rounded(np.array([0.1, 1.0])).tolist() == [float(np.float32(0.1)), 1.0]
    assert SINGLE.rounded(np.array([0.1])).dtype == np.float64
