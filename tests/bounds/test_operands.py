"""Functions of special numbers: whatever operands may be in a right kernel, it gives what the bound accepts."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from open_sums import spread

from py_backends.bounds.array import Bounded
from py_backends.bounds.result import judged
from py_backends.reference import Reference
from py_backends.results.check import _within_bound

INF, NAN, MOST, LEAST = np.inf, np.nan, float(np.finfo(np.float32).max), 2.0**-149
NUMBERS = (0.0, -0.0, 1.0, -1.0, 0.75, -2.5, 7.0, 90.0, -200.0, LEAST, -MOST, MOST, 2.0**64, INF, -INF, NAN)
FEW = (0.0, -0.0, 1.0, -2.5, 3.0, 2.0**-100, MOST, -INF, INF, NAN)
ERRORS = (0.0, 0.25, 1.5)
OF_ONE: dict[str, Any] = {
    **{
        each.__name__: each
        for each in (
            *(np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p, np.sqrt, np.tanh, np.sin, np.cos),
            *(np.sinh, np.cosh, np.arctan, np.arcsinh, np.absolute, np.fabs, np.floor, np.ceil, np.trunc, np.rint),
            *(np.sign, np.negative, np.positive, np.square, np.reciprocal, np.round),
        )
    },
    **{f"times {each}": lambda x, each=each: x * each for each in (0.0, -1.0, 0.5, 3.0, -0.1, 1e30, 1e-30, INF, NAN)},
    **{f"by {each}": lambda x, each=each: x / each for each in (0.0, -0.0, 2.0, 3.0, -0.1, 1e30, 1e-30, INF, NAN)},
    **{f"to {each}": lambda x, each=each: x**each for each in (0, 1, 2, 3, 4, 5, -1, -2, -3, 0.5, -0.5, 1.5, -0.7)},
    "1.5 over": lambda x: 1.5 / x,
    "over its square": lambda x: 1.0 / (x * x),
    "clip": lambda x: np.clip(x, -1.0, 2.0),
    "clip above": lambda x: np.clip(x, None, 2.0),
    "clip below": lambda x: np.clip(x, min=-1.0),
    "where it is positive": lambda x: np.where(x > 0, x, 2.0),
    "where it is small": lambda x: np.where((x < 1) & (x > -1), x * 2.0, 1.0),
    "where it is large": lambda x: np.where((x >= 1) | ~(x > -1), 3.0, x),
    "where it is zero": lambda x: np.where(x == 0, x + 1.0, x * 0.0),
    "where it is another one": lambda x: np.where(x != 0, x, -1.0),
    "itself where it is positive": lambda x: (x > 0.5) * np.clip(x, -2.0, 2.0),
    "narrowed": lambda x: x.astype(np.float16) * 1.0,
    "maximum of a number": lambda x: np.maximum(x, 1.0),
    "minimum of a number": lambda x: np.minimum(x, 1.0),
}
OF_TWO: dict[str, Any] = {
    **{
        each.__name__: each
        for each in (
            *(np.add, np.subtract, np.multiply, np.divide, np.hypot, np.logaddexp, np.maximum, np.minimum),
            *(np.fmax, np.fmin),
        )
    },
    "the larger": lambda x, y: np.where(x > y, x, y),
    "the last": lambda x, y: np.where(x <= y, x, -y),
    "prod": lambda x, y: np.prod(np.stack([x, y, x]), axis=0),
    "max": lambda x, y: np.max(np.stack([x, y]), axis=0),
    "min": lambda x, y: np.min(np.stack([x, y]), axis=0),
    "sum": lambda x, y: np.sum(np.stack([x, y, y]), axis=0),
    "mean": lambda x, y: np.mean(np.stack([x, y, y]), axis=0),
    "norm": lambda x, y: np.sqrt(x * x + y * y),
    "dot": lambda x, y: np.einsum("i,i->i", x, y),
    "three factors": lambda x, y: np.einsum("i,i,i->i", x, y, x),
    "fused": lambda x, y: x * y + x,
    "power": np.power,
    "a running maximum": lambda x, y: np.maximum.accumulate(np.stack([y, x]))[1],
    "a running minimum": lambda x, y: np.minimum.accumulate(np.stack([x, y]))[1],
    "a running sum": lambda x, y: np.add.accumulate(np.stack([x, y]))[1],
    "a weighed mean": lambda x, y: np.average(np.stack([x, y]), axis=0, weights=np.repeat([[1.0], [3.0]], x.size, 1)),
}


def grid(*numbers: tuple[float, ...]) -> list[Bounded]:
    """All ways to take a number, an error and whether it may overflow, for each operand."""
    of_each = [list(product(each, ERRORS, (False, True))) for each in numbers]
    columns = zip(*product(*of_each), strict=True)
    made = []
    for column in columns:
        value, error, overflow = (np.array(each) for each in zip(*column, strict=True))
        large = np.isfinite(value) & (np.abs(value) > 1e3)
        error = np.where(np.isfinite(value), np.where(large, 1e-3 * np.where(large, value, 0.0), 1.0) * error, 0.0)
        error = np.abs(error)
        overflow = overflow & (np.abs(value) > 0.5) | np.isfinite(value) & (np.abs(value) + error > MOST)
        made.append(spread(value, error, overflow=overflow))
    return made


def kernels(x: Bounded) -> list[Any]:
    """What there may be in the place of an operand: a number within its error, or what overflows."""
    shifts = [x.value + share * x.error for share in (0.0, -1.0, 1.0, 0.37)]
    shifts = [np.where(np.abs(each) > MOST, np.copysign(INF, each), each) for each in shifts]
    return shifts + [np.where(x.overflow, each, x.value) for each in (INF, -INF, NAN)]


def accepted(reference: Reference, output: Any) -> Any:
    """Which elements are right, as float32 has them, or before they are rounded."""
    assert reference.bound is not None
    stored = np.asarray(output).astype(np.float32)
    right = _within_bound(stored, reference.value, reference.bound, reference.overflow)[0]
    return right | (np.isfinite(stored) & (np.abs(output - reference.value) <= reference.bound * (1 + 2.0**-40)))


def check(function: Any, operands: list[Bounded], narrows: bool = False) -> None:
    with np.errstate(all="ignore"):
        result = function(*operands)
        reference = judged(result, np.dtype(np.float32))
        if not narrows:
            assert np.array_equal(result.value, function(*(each.value for each in operands)), equal_nan=True)
        for each in product(*map(kernels, operands)):
            right = accepted(reference, function(*each))
            if not right.all():
                at = np.flatnonzero(~right)[0]
                shown = [f"{x.value[at]} +- {x.error[at]} {x.overflow[at]}" for x in operands]
                pytest.fail(f"{shown}: {function(*each)[at]} beside {reference.value[at]} within {reference.bound[at]}")


@pytest.mark.parametrize("name", OF_ONE)
def test_a_function_of_whatever_one_operand_may_be(name: str) -> None:
    check(OF_ONE[name], grid(NUMBERS), narrows=name == "narrowed")


@pytest.mark.parametrize("name", OF_TWO)
def test_a_function_of_whatever_two_operands_may_be(name: str) -> None:
    x, y = grid(FEW, FEW)
    if name == "power":
        kept = ~refused(x, y)
        x, y = x[kept], y[kept]
    check(OF_TWO[name], [x, y])


def refused(x: Bounded, y: Bounded) -> Any:
    """Where it depends on the rounding of an exponent whether there is a power: of negative numbers, and of zero."""
    with np.errstate(invalid="ignore"):
        low, high = y.value - y.error, y.value + y.error
        whole, either_sign = y.overflow | (np.floor(high) >= low), y.overflow | ((low <= 0) & (high >= 0))
        rounded = (y.error > 0) | y.overflow
        zero = (x.value - x.error <= 0) & (x.value + x.error >= 0)
        negative = (x.value - x.error < 0) | (x.value == 0) & np.signbit(x.value) & (y.value < 0)
        return rounded & (negative & whole | zero & either_sign)


def test_powers_are_refused_where_rounding_decides_whether_there_is_one() -> None:
    x, y = grid(FEW, FEW)
    for at in np.flatnonzero(refused(x, y))[::17]:
        with pytest.raises(
            TypeError, match=r"np.power of numbers that may be negative or 0 to a power that was rounded"
        ):
            np.power(x[at : at + 1], y[at : at + 1])


@pytest.mark.parametrize("name", OF_ONE | OF_TWO)
def test_exact_operands_of_usual_size_leave_no_doubt(name: str) -> None:
    """Neither a wide bound nor an overflow stands beside what is exact, and far from the ends of the format."""
    count = 1 if name in OF_ONE else 2
    usual = [1.0, 0.75, 7.0, 2.5, 0.1] + ([] if name == "power" else [-1.0, -2.5])
    operands = [spread(np.array(each)) for each in zip(*product(usual, repeat=count), strict=True)]
    with np.errstate(all="ignore"):
        result = (OF_ONE | OF_TWO)[name](*operands)
        reference = judged(result, np.dtype(np.float32))
    if name in WITHOUT_A_BOUND:
        assert reference.overflow.all()
        return
    sure = ~np.isnan(reference.value)
    assert sure.mean() > 0.5
    assert reference.overflow is None or not reference.overflow[sure].any()
    reach = (
        7.0
        if name in {"fused", "sum", "mean", "add", "subtract", "a running sum", "a weighed mean", "logaddexp"}
        else 0.0
    )
    limit = 2.0**-10 if name == "narrowed" else 2.0**-15 if name == "power" else 2.0**-18
    assert (reference.bound[sure] <= limit * (np.abs(reference.value[sure]) + reach) + 1e-43).all()


WITHOUT_A_BOUND = {"times inf", "times nan", "by nan", "by 0.0", "by -0.0"}
"""Where the factor itself is, or may be, infinite."""
