"""What is made, written into and added to in place: whose memory it is, and what stays open."""

from __future__ import annotations

import gc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from open_sums import drawn, fields, spread

from py_backends.bounds.array import Bounded, Facts, lifted, shared
from py_backends.bounds.precision import LARGEST_STEP

INF = np.inf


@pytest.mark.parametrize(
    ("make", "right"),
    [
        (lambda x: np.zeros(3, like=x), [0, 0, 0]),
        (lambda x: np.ones(2, like=x), [1, 1]),
        (lambda x: np.full(2, 7.0, like=x), [7, 7]),
        (lambda x: np.array([1.0, 2.0], like=x), [1, 2]),
        (lambda x: np.asarray([1.0, 2.0], like=x), [1, 2]),
        (lambda x: np.arange(3, like=x), [0, 1, 2]),
        (lambda x: np.eye(2, like=x), [[1, 0], [0, 1]]),
        (lambda x: np.identity(2, like=x), [[1, 0], [0, 1]]),
        (np.zeros_like, [[0, 0], [0, 0]]),
        (np.empty_like, [[0, 0], [0, 0]]),
        (np.ones_like, [[1, 1], [1, 1]]),
        (lambda x: np.full_like(x, 2.0), [[2, 2], [2, 2]]),
        (lambda x: np.zeros_like(x, shape=(1, 2)), [[0, 0]]),
        (lambda x: np.ones_like(x, shape=2), [1, 1]),
        (lambda x: np.full_like(x, 2.0, shape=(3,)), [2, 2, 2]),
        (np.copy, [[1, 2], [3, 4]]),
    ],
)
def test_arrays_made_to_be_filled_are_arrays_of_their_own(make: Any, right: Any) -> None:
    x = spread([[1.0, 2.0], [3.0, 4.0]])
    made = make(x)
    assert made.value.tolist() == right
    assert made.fresh
    view = made[0:1]
    made[...] = 9.0
    assert (view.value == 9.0).all(), "a view of the same memory"
    assert x.value.tolist() == [[1, 2], [3, 4]]
    zeros = np.zeros_like(x)
    assert (zeros.terms == 0).all()
    assert zeros.facts == Facts(LARGEST_STEP, 0.0)
    for function in (np.zeros_like, np.ones_like):
        assert function(x, dtype=np.int32).dtype == np.int32
        assert function(x, dtype=bool, shape=3).shape == (3,)
        assert isinstance(function(x, dtype=np.float32), Bounded)
    assert np.full_like(x, 3, dtype=np.int8).tolist() == [[3, 3], [3, 3]]


def test_a_constant_that_fills_may_be_rounded_once() -> None:
    x = spread([1.0, 2.0])
    assert np.full_like(x, 0.1).closed().error == pytest.approx(0.1 * (2.0**-24 + 2.0**-53))
    assert np.full_like(x, spread(2.0, 0.5)).error == pytest.approx(0.5)
    assert np.full(2, 0.5, like=x).closed().error.max() == 0


def test_what_is_assigned_is_closed_and_the_rest_stays() -> None:
    x, y = drawn(4, seed=1, least=0.5, step=0.5), drawn(2, seed=2, least=0.25, step=0.25)
    before, closed = x.copy().closed(), y.closed()
    made = x.copy()
    made[1:3] = y
    assert made.value.tolist() == [before.value[0], *y.value, before.value[3]]
    assert np.array_equal(fields(made)["error"][1:3], fields(closed)["error"])
    assert np.array_equal(fields(made)["error"][[0, 3]], fields(before)["error"][[0, 3]])
    assert np.array_equal(fields(made)["overflow"][1:3], fields(closed)["overflow"])
    assert (fields(made)["terms"] == 1).all()
    assert (fields(made)["roundings"] == 0).all()
    assert made.facts.step == 0.25
    assert made.facts.least == 0.25
    assert made.facts.closed
    assert made.closed().of_one_term()
    assert lifted(made)[0] is not made
    made[0] = -7.0
    assert made.facts.least == -INF
    made[...] = 0.125
    assert made.facts.step == 0.125
    made[0] = np.array([[3.0]])
    assert made.value[0] == 3.0


