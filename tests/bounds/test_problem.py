"""A Problem whose reference comes from its function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from py_backends.contract import Array, Problem
from py_backends.errors import WrongRequest
from py_backends.harness.case import Case
from py_backends.plugins import checked_problem
from py_backends.results.check import check_output, references_of


class Axpy(Problem):
    name, signature, in_place = "axpy", "(n),(n)->(n)", True
    numbers = {"alpha": 2.5}
    dtypes = ("float32", "float64", "float16")
    results = {"float16": "float32"}

    def function(x, y, alpha):  # noqa: N805  # of arrays alone
        return alpha * x + y


class Moments(Problem):
    name, signature, nonzero_sizes = "moments", "(m,n)->(m,n),(m),(m):int64", ("n",)

    @staticmethod
    def function(x: Any) -> Any:
        apart = x - x.mean(axis=1, keepdims=True)
        return apart, (apart**2).mean(axis=1), x.argmax(axis=1)


class Spmv(Problem):
    name, nonzero_sizes = "spmv", ("m", "n")
    signature = "(nonzeros),(nonzeros):int32,(m+1):int32,(n)->(m)"

    @staticmethod
    def function(values, columns, begins, x):
        counts = np.diff(begins)
        return np.bincount(np.repeat(np.arange(counts.size), counts), values * x[columns], counts.size)


class Filtered(Problem):
    name, signature, tolerance = "filtered", "(n)->(n)", {"float32": 1e-5, "float64": 1e-13}

    @staticmethod
    def function(x):
        return np.fft.irfft(np.fft.rfft(x), len(x))


def drawn(*shapes: tuple[int, ...]) -> list[Array]:
    generator = np.random.default_rng(1)
    return [generator.standard_normal(shape).astype(np.float32) for shape in shapes]


def test_a_function_names_the_inputs_and_gives_the_reference() -> None:
    problem = Axpy()
    assert problem.inputs == ("x", "y")
    x, y = drawn((100,), (100,))
    (reference,) = references_of(problem, [x, y], (100, 2.5), np.dtype(np.float32))
    assert check_output(np.float32(2.5) * x + y, reference, problem.rule).reason is None
    assert check_output(np.float32(2.5) * x - y, reference, problem.rule).reason
    (reference,) = references_of(problem, [x.astype(np.float16), y.astype(np.float16)], (100, 2.5), np.dtype("float16"))
    assert (reference.bound < 1e-6).all()


def test_several_outputs_with_formats_of_their_own() -> None:
    (x,) = drawn((5, 40))
    apart, variance, places = references_of(Moments(), [x], (5, 40), np.dtype(np.float32))
    assert places.value.tolist() == x.argmax(axis=1).tolist()
    assert check_output(x - x.mean(axis=1, keepdims=True), apart, "componentwise").reason is None
    assert check_output(x.var(axis=1), variance, "componentwise").reason is None
    assert check_output(x.var(axis=1, ddof=1), variance, "componentwise").reason


def test_whole_numbers_are_indices_as_they_are() -> None:
    values, x = drawn((6,), (4,))
    columns, begins = np.int32([0, 3, 1, 1, 2, 0]), np.int32([0, 2, 2, 6])
    (y,) = references_of(Spmv(), [values, columns, begins, x], (3, 6, 4), np.dtype(np.float32))
    right = np.add.reduceat(np.append(values * x[columns], 0), [0, 2, 2])
    assert y.value[0] == pytest.approx(right[0], rel=1e-6)
    assert y.value[1] == y.bound[1] == 0


def test_a_tolerance_stands_for_a_bound() -> None:
    (x,) = drawn((64,))
    (reference,) = references_of(Filtered(), [x], (64,), np.dtype(np.float32))
    assert reference.bound == pytest.approx(1e-5 * np.abs(x).max(), rel=1e-6)
    assert check_output(x, reference, "componentwise").reason is None


def test_with_a_tolerance_too_a_result_may_overflow_where_its_value_does() -> None:
    class Doubled(Problem):
        name, signature, tolerance = "doubled", "(n)->(n)", 1e-6

        @staticmethod
        def function(x):
            return x + x

    x = np.float32([3e38, -3e38, 1.0])
    (reference,) = references_of(Doubled(), [x], (3,), np.dtype(np.float32))
    assert check_output(np.float32([np.inf, -np.inf, 2]), reference, "componentwise").reason is None
    assert check_output(np.float32([np.inf, -np.inf, np.inf]), reference, "componentwise").reason is not None
    assert check_output(np.float32([np.inf, -np.inf, 1.5]), reference, "componentwise").reason is not None
    (wide,) = references_of(Doubled(), [x.astype("f8")], (3,), np.dtype(np.float64))
    assert check_output(np.array([np.inf, -6e38, 2]), wide, "componentwise").reason is not None
    (near,) = references_of(Doubled(), [np.float32([1.70141173e38])], (1,), np.dtype(np.float32))
    assert check_output(np.float32([np.inf]), near, "componentwise").reason is None, "within its tolerance"


@pytest.mark.parametrize("tolerance", [0, 0.0, np.float32(0), {"float32": 0, "float64": 1}])
def test_any_real_number_is_a_tolerance(tolerance: Any) -> None:
    class Doubled(Problem):
        name, signature = "doubled", "(n)->(n)"

        @staticmethod
        def function(x):
            return x + x

    Doubled.tolerance = tolerance
    (x,) = drawn((64,))
    (reference,) = references_of(checked_problem(Doubled(), "doubled"), [x], (64,), np.dtype(np.float32))
    assert not reference.bound.any()
    assert check_output(x + x, reference, "componentwise").reason is None


@pytest.mark.parametrize(
    ("tolerance", "message"),
    [
        ("1e-5", "its tolerance must be a finite number, not '1e-5'"),
        (True, "its tolerance must be a finite number, not True"),
        (-1e-5, "its tolerance must be from 0 on, not -1e-05"),
        (float("nan"), "its tolerance must be a finite number, not nan"),
        ({"float32": float("inf"), "float64": 0}, "its tolerance must be a finite number, not inf"),
        ({"float32": 1e-5}, "its tolerance has none for float64, which is one of its dtypes"),
        ([1e-5], r"its tolerance must be a finite number, not \[1e-05\]"),
    ],
)
def test_what_is_no_tolerance_is_refused_in_one_line(tolerance: Any, message: str) -> None:
    class Wrong(Filtered):
        name = "wrong"

    Wrong.tolerance = tolerance
    with pytest.raises(WrongRequest, match=message):
        checked_problem(Wrong(), "wrong")


def test_a_problem_has_one_of_both() -> None:
    class Neither(Problem):
        name, signature = "neither", "(n)->(n)"

    with pytest.raises(TypeError, match="reference"):
        Neither()


def test_a_results_format_may_have_fewer_digits() -> None:
    class Scaled(Problem):
        name, signature, dtypes = "scaled", "(n)->(n)", ("float16",)

        @staticmethod
        def function(x):
            return np.exp(x) * 3

    x = drawn((50,))[0].astype(np.float16)
    (reference,) = references_of(Scaled(), [x], (50,), np.dtype(np.float16))
    right = (np.exp(x.astype(np.float32)) * 3).astype(np.float16)
    assert check_output(right, reference, "componentwise").reason is None
    assert (reference.bound < 1e-3 * reference.value).all()
    assert (reference.bound > 2.0**-11 * reference.value).all(), "whatever its own rounding costs"


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_a_case_whose_bound_judges_little_says_so(shift: float) -> None:
    class Shifted(Problem):
        name, signature, numbers = "shifted", "(n)->(n)", {"shift": 0.0}

        @staticmethod
        def function(x, shift):
            return (x + shift) - shift

    case = Case(Shifted(), (100, shift), np.dtype(np.float32), seed=1)
    assert (case.remark is not None) == bool(shift)
    case.close()
