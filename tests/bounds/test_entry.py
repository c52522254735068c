"""From a function to a reference: formats of inputs and results, facts of the user, and tolerances."""

from __future__ import annotations

import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from open_sums import SINGLE, drawn, fields, spread

from py_backends.bounds import _widest, bounded, by_tolerance, stored, tolerated, within
from py_backends.bounds.array import Bounded, Facts
from py_backends.bounds.precision import Precision

INF, NAN, MOST, U = np.inf, np.nan, SINGLE.largest, 2.0**-24
FROM_HALF = Precision.of(np.dtype(np.float16), np.dtype(np.float32))
pytestmark = pytest.mark.filterwarnings("ignore:the bound is")


def test_inputs_come_with_errors_and_whole_numbers_as_they_are() -> None:
    seen: list[Any] = []

    def function(*given: Any) -> Any:
        seen.extend(given)
        return given[0] * given[3]

    x, at = np.float32([1.5, 2.0]), np.int32([1, 0])
    found = bounded(function, x, at, np.array([True, False]), numbers=(float(np.float32(0.1)), 3))
    assert isinstance(seen[0], Bounded)
    assert seen[1] is at
    assert seen[2].dtype == bool
    assert isinstance(seen[3], Bounded)
    assert seen[3].error == 0, "the kernel has exactly this number"
    assert seen[4] == 3
    assert isinstance(seen[4], int)
    assert not found.bound.any()


@pytest.mark.parametrize(
    ("inputs", "sums", "results", "u"),
    [
        (["float32"], None, None, U),
        (["float64"], None, None, 2.0**-53),
        (["float32", "float64"], None, None, 2.0**-53),
        (["float16"], "float32", None, 2 * U),
        (["float16", "float32"], None, None, 2 * U),
        (["float32"], None, ["float64"], 2.0**-53),
        (["float32"], "float32", ["float64"], U),
        (["float32"], None, ["int32", "float32"], U),
        (["bfloat16", "float16"], None, None, 2 * U),
        (["bfloat16"], None, ["float32"], 2 * U),
    ],
)
def test_the_arithmetic_by_its_formats(inputs: list[str], sums: Any, results: Any, u: float) -> None:
    """Six roundings: of a sum, a factor, a quotient and a reciprocal, and of both constants."""

    def function(x: Any, *_: Any) -> Any:
        quotient = x.sum() * 1.1 / 0.7
        return (np.argmax(x), quotient) if results and len(results) == 2 else quotient

    arrays = [np.array([1.0, 0.4375]).astype(each) for each in inputs]
    found = bounded(function, *arrays, sums=sums, results=results)
    quotient = found[1] if isinstance(found, tuple) else found
    assert quotient.bound == pytest.approx(6 * (u + 2.0**-53) * quotient.value, rel=0.2)


def test_the_widest_of_formats_is_that_in_which_numpy_computes() -> None:
    half, brain, single, double = (np.dtype(each) for each in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64))
    assert _widest([half, half]) == half
    assert _widest([brain]) == brain
    assert _widest([brain, half]) == _widest([brain, single]) == single
    assert _widest([half, double]) == double


def test_results_of_whole_numbers_are_modulo_what_their_format_has() -> None:
    a = np.array([2**31 - 1, 3], np.int64)
    assert bounded(lambda a: a + 1, a).value.tolist() == [-(2**31), 4]
    assert bounded(lambda a: a + 1, a, results=["int64"]).value.tolist() == [2**31, 4]
    assert bounded(lambda a: a * 100, np.int8([100])).value.tolist() == [10_000]
    for mask in (np.array([True, False]),):
        assert bounded(lambda m: m, mask, results=["bool"]).value.tolist() == [True, False]
    places, numbers = bounded(lambda x: (np.argmax(x), np.sum(x)), np.float32([1, 2]), results=["int64", "float32"])
    assert places.value.dtype == np.int64
    assert numbers.value == 3.0
    assert bounded(np.argmax, np.float32([1, 2])).bound is None
    assert bounded(np.argmax, np.float32([1, 2]), results=["uint8"]).value.dtype == np.uint8
    whole = bounded(np.floor, np.float32([1.5, 2]), results=["int32"])
    assert whole.value.tolist() == [1, 2]
    assert whole.bound is None
    with pytest.raises(TypeError, match="real numbers made of whole ones have no bound here"):
        bounded(lambda a: a / 2, a)


def test_results_that_are_not_made_of_the_inputs_are_constants() -> None:
    found = bounded(lambda _: np.array([0.5, 0.1]), np.float32([1, 2]))
    assert found.bound == pytest.approx([0, 0.1 * (U + 2.0**-53)], rel=0.2)
    assert found.value.tolist() == [0.5, 0.1]
    assert bounded(lambda _: 2.0, np.float32([1])).bound == 0
    with pytest.raises(TypeError, match=r"rounding decides np.greater for 1 of 1"):
        bounded(lambda x: x.sum() > 0, np.float32([0.1, 2.0**-30, -0.1]))


@pytest.mark.parametrize("count", [1, 3])
def test_as_many_results_as_there_are_arrays(count: int) -> None:
    with pytest.raises(TypeError, match=f"the function gives 2 arrays, where there are {count} results"):
        bounded(lambda x: (x, x), np.float32([1]), results=["float32"] * count)
    assert len(bounded(lambda x: (x, x + 1), np.float32([1]))) == 2


