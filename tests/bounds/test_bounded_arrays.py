"""Arrays that carry their errors: how sums close, what is written into them, and what they refuse."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from open_sums import DOUBLE, SINGLE, drawn, fields, spread

from py_backends.bounds.array import METHODS, Bounded, Facts, carried, closing, lifted, sizes_of, thin_mask
from py_backends.bounds.precision import LARGEST_STEP, Precision

INF, NAN, MOST, U = np.inf, np.nan, SINGLE.largest, 2.0**-24
FLUSHING = Precision.of(np.dtype("bfloat16"), np.dtype(np.float32))
NO_BOUND = "has no bound here: give the Problem a tolerance, relative to the norm of the output, in its place"


def gamma(count: float, precision: Precision = SINGLE) -> float:
    """Of so many roundings by the kernel, and as many by the reference."""
    return float(np.expm1(count * np.log1p(precision.roundoff)) + np.expm1(count * np.log1p(2.0**-53)))


@pytest.mark.parametrize("precision", [SINGLE, DOUBLE, FLUSHING], ids=["single", "double", "flushing"])
@pytest.mark.parametrize(
    ("terms", "roundings", "losses", "error", "magnitude"),
    [(1, 1, 0, 0.0, 3.0), (2, 0, 0, 0.0, 3.0), (5, 3, 7, 0.5, 3.0), (0, 2, 1, 0.25, 3.0), (9, 0, 2.0**100, 0.0, 0.0)],
)
def test_a_sum_closes_as_the_modules_first_lines_say(
    precision: Precision, terms: float, roundings: float, losses: float, error: float, magnitude: float
) -> None:
    x = Bounded(precision, 1.0, error, magnitude, roundings=roundings, terms=terms, losses=losses)
    additions = max(terms - 1, 0)
    lost = (losses + (additions if precision is FLUSHING else 0)) * precision.least
    right = error + gamma(roundings + additions, precision) * (magnitude + error) + lost
    closed = x.closed()
    assert closed.error == pytest.approx(right, rel=1e-6, abs=0)
    assert closed.error >= right * (1 - 1e-9)
    assert closed.of_one_term()
    assert closed.value == 1.0
    assert closed.magnitude == 1.0


def test_float64_sums_count_the_rounding_of_their_own_magnitude() -> None:
    x = Bounded(DOUBLE, 1.0, 1.0, 1.0, roundings=1000.0)
    assert closing(x)[0] > 1.0 + 2 * gamma(1000, DOUBLE) + 1000 * 2.0**-52
    none = Bounded(DOUBLE, 1.0, 1.0, 1.0)
    assert closing(none)[0] == 1.0 + 16 * 2.0**-52


def test_where_sums_are_exact() -> None:
    """Multiples of a step that have no error, in sums whose halves fit into the digits of the format."""
    whole = SINGLE.whole
    step = Facts(0.5, -INF)
    for value, magnitude, error, right in (
        (0.0, whole, 0.0, True),
        (0.0, whole + 2, 0.0, False),
        (whole / 2, whole / 2, 0.0, True),
        (-whole / 4, 0.75 * whole, 0.0, True),
        (-whole / 4, 0.75 * whole + 1, 0.0, False),
        (1.0, 1.0, 0.5, False),
    ):
        x = Bounded(SINGLE, value, error, magnitude, terms=5.0, facts=step)
        assert (x.closed().error == 0) == right, (value, magnitude)
    assert Bounded(SINGLE, 1.0, terms=5.0, facts=Facts(SINGLE.least)).closed().error > 0, "it has no so many digits"
    assert Bounded(SINGLE, 2.0**-130, terms=5.0, facts=Facts(SINGLE.least)).closed().error == 0
    assert Bounded(SINGLE, 2.0**-130, terms=5.0, facts=Facts(SINGLE.least / 2)).closed().error > 0
    for magnitude, right in ((2.0**53 - 1, True), (2.0**53, False)):
        double = Bounded(DOUBLE, 0.0, 0.0, magnitude, terms=5.0, facts=Facts(1.0))
        assert (double.closed().error == 0) == right
    infinite = Bounded(SINGLE, INF, 0.0, 1.0, terms=5.0, overflow=True, facts=Facts(1.0))
    assert infinite.closed().error > 0, "it overflowed, and may be anything"


def test_where_partial_sums_overflow() -> None:
    for magnitude, error, right in (
        (MOST, 0.0, False),
        (MOST * (1 + 2.0**-20), 0.0, True),
        (MOST / 2, 0.6 * MOST, True),
    ):
        x = Bounded(SINGLE, 1.0, error, magnitude)
        assert closing(x)[1] == right
    assert closing(Bounded(SINGLE, 1.0, 0.0, MOST, terms=3.0))[1], "as its roundings may take it there"
    assert closing(Bounded(SINGLE, 1.0, 0.0, NAN))[1]
    assert closing(Bounded(SINGLE, NAN, 1.0))[0] == 0
    assert closing(Bounded(SINGLE, 1.0, NAN))[0] == INF
    assert closing(Bounded(SINGLE, INF, 0.0, roundings=5.0))[0] == 0
    half = Precision.of(np.dtype(np.float16), np.dtype(np.float16))
    with np.errstate(all="ignore"):
        assert closing(Bounded(half, [0.0, 1.0], roundings=1e9))[0].tolist() == [0, INF], "zeros do not round"


def test_a_closed_array_is_itself() -> None:
    x = spread([1.0, 2.0], 0.5)
    assert x.closed() is x
    for name, field in (("terms", 2.0), ("terms", 0.0), ("roundings", 1.0), ("losses", 1.0)):
        other = Bounded(SINGLE, [1.0, 2.0], **{name: field})
        assert not other.of_one_term()
        assert other.closed() is not other
        assert not Bounded(SINGLE, [1.0, 2.0], **{name: [field, 1.0 if name == "terms" else 0.0]}).of_one_term()


def test_masks_and_sizes() -> None:
    assert thin_mask(np.zeros((3, 2), bool)).shape == ()
    assert thin_mask([False, True]).tolist() == [False, True]
    assert sizes_of(np.array([-1.0, INF, NAN, 2.0])).tolist() == [1, 0, 0, 2]


@pytest.mark.parametrize("given", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_inputs_are_exact_but_for_digits_that_the_arithmetic_has_not(given: Any) -> None:
    values = np.array([0.75, 0.1, 3.0], np.float64).astype(given)
    found = carried(values, SINGLE)
    assert np.array_equal(found.value, values.astype(float))
    right = [0, gamma(1) * 0.1, 0] if given is np.float64 else [0, 0, 0]
    assert fields(found)["error"] == pytest.approx(right)
    assert found.facts.least == pytest.approx(0.99 * float(values.astype(float).min()))
    assert carried(np.array([0.75, -3.0]), SINGLE).facts == Facts(0.25, -INF)
    assert carried(np.array([0.0, 3.0]), SINGLE).facts == Facts(1.0, 0.0)
    assert carried(np.array([NAN, 3.0]), SINGLE).facts.least == -INF
    assert carried(np.array([INF]), SINGLE).facts == Facts(LARGEST_STEP, -INF)
    assert carried(np.zeros(0), SINGLE).facts == Facts(LARGEST_STEP, -INF)
    assert fields(carried(np.array([INF, 0.1]), SINGLE))["error"][0] == 0
    assert carried(np.array([2**24 + 1], np.int32), SINGLE).error == 0, "indices have all their digits"


def test_constants_beside_arrays() -> None:
    x = spread([1.0, 2.0])
    for constant, error, terms, facts in (
        (3, 0.0, 1.0, Facts(1.0, 0.99 * 3)),
        (0.1, 0.1 * gamma(1), 1.0, None),
        (-0.1, 0.1 * gamma(1), 1.0, None),
        (0, 0.0, 0.0, Facts(LARGEST_STEP, 0.0)),
        (True, 0.0, 1.0, Facts(1.0, 0.99)),
        (INF, 0.0, 1.0, Facts(LARGEST_STEP, -INF)),
        (-2.5, 0.0, 1.0, Facts(0.5, -INF)),
        (np.uint8(4), 0.0, 1.0, Facts(4.0, 3.96)),
        (np.float16(0.5), 0.0, 1.0, Facts(0.5, 0.495)),
        (ml_dtypes.bfloat16(0.5), 0.0, 1.0, Facts(0.5, 0.495)),
    ):
        same, found = lifted(x, constant)
        assert same is x
        assert found.value == float(constant)
        assert found.error == pytest.approx(error)
        assert found.terms == terms
        assert facts is None or found.facts == facts
    some = lifted(x, np.array([0.5, 0.1]))[1]
    assert some.error == pytest.approx([0.0, 0.1 * gamma(1)])
    for wrong in ("1", 1j, None, np.datetime64("2020-01-01"), [None]):
        with pytest.raises(
            TypeError, match=f"a number is needed beside arrays with a bound, not {type(wrong).__name__}"
        ):
            lifted(x, wrong)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_a_narrower_format_adds_one_rounding(dtype: Any) -> None:
    limits = ml_dtypes.finfo(dtype)
    eps, least, most = (float(each) for each in (limits.eps, limits.smallest_subnormal, limits.max))
    values = np.array([1.0, 0.1, 1.0, most, most, NAN, INF, 0.0, 2 * most])
    errors = np.array([0.0, 0.0, 0.5, 0.0, most * eps, 0.0, 0.0, 0.0, 0.0])
    with np.errstate(all="ignore"):
        found = spread(values, errors, DOUBLE, facts=Facts(0.25, 0.5)).astype(dtype)
        rounded = eps / 2 * (np.where(np.isfinite(values), np.abs(values), 0) + errors) + least
    kept = np.array([True, False, False, True, False, True, True, True, False])
    assert found.error[:-1] == pytest.approx(np.where(kept, 0, errors + rounded)[:-1])
    assert fields(found)["overflow"].tolist() == [False] * 4 + [True] + [False] * 3 + [True]
    assert found.facts == Facts(0.25, 0.0)
    assert spread([1.0], precision=DOUBLE, facts=Facts(0.25, -INF)).astype(dtype).facts.least == -INF
    assert fields(spread([1.0, 2.0], 0.0, DOUBLE, overflow=[True, False]).astype(dtype))["overflow"].tolist() == [
        True,
        False,
    ]


def test_a_format_that_is_not_narrower_changes_nothing() -> None:
    x = drawn(3)
    for dtype in (np.float32, np.float64):
        found = x.astype(dtype)
        assert found is not x
        assert all(np.array_equal(fields(found)[name], field) for name, field in fields(x).items())
        assert found.facts == x.facts
        assert found.facts is not x.facts
    half = Precision.of(np.dtype(np.float16), np.dtype(np.float16))
    assert spread([0.1], precision=half).astype(ml_dtypes.bfloat16).error > 0, "of fewer digits"
    brain = Precision.of(np.dtype("bfloat16"), np.dtype("bfloat16"))
    assert fields(spread([1e30], precision=brain).astype(np.float16))["overflow"].all(), "of a smaller range"


def test_whole_numbers_of_what_no_rounding_decides() -> None:
    assert spread([1.7, -1.7]).astype(np.int64).tolist() == [1, -1]
    assert spread([1.0, 0.0]).astype(bool).tolist() == [True, False]
    assert spread([200.0]).astype(np.uint8).dtype == np.uint8
    for x in (spread([1.5], [0.1]), spread([1.5], overflow=[True])):
        with pytest.raises(TypeError, match="rounding decides these whole numbers: they have no bound"):
            x.astype(int)
    with pytest.raises(TypeError, match=r"the method astype\(complex128\) of arrays has no bound"):
        spread([1.0]).astype(complex)


def test_what_arrays_say_of_themselves() -> None:
    x = spread(np.arange(6.0).reshape(2, 3), 0.5)
    assert (x.shape, x.ndim, x.size, len(x), x.dtype) == ((2, 3), 2, 6, 2, np.float32)
    assert (np.shape(x), np.ndim(x), np.size(x)) == ((2, 3), 2, 6)
    assert repr(spread([1.0], [0.5])) == "Bounded(array([1.]), within array([0.5]))"
    assert [each.value.tolist() for each in x] == x.value.tolist()
    for name in METHODS:
        assert callable(getattr(x, name))
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = x.no_such_thing
    with pytest.raises(AttributeError, match="__array_interface__"):
        _ = x.__array_interface__
    with pytest.raises(TypeError, match=f"the method tobytes of arrays {NO_BOUND}"):
        x.tobytes()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (np.fft.fft, f"np.fft.fft {NO_BOUND}"),
        (np.arcsin, f"np.arcsin {NO_BOUND}"),
        (np.logaddexp.reduce, f"np.logaddexp.reduce {NO_BOUND}"),
        (lambda x: np.sum(x, where=True), f"np.sum with where {NO_BOUND}"),
        (lambda x: np.sum(x, where=True, initial=2), f"np.sum with where, initial {NO_BOUND}"),
        (lambda x: np.trace(x, 1), f"np.trace with 2 arguments {NO_BOUND}"),
        (
            lambda x: np.pad(x, 1, "constant", constant_values=1),
            f"np.pad with mode 'constant', or with other constants than 0, {NO_BOUND}",
        ),
        (
            lambda x: np.pad(x, 1, "linear_ramp"),
            f"np.pad with mode 'linear_ramp', or with other constants than 0, {NO_BOUND}",
        ),
        (lambda x: np.linalg.norm(x, ord=3), f"np.linalg.norm with ord=3 {NO_BOUND}"),
        (lambda x: np.linalg.norm(x, ord=1), f"np.linalg.norm with ord=1 {NO_BOUND}"),
        (lambda x: np.linalg.norm(x, ord=np.inf), f"np.linalg.norm with ord=inf {NO_BOUND}"),
        (lambda x: np.linalg.norm(x, ord=2), f"np.linalg.norm with ord=2 {NO_BOUND}"),
        (lambda x: np.linalg.norm(x, 1, axis=(0, 1)), f"np.linalg.norm with ord=1 {NO_BOUND}"),
        (lambda x: np.linalg.norm(x, 2, axis=(0, 1)), f"np.linalg.norm with ord=2 {NO_BOUND}"),
        (lambda x: np.average(x, axis=0, weights=[1.0, 2.0]), f"np.average with weights of another shape {NO_BOUND}"),
        (
            lambda x: np.add(x, x, out=np.zeros((2, 2))),
            "the result of np.add has a bound, and goes to an array without: np.zeros_like",
        ),
        (lambda x: np.divmod(x, x, out=(np.zeros((2, 2)), x.copy())), f"np.divmod {NO_BOUND}"),
        (lambda x: np.add.at(np.zeros(2), [0], x[0]), "np.add.at to an array without a bound: np.zeros"),
        (float, "a number of Python or NumPy cannot hold one with a bound: np.zeros_like"),
        (np.array, r"an array without a bound, as np.array\(\) gives, cannot hold one with a bound: np.zeros_like"),
    ],
)
def test_refusals_name_what_has_no_bound(function: Any, message: str) -> None:
    with pytest.raises(TypeError, match=f"^{message}"):
        function(spread([[1.0, 2.0], [3.0, 4.0]]))