def test_what_is_added_in_place_stays_open() -> None:
    made = np.zeros(3, like=spread(1.0))
    for _ in range(3):
        made += spread([1.0, 2.0, 3.0], facts=Facts(0.5, 0.25))
    assert fields(made)["terms"].tolist() == [3, 3, 3]
    assert made.facts.step == 0.5
    made[0] += spread(1.0)
    assert fields(made)["terms"].tolist() == [4, 3, 3]
    made[0:2] += spread([1.0, 1.0])
    assert fields(made)["terms"].tolist() == [5, 4, 3]
    made[0] = 5.0
    assert fields(made)["terms"].tolist() == [1, 4, 3]
    row = made[1:]
    row += 1.0
    assert made.value.tolist() == [5, 2 * 3 + 1 + 1, 3 * 3 + 1]
    assert fields(made)["terms"].tolist() == [1, 5, 4]
    assert made.closed().terms == 1


def test_facts_of_what_is_written_in_place_are_those_of_both() -> None:
    made = np.ones(3, like=spread(1.0))
    made.make_writable()
    assert made.facts.closed
    np.add(made, spread([1.0, 2.0, 3.0], facts=Facts(0.25, -INF)), out=made)
    assert made.facts == Facts(0.25, -INF, False)
    assert fields(made)["terms"].tolist() == [2, 2, 2]
    np.maximum(made, 0.0, out=made)
    assert made.facts.step == 0.25
    kept = np.ones(3, like=spread(1.0))
    kept.make_writable()
    np.maximum(kept, 2.0, out=kept)
    assert kept.facts.closed, "each is one term still"
    with pytest.raises(ValueError, match="broadcast"):
        np.add(spread([1.0]), [1.0, 2.0], out=spread([1.0]))
    x = spread([1.0, 2.0])
    before = x
    x += 1.0
    assert x is before
    assert x.value.tolist() == [2, 3]
    y = drawn(3, seed=4)
    z = drawn(3, seed=5)
    z.become(y)
    assert all(np.array_equal(fields(z)[name], field) for name, field in fields(y).items())
    assert z.facts == y.facts
    z.facts.step = 7.0
    assert y.facts.step == 0.25
    z.become(np.array([1.0, 2.0, 3.0]))
    assert z.value.tolist() == [1, 2, 3]


def test_what_has_views_or_is_one_is_not_changed() -> None:
    x = spread([1.0, 2.0, 3.0])
    views = [x[1:]]
    for changed in (x, views[0]):
        for change in (lambda of=changed: of.__setitem__(0, 1.0), lambda of=changed: of.__iadd__(1.0)):
            with pytest.raises(TypeError, match=r"an array that has views, or is one, are changed: change a np.copy"):
                change()
    views.clear()
    del changed, change
    gc.collect()
    x[0] = 9.0
    assert x.value.tolist() == [9, 2, 3]
    taken = x[np.array([0, 1])]
    taken[0] = 4.0
    assert x.value.tolist() == [9, 2, 3]
    assert taken.value.tolist() == [4, 2]
    taken.facts.step = 0.125
    assert x.facts.step != 0.125


def test_copies_have_their_own_memory() -> None:
    x = drawn(3)
    x.make_writable()
    for made in (shared(x), x.copy(), np.copy(x), x.flatten()):
        assert not any(
            np.shares_memory(getattr(made, name), getattr(x, name)) for name in ("value", "error", "overflow")
        )
        made[0] = 100.0
        assert x.value[0] != 100.0
    assert np.array_equal(x.copy().error, x.closed().error)
    assert x.copy().facts.step == x.facts.step


def test_sums_that_are_written_are_not_taken_for_closed() -> None:
    x = drawn(3)
    x.make_writable()
    assert not x.facts.closed
    assert np.array_equal(x.closed().error, drawn(3).closed().error)
    assert lifted(x)[0] is x
    one = spread([1.0, 2.0], 0.5)
    one.make_writable()
    assert one.facts.closed
    assert fields(one)["error"].tolist() == [0.5, 0.5]
    assert one.without_sums().error.tolist() == [0.5, 0.5]
    assert replace(one.facts) == Facts(0.0, -INF, True)


def test_elements_of_a_view_alone_are_the_same_elements() -> None:
    """`a[i:j] += x` assigns the view to itself; a view of others is assigned as any numbers are."""
    made = np.ones((2, 3), like=spread(1.0)) + spread([1.0, 1.0, 1.0])
    made = made.copy()
    made += 1.0
    made[0] = made[1]
    assert fields(made)["terms"].tolist() == [[1, 1, 1], [2, 2, 2]]
    square = np.zeros((2, 2), like=spread(1.0))
    square += 1.0
    square += 1.0
    square[...] = square.T
    assert (fields(square)["terms"] == 1).all()
    row = square[0:1]
    row += 1.0
    square[0:1] = row
    assert fields(square)["terms"].tolist() == [[2, 2], [1, 1]]
