"""Order and choice: what rounding may decide is unsure, and nothing else is."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from open_sums import SINGLE, drawn, fields, spread

from py_backends.bounds.array import FIELDS, Bounded, Facts
from py_backends.bounds.choices import Undecided

INF, NAN = np.inf, np.nan
COMPARISONS = (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal)


def answers(found: Any) -> tuple[Any, Any]:
    """As they are found, and which of them are unsure."""
    return (found.value, found.unsure) if isinstance(found, Undecided) else (found, np.zeros(np.shape(found), bool))


@pytest.mark.parametrize("compare", COMPARISONS, ids=lambda each: each.__name__)
def test_a_comparison_is_sure_where_all_numbers_within_the_errors_compare_alike(compare: Any) -> None:
    grid = list(product((0.0, 1.0, 2.0, -1.0, INF, NAN), (0.0, 0.5, 1.0), repeat=2))
    values, errors, others, of_others = (np.array(each) for each in zip(*grid, strict=True))
    errors, of_others = np.where(np.isfinite(values), errors, 0), np.where(np.isfinite(others), of_others, 0)
    value, unsure = answers(compare(spread(values, errors), spread(others, of_others)))
    assert np.array_equal(value, compare(values, others))
    shifts = product(np.linspace(-1, 1, 9), repeat=2)
    seen = [compare(values + p * errors, others + q * of_others) for p, q in shifts]
    moves = np.any(seen != value[None], axis=0)
    with np.errstate(invalid="ignore"):
        touch = (errors + of_others > 0) & (np.abs(values - others) <= errors + of_others)
    assert np.array_equal(unsure, touch)
    assert not (moves & ~unsure).any()


def test_margins_that_touch_but_for_a_rounding_of_the_margin_are_unsure() -> None:
    assert answers(spread([1.0]) > spread([0.0], [1 - 2.0**-52]))[1].all()
    assert not answers(spread([1.0]) > spread([0.0], [1 - 2.0**-40]))[1].any()


def test_what_may_overflow_compares_with_nothing() -> None:
    x = spread([1.0, 1.0], overflow=[True, False])
    for found in (x > 0.0, x > 0.0, x == 1.0, np.isfinite(x), np.isnan(x), np.isinf(x)):
        assert answers(found)[1].tolist() == [True, False]
    assert np.isnan(spread([1.0, NAN])).tolist() == [False, True]
    assert np.isinf(spread([1.0, -INF], [1.0, 0.0])).tolist() == [False, True]
    assert np.isfinite(spread([1.0, -INF])).tolist() == [True, False]


def mixed() -> Undecided:
    """Whether these are positive: unsure twice, then yes and no."""
    return spread([0.0, 0.5, 2.0, -2.0], [1.0, 1.0, 1.0, 1.0]) > 0.0


@pytest.mark.parametrize("plain", [False, True])
def test_what_decides_alone_makes_the_other_answer_count_for_nothing(plain: bool) -> None:
    """Of False, maybe (No), maybe (Yes) and True, each beside each."""
    states = [(False, False), (False, True), (True, True), (True, False)]
    pairs = [(p, q) for p, q in product(states, repeat=2) if not (plain and q[1])]
    p, unsure_p, q, unsure_q = (np.array([each[i][j] for each in pairs]) for i in (0, 1) for j in (0, 1))
    one, other = Undecided(SINGLE, p, unsure_p, "one"), Undecided(SINGLE, q, unsure_q, "other")
    beside: Any = q if plain else other
    for function, either in ((np.logical_and, np.bitwise_and), (np.logical_or, np.bitwise_or)):
        worlds = [function(p ^ (unsure_p & a), q ^ (unsure_q & b)) for a in (False, True) for b in (False, True)]
        right = np.any(np.array(worlds) != worlds[0], axis=0)
        for found in (function(one, beside), function(beside, one), either(one, beside), either(beside, one)):
            value, unsure = answers(found)
            assert np.array_equal(value, function(p, q))
            assert np.array_equal(unsure, right)
    value, unsure = answers(~one)
    assert np.array_equal(value, ~p)
    assert np.array_equal(unsure, unsure_p)
    assert np.array_equal(answers(np.logical_not(one))[0], ~p)


def test_numbers_are_answers_too_where_they_are_not_zero() -> None:
    x = spread([0.0, 2.0, 0.5], [0.0, 1.0, 1.0])
    value, unsure = answers(np.logical_and(x, np.array([True, True, True])))
    assert value.tolist() == [False, True, True]
    assert unsure.tolist() == [False, False, True]
    assert answers(np.logical_not(x))[0].tolist() == [True, False, False]


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("function", [np.any, np.all])
def test_one_sure_answer_decides_of_many(function: Any, axis: Any) -> None:
    generator = np.random.default_rng(1)
    for _ in range(40):
        value, unsure = generator.random((2, 3, 2)) < 0.4
        unsure[0, 0] = True
        given = Undecided(SINGLE, value, unsure, "it")
        worlds = [value | unsure, value & ~unsure]
        right = function(worlds[0], axis=axis) != function(worlds[1], axis=axis)
        found = [function(given, axis=axis), getattr(given, function.__name__)(axis=axis)]
        for each, doubt in map(answers, found):
            assert np.array_equal(each, function(value, axis=axis))
            assert np.array_equal(doubt, right)
    sure = function(spread([[1.0, 0.0], [2.0, 3.0]]), axis=axis)
    assert np.array_equal(sure, function([[1.0, 0.0], [2.0, 3.0]], axis=axis))


def test_answers_are_numbers_one_and_zero() -> None:
    given = mixed()
    numbers = given.as_numbers()
    assert numbers.value.tolist() == [0, 1, 1, 0]
    assert numbers.error.tolist() == [1, 1, 0, 0]
    assert numbers.facts == Facts(1.0, 0.0)
    assert given.sum().value == np.sum(given).value == 2
    assert np.sum(given).error == 2
    assert given.shape == (4,)
    assert (given * 2.0).error.tolist() == [2, 2, 0, 0]
    count = np.count_nonzero(given)
    assert (count.value, count.error) == (2, 2)
    assert np.count_nonzero(spread([[1.0, 0.0], [2.0, 3.0]]), axis=1).tolist() == [1, 2]
    assert np.count_nonzero(spread([0.5, 2.0], [1.0, 1.0])).error == 1
    assert given[2]
    assert answers(given[1:3])[1].tolist() == [True, False]
    assert isinstance(given[2:], np.ndarray)


@pytest.mark.parametrize(
    "function",
    [
        *(bool, np.asarray, lambda x: x.astype(int), lambda x: x.tolist(), np.nonzero, np.where, np.abs, np.max),
        *(np.negative, np.flip, np.transpose, np.trace, np.median, np.diag, np.triu, np.atleast_2d),
        *(lambda x: np.reshape(x, (2, 2)), lambda x: np.roll(x, 1), lambda x: np.repeat(x, 2), lambda x: np.take(x, 3)),
    ],
)
def test_unsure_answers_are_refused_with_their_number(function: Any) -> None:
    with pytest.raises(TypeError, match=r"rounding decides np.greater for 2 of 4 elements: np.where\(\) covers both"):
        function(mixed())


@pytest.mark.parametrize(
    "function",
    [
        *(np.positive, np.exp, np.sqrt, np.log1p, np.floor, np.sign, np.square, np.isnan, np.logical_not),
        *(np.sum, np.cumsum, np.prod, np.count_nonzero, np.round, np.linalg.norm),
        *(lambda x: x + x, lambda x: 2 - x, lambda x: x * x, lambda x: x / 3, lambda x: x**0.5, lambda x: x**2),
        *(lambda x: np.hypot(x, 1.5), lambda x: np.maximum(x, 0.5), lambda x: np.dot(x, x), lambda x: x < 0.5),
    ],
)
def test_answers_are_the_numbers_0_and_1(function: Any) -> None:
    """Where NumPy takes them for these, as functions and operators do."""
    found, right = function(mixed()), function(mixed().as_numbers())
    if isinstance(right, Bounded):
        assert all(np.array_equal(fields(found)[name], fields(right)[name]) for name in FIELDS)
    else:
        assert all(np.array_equal(*each) for each in zip(answers(found), answers(right), strict=True))


def test_what_answers_do_not_have_is_missed_as_elsewhere() -> None:
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = mixed().no_such_thing
    with pytest.raises(TypeError, match="an iteration over Undecided has no bound"):
        list(mixed())
    with pytest.raises(TypeError, match=r"rounding decides a comparison for 4 of 4"):
        bool(mixed() & (spread([1.0] * 4, [2.0] * 4) > 0) | (spread([1.0] * 4, [2.0] * 4) > 0))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_where_nothing_is_unsure_each_has_the_fields_of_its_own(count: int) -> None:
    x, y = drawn(count, seed=1), drawn(count, seed=2)
    for answers in (np.arange(count) % 2 == 0, np.arange(count) % 2 == 1):
        found = fields(np.where(answers, x, y))
        for name in FIELDS:
            assert np.array_equal(found[name], np.where(answers, fields(x)[name], fields(y)[name])), name


def test_where_rounding_decides_either_number_is_right() -> None:
    x = spread([1.0, 1.0, 1.0, 1.0], [0.25, 0.25, 0.25, 0.25], facts=Facts(0.5, 0.75))
    y = spread([3.0, 3.0, 3.0, 3.0], [0.5, 0.5, 0.5, 0.5], facts=Facts(0.25, 2.0))
    found = np.where(mixed(), x, y)
    assert found.value.tolist() == [3, 1, 1, 3]
    assert found.error.tolist() == [2.25, 2.5, 0.25, 0.5]
    assert found.facts == Facts(0.25, 0.75)
    assert not found.overflow.any()
    same = np.where(mixed(), x, spread([1.0] * 4, [0.5] * 4))
    assert same.error.tolist() == [0.5, 0.5, 0.25, 0.5]
    spoilt = np.where(mixed(), spread([1.0] * 4, overflow=[True] * 4), 1.0)
    assert fields(spoilt)["overflow"].tolist() == [True, True, True, False]
    spoilt = np.where(mixed(), 1.0, spread([1.0] * 4, overflow=[True] * 4))
    assert fields(spoilt)["overflow"].tolist() == [True, True, False, True]
    with np.errstate(all="ignore"):
        infinite = np.where(mixed(), INF, np.array([1.0, 1.0, 1.0, INF]))
    assert np.isinf(infinite.error).tolist() == [True, True, False, False]
    assert fields(infinite)["overflow"].tolist() == [True, True, False, False]
    assert not np.where(mixed(), INF, INF).overflow.any()


def test_where_nothing_is_unsure_sums_stay_open() -> None:
    x, y = drawn(3, seed=1), drawn(3, seed=2)
    found, condition = np.where(x.value > 0, x, y), x.value > 0
    for name, field in fields(found).items():
        assert np.array_equal(field, np.where(condition, fields(x)[name], fields(y)[name]))
    assert np.where(spread([1.0, 0.0, 2.0]), x, y).terms.tolist() == np.where([1, 0, 1], x.terms, y.terms).tolist()
    assert [each.tolist() for each in np.where(spread([1.0, 0.0, 2.0]))] == [[0, 2]]
    assert [each.tolist() for each in np.nonzero(spread([[1.0, 0.0, 2.0]]))] == [[0, 0], [0, 2]]
    one = np.where(np.array([[True], [False]]), spread([1.0, 2.0]), spread(3.0))
    assert one.value.tolist() == [[1, 2], [3, 3]]


PAIRS = list(product((0.0, 1.0, 2.0, -3.0), (0.0, 0.5, 1.0, 4.0), repeat=2))


@pytest.mark.parametrize(
    ("function", "sign"), [(np.maximum, 1), (np.fmax, 1), (np.minimum, -1), (np.fmin, -1)], ids=str
)
def test_of_two_what_may_win_counts_with_its_error(function: Any, sign: int) -> None:
    a, e, b, f = (np.array(each) for each in zip(*PAIRS, strict=True))
    found = function(spread(a, e), spread(b, f))
    lead = sign * (a - b)
    right = np.where(lead > e + f, e, np.where(lead < -e - f, f, np.maximum(e, f)))
    assert np.array_equal(found.error, right)
    assert np.array_equal(found.value, function(a, b))
    for leasts in product((-INF, 0.0, 0.5), repeat=2):
        x, y = (spread([1.0, 2.0], facts=Facts(step, least)) for step, least in zip((0.5, 0.25), leasts, strict=True))
        assert function(x, y).facts == Facts(0.25, max(leasts) if sign > 0 else min(leasts))
    spoilt = function(spread([1.0, 2.0], overflow=[True, False]), spread([5.0, 6.0], overflow=[False, False]))
    assert fields(spoilt)["overflow"].tolist() == [True, False]
    assert fields(spoilt)["error"].tolist() == [INF, 0]
    swapped = function(spread([5.0, 6.0]), spread([1.0, 2.0], overflow=[True, False]))
    assert fields(swapped)["overflow"].tolist() == [True, False]


@pytest.mark.parametrize(("axis", "keepdims"), [(None, False), (0, False), (-1, True), ((0, 1), True), ([0, 1], False)])
@pytest.mark.parametrize("name", ["max", "min"])
def test_of_many_what_may_win_counts_with_its_error(name: str, axis: Any, keepdims: bool) -> None:
    generator = np.random.default_rng(3)
    reduce, function, sign = (np.max, np.maximum, 1) if name == "max" else (np.min, np.minimum, -1)
    for _ in range(20):
        value, error = generator.integers(-4, 5, (2, 3)).astype(float), generator.integers(0, 4, (2, 3)) / 2
        x = spread(value, error, facts=Facts(0.5, 0.25))
        numpy_axis = tuple(axis) if isinstance(axis, list) else axis
        best = (sign * value - error).max(numpy_axis, keepdims=True)
        wins = sign * value + error >= best
        right = np.where(wins, error, 0.0).max(numpy_axis, keepdims=keepdims)
        for found in (
            reduce(x, axis=axis, keepdims=keepdims),
            function.reduce(x, axis=axis, keepdims=keepdims),
            getattr(x, name)(axis=axis, keepdims=keepdims),
        ):
            assert np.array_equal(found.value, reduce(value, numpy_axis, keepdims=keepdims))
            assert np.array_equal(found.error, right)
            assert found.facts == Facts(0.5, 0.25)
            assert not found.overflow.any()
    spoilt = reduce(spread([[1.0, 2.0], [3.0, 4.0]], overflow=[[True, False], [False, False]]), axis=1)
    assert fields(spoilt)["overflow"].tolist() == [True, False]
    assert fields(spoilt)["error"].tolist() == [INF, 0]
    assert function.reduce(drawn(2, 3)).shape == (3,)
    assert reduce(drawn(2, 3)).shape == ()


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_what_runs_along_keeps_what_may_overflow(name: str, axis: int) -> None:
    accumulate = getattr(np, name).accumulate
    x = spread([[1.0, 2.0, 0.0], [3.0, -4.0, 0.5]], 0.25, overflow=[[False, True, False], [False] * 3])
    found = accumulate(x, axis)
    spoilt = np.logical_or.accumulate(fields(x)["overflow"], axis)
    assert np.array_equal(found.overflow, spoilt)
    assert np.array_equal(np.isinf(found.error), spoilt)
    assert found.error[~spoilt] == pytest.approx(0.25)
    assert np.array_equal(found.value, accumulate(x.value, axis))
    assert accumulate(x).value.tolist() == accumulate(x.value).tolist()
    facts = accumulate(spread([1.0, 2.0], facts=Facts(0.5, 0.25))).facts
    assert facts == Facts(0.5, 0.25)


STEPS = (np.floor, np.ceil, np.trunc, np.rint, np.sign)


@pytest.mark.parametrize("function", STEPS, ids=lambda each: each.__name__)
def test_steps_are_as_far_as_either_end_of_the_interval(function: Any) -> None:
    values, errors = (np.array(each) for each in zip(*product(np.arange(-2, 2.1, 0.25), (0.0, 0.25, 0.6)), strict=True))
    found = function(spread(values, errors))
    slack = np.where(errors > 0, errors + 1e-12, 0)
    ends = np.abs(np.stack([function(values - slack), function(values + slack)]) - function(values)).max(0)
    assert np.array_equal(found.error, ends)
    assert np.array_equal(found.value, function(values))
    assert found.facts == Facts(1.0, -INF)
    assert function(spread([0.5], [0.1], facts=Facts(0.5, 0.0))).facts == Facts(1.0, 0.0)
    exact = function(spread([0.5, 1.5, -2.0]))
    assert not exact.error.any()
    spoilt = function(spread([0.5, 1.5], [0.0, 0.1], overflow=[True, False]))
    assert fields(spoilt)["overflow"].tolist() == [True, False]
    assert np.isinf(spoilt.error).tolist() == [True, False]


def test_rounding_to_whole_numbers_is_a_step_and_to_decimals_is_refused() -> None:
    assert np.round(spread([0.5, 1.6], [0.0, 0.2])).error.tolist() == [0, 1]
    assert spread([1.2]).round().value.tolist() == [1]
    with pytest.raises(TypeError, match=r"np.round with decimals has no bound"):
        np.round(spread([0.5]), 1)


@pytest.mark.parametrize("least", [-INF, -2.0, 0.0, 0.5])
def test_a_size_is_never_negative(least: float) -> None:
    for function in (np.abs, np.fabs):
        found = function(spread([-1.0, 2.0], [0.5, 3.0], overflow=[False, True], facts=Facts(0.5, least)))
        assert found.value.tolist() == [1, 2]
        assert found.error.tolist() == [0.5, 3]
        assert fields(found)["overflow"].tolist() == [False, True]
        assert found.facts == Facts(0.5, max(0.0, least))


def test_clipping_takes_either_name_of_its_ends() -> None:
    x = spread([-3.0, 0.5, 4.0], [0.25, 0.25, 0.25])
    assert np.clip(x, -1.0, 2.0).value.tolist() == x.clip(-1.0, 2.0).value.tolist() == [-1, 0.5, 2]
    assert np.clip(x, -1.0, 2.0).error.tolist() == [0, 0.25, 0]
    assert np.clip(x, min=-1.0, max=2.0).value.tolist() == [-1, 0.5, 2]
    assert np.clip(x, None, 2.0).value.tolist() == np.clip(x, max=2.0).value.tolist() == [-3, 0.5, 2]
    assert np.clip(x, 0.0, None).value.tolist() == np.clip(x, min=0.0).value.tolist() == [0, 0.5, 4]
    assert np.clip(x, 0.0, 2.0).facts.least == 0.0