def test_errors_of_functions_pass_as_they_are() -> None:
    def assigned(x: Any) -> Any:
        np.zeros(2)[0] = x[0]

    with pytest.raises(TypeError, match="cannot hold one with a bound"):
        bounded(assigned, np.float32([1, 2]))
    with pytest.raises(ValueError, match="as the user has it"):
        bounded(raised, np.float32([1, 2]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bounded(lambda x: x / np.zeros(2) + np.log(x - x), np.float32([1, 2]))


def raised(_: Any) -> Any:
    raise ValueError("as the user has it")


@pytest.mark.parametrize("several", [False, True])
def test_each_result_that_judges_little_says_so(several: bool) -> None:
    def function(x: Any) -> Any:
        return (x, x + 1e8 - 1e8) if several else x + 1e8 - 1e8

    with pytest.warns(UserWarning, match="judges little") as caught:
        bounded(function, np.float32([1, 2]))
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_libraries_and_probable_sums_are_said_by_the_user() -> None:
    x = np.full(10_000, np.float32(1 / 3))
    worst, probable = (bounded(np.sum, x, probable=each) for each in (False, True))
    assert probable.bound == pytest.approx(600 / 9999 * worst.bound, rel=1e-2)
    wide = bounded(np.exp, np.float32([1.0]), ulps={"exp": 50})
    assert wide.bound == pytest.approx(100 * U * np.e, rel=1e-3)


def test_what_no_element_is_above_or_below() -> None:
    x = spread(
        [0.5, 0.5, 0.9, 0.2], [0.1, 8.0, 0.4, 0.5], overflow=[True, False, False, False], facts=Facts(0.25, -INF)
    )
    found = within(x, 0.0, 1.0)
    assert found.error.tolist() == pytest.approx([0.1, 0.5, 0.4, 0.5])
    assert not found.overflow.any()
    assert found.facts == Facts(0.25, 0.0)
    assert within(x, 0.0, 2.0).error.tolist() == pytest.approx([0.1, 1.5, 0.4, 0.5])
    assert within(x, -1.0, 1.0).facts.least == -INF
    assert within(x, -1.0, 1.0).error.tolist() == pytest.approx([0.1, 1.5, 0.4, 0.5])
    assert within(spread([1.0], facts=Facts(0.0, 0.75)), 0.5, 2.0).facts.least == 0.75
    assert within(spread([1.0], facts=Facts(0.0, 0.25)), 0.5, 2.0).facts.least == 0.5
    assert within(spread([1.0], facts=Facts(0.0, 0.25)), -0.5, 2.0).facts.least == 0.25
    open_end = within(x, 0.0, INF)
    assert fields(open_end)["overflow"].tolist() == [True, False, False, False]
    assert open_end.error.tolist() == pytest.approx([0.1, 8.0, 0.4, 0.5])
    outside = within(spread([2.0, -1.0], [0.5, 0.5]), 0.0, 1.0)
    assert outside.error.tolist() == [0.5, 0.5]
    beyond = within(spread([INF, NAN], [1.0, 1.0]), 0.0, 1.0)
    assert beyond.error.tolist() == [0, 0]
    exactly = within(spread([1.0, 3.0], [1.0, 1.0]), 1.0, 1.0)
    assert exactly.error.tolist() == [0.0, 1.0]
    assert within(drawn(3), -100.0, 100.0).terms == 1
    assert within(2.5, 0, 1) == 2.5


def test_numbers_stored_in_the_format_of_the_inputs() -> None:
    x = spread([1.0, -3.0], [0.0, 0.5], FROM_HALF, overflow=[False, True], facts=Facts(0.25, 0.75))
    found = stored(x)
    roundoff, least = 2.0**-11, 2.0**-25
    assert found.error.tolist() == [roundoff + least, 0.5 + roundoff * 3.5 + least]
    assert fields(found)["overflow"].tolist() == [False, True]
    assert found.facts == Facts(0.0, 0.0)
    assert stored(spread([1.0], precision=FROM_HALF)).facts.least == -INF
    assert stored(spread([1.0])).error == 0, "the inputs have all digits"
    same = spread([1.0])
    assert stored(same) is same
    assert stored(2.5) == 2.5


def test_a_tolerance_is_relative_to_the_largest_finite_number() -> None:
    found = by_tolerance(np.array([1.0, -4.0, INF, NAN]), 0.5)
    assert found.bound.tolist() == [2.0] * 4
    assert by_tolerance(np.zeros(0), 0.5).bound.shape == (0,)
    assert by_tolerance(np.array([1.0, -4.0]), 0.5, np.array([3.0, INF])).bound.tolist() == [1.5, 1.5]
    assert by_tolerance(np.array([[0.0]]), 0.5).bound.tolist() == [[0.0]]


def test_a_tolerated_function_runs_in_float64_on_real_inputs_alone() -> None:
    seen: list[Any] = []

    def function(x: Any, at: Any, number: Any) -> Any:
        seen.extend((x, at, number))
        return x[at] * number, at * 2

    found, places = tolerated(
        function, np.float32([1, -2]), np.int32([1, 0]), numbers=(3,), tolerance=0.25, results=["float32", "int32"]
    )
    assert seen[0].dtype == np.float64
    assert seen[1].dtype == np.int32
    assert found.value.tolist() == [-6, 3]
    assert found.bound.tolist() == [1.5, 1.5]
    assert not found.overflow.any()
    assert places.bound is None
    assert places.value.tolist() == [2, 0]


def test_with_a_tolerance_what_the_result_cannot_hold_is_no_measure() -> None:
    found = tolerated(lambda x: x * x, np.float32([1e30, 2.0, 0.0]), numbers=(), tolerance=0.5, results=["float32"])
    assert found.bound.tolist() == [2, 2, 2]
    assert found.overflow.tolist() == [True, False, False]
    assert found.value[0] == pytest.approx(1e60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        infinite = tolerated(lambda x: x / 0.0, np.float32([1.0]), numbers=(), tolerance=0.5, results=["float32"])
    assert infinite.overflow.tolist() == [False]
