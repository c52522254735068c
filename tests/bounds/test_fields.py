"""What sums and moves make of the fields of open sums: each field goes the way that NumPy sends the elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from open_sums import SINGLE, drawn, fields, spread

from py_backends.bounds.array import Bounded, Facts

ADDED = ("value", "error", "magnitude", "terms", "losses")


def ways(function: Any, *shapes: tuple[int, ...]) -> list[Any]:
    """Of each operand, how often each element counts in each element of the result, as NumPy itself has it."""
    found = []
    for at, shape in enumerate(shapes):
        columns = []
        for place in range(int(np.prod(shape))):
            operands = [np.zeros(each) for each in shapes]
            operands[at].reshape(-1)[place] = 1
            columns.append(np.asarray(function(*operands)))
        found.append(np.stack(columns, -1))
    return found


def scattered(a: Any, b: Any) -> Any:
    made = a.copy()
    np.add.at(made, np.array([0, 2, 0]), b)
    return made


def scattered_once(b: Any) -> Any:
    made = np.zeros_like(b, shape=4)
    np.add.at(made, np.array([3, 0, 3]), b)
    return made


GRID, ROW, CUBE = (2, 3), (3,), (2, 3, 2)
SUMS: dict[str, tuple[Any, tuple[tuple[int, ...], ...]]] = {
    "add": (np.add, (GRID, GRID)),
    "add a row": (np.add, (GRID, ROW)),
    "add to a row": (np.add, (ROW, GRID)),
    "add a number": (np.add, (GRID, ())),
    "subtract": (np.subtract, (GRID, ROW)),
    "negative": (np.negative, (GRID,)),
    "positive": (np.positive, (GRID,)),
    "plus nothing": (lambda x: 0 + x + 0.0, (GRID,)),
    "the sum of Python": (lambda x: sum(list(x)), (GRID,)),
    "sum": (np.sum, (GRID,)),
    "sum of the last": (lambda x: np.sum(x, axis=-1), (GRID,)),
    "sum of two": (lambda x: np.sum(x, axis=(0, 2)), (CUBE,)),
    "sum that keeps": (lambda x: np.sum(x, 1, keepdims=True), (CUBE,)),
    "the method sum": (lambda x: x.sum(0), (GRID,)),
    "add.reduce": (np.add.reduce, (GRID,)),
    "add.reduce, keeps": (lambda x: np.add.reduce(x, axis=1, keepdims=True), (GRID,)),
    "cumsum": (np.cumsum, (GRID,)),
    "cumsum of the first": (lambda x: np.cumsum(x, 0), (GRID,)),
    "cumsum of the last": (lambda x: np.cumsum(x, axis=-1), (GRID,)),
    "add.accumulate": (np.add.accumulate, (GRID,)),
    "add.accumulate of the last": (lambda x: np.add.accumulate(x, -1), (GRID,)),
    "reduceat": (lambda x: np.add.reduceat(x, [0, 1]), (GRID,)),
    "reduceat of the last": (lambda x: np.add.reduceat(x, [0, 2], axis=-1), (GRID,)),
    "bincount": (lambda x: np.bincount(np.array([1, 4, 1]), x), (ROW,)),
    "bincount of many": (lambda x: np.bincount(np.array([1, 0, 1]), x, minlength=5), (ROW,)),
    "bincount beyond": (lambda x: np.bincount(np.array([1, 4, 1]), x, 2), (ROW,)),
    "add.at of nothing": (scattered_once, (ROW,)),
    "diff": (np.diff, (GRID,)),
    "diff of the first": (lambda x: np.diff(x, axis=0), (GRID,)),
    "diff of diff": (lambda x: np.diff(x, 2), (GRID,)),
    "trace": (np.trace, (GRID,)),
}
MOVES: dict[str, tuple[Any, tuple[tuple[int, ...], ...]]] = {
    "reshape": (lambda x: np.reshape(x, (3, 2)), (GRID,)),
    "the method reshape": (lambda x: x.reshape(3, 2), (GRID,)),
    "the method reshape by a tuple": (lambda x: x.reshape((3, -1)), (GRID,)),
    "the method reshape to one": (lambda x: x.reshape(-1), (GRID,)),
    "the method reshape in another order": (lambda x: x.reshape(6, order="F"), (GRID,)),
    "T": (lambda x: x.T, (GRID,)),
    "transpose": (lambda x: np.transpose(x, (2, 0, 1)), (CUBE,)),
    "the method transpose": (lambda x: x.transpose(2, 0, 1), (CUBE,)),
    "the method transpose by a tuple": (lambda x: x.transpose((1, 2, 0)), (CUBE,)),
    "the method transpose of all": (lambda x: x.transpose(), (CUBE,)),
    "flatten": (lambda x: x.flatten() if isinstance(x, np.ndarray) else np.ravel(x), (GRID,)),
    "ravel": (np.ravel, (GRID,)),
    "swapaxes": (lambda x: x.swapaxes(0, 1), (GRID,)),
    "moveaxis": (lambda x: np.moveaxis(x, 0, -1), (CUBE,)),
    "rollaxis": (lambda x: np.rollaxis(x, 2), (CUBE,)),
    "expand_dims": (lambda x: np.expand_dims(x, 1), (GRID,)),
    "squeeze": (np.squeeze, ((1, 3),)),
    "broadcast_to": (lambda x: np.broadcast_to(x, (2, 3)), (ROW,)),
    "flip": (np.flip, (GRID,)),
    "fliplr": (np.fliplr, (GRID,)),
    "flipud": (np.flipud, (GRID,)),
    "roll": (lambda x: np.roll(x, 1), (GRID,)),
    "roll along one": (lambda x: np.roll(x, 1, axis=1), (GRID,)),
    "rot90": (np.rot90, (GRID,)),
    "repeat": (lambda x: np.repeat(x, 2, axis=0), (GRID,)),
    "tile": (lambda x: np.tile(x, 2), (GRID,)),
    "take": (lambda x: np.take(x, [2, 0], axis=1), (GRID,)),
    "the method take": (lambda x: x.take([5, 0]), (GRID,)),
    "diagonal": (np.diagonal, (GRID,)),
    "diag": (np.diag, (ROW,)),
    "diagflat": (np.diagflat, (ROW,)),
    "triu": (np.triu, (GRID,)),
    "tril": (lambda x: np.tril(x, -1), (GRID,)),
    "split": (lambda x: np.concatenate(np.split(x, 3, axis=1)[::-1]), (GRID,)),
    "array_split": (lambda x: np.array_split(x, 2)[0], (ROW,)),
    "hsplit": (lambda x: np.hsplit(x, 3)[1], (GRID,)),
    "vsplit": (lambda x: np.vsplit(x, 2)[1], (GRID,)),
    "dsplit": (lambda x: np.dsplit(x, 2)[1], (CUBE,)),
    "delete": (lambda x: np.delete(x, 1, axis=1), (GRID,)),
    "take_along_axis": (lambda x: np.take_along_axis(x, np.array([[2], [0]]), 1), (GRID,)),
    "resize": (lambda x: np.resize(x, (2, 4)), (GRID,)),
    "windows": (lambda x: sliding_window_view(x, 2), (ROW,)),
    "concatenate": (lambda x, y: np.concatenate([x, y], axis=1), (GRID, GRID)),
    "stack": (lambda x, y: np.stack([x, y], 1), (GRID, GRID)),
    "hstack": (lambda x, y: np.hstack([x, y]), (GRID, GRID)),
    "vstack": (lambda x, y: np.vstack([x, y]), (GRID, ROW)),
    "dstack": (lambda x, y: np.dstack([x, y]), (GRID, GRID)),
    "column_stack": (lambda x, y: np.column_stack([x, y]), (ROW, ROW)),
    "append": (np.append, (GRID, ROW)),
    "append along one": (lambda x, y: np.append(x, y, axis=0), (GRID, GRID)),
    "atleast_1d": (np.atleast_1d, ((),)),
    "atleast_2d": (np.atleast_2d, (ROW,)),
    "atleast_3d": (np.atleast_3d, (GRID,)),
    "pad": (lambda x: np.pad(x, 1), (GRID,)),
    "pad at the edge": (lambda x: np.pad(x, ((0, 1), (2, 0)), "edge"), (GRID,)),
    "pad around": (lambda x: np.pad(x, 1, "wrap"), (GRID,)),
    "pad by reflection": (lambda x: np.pad(x, 1, "reflect"), (GRID,)),
    "pad by symmetry": (lambda x: np.pad(x, 1, "symmetric"), (GRID,)),
    "a row": (lambda x: x[1], (GRID,)),
    "an element": (lambda x: x[1, 2], (GRID,)),
    "by places": (lambda x: x[np.array([1, 0]), [2, 2]], (GRID,)),
    "by a mask": (lambda x: x[np.array([True, False, True])], (ROW,)),
    "backwards": (lambda x: x[..., ::-1], (GRID,)),
    "another dimension": (lambda x: x[:, None], (ROW,)),
    "rows one by one": (lambda x: np.stack(list(x)[::-1]), (GRID,)),
    "where": (lambda x, y: np.where(np.array([True, False, True]), x, y), (GRID, GRID)),
    "where of a row": (lambda x, y: np.where(np.array([[True], [False]]), x, y), (ROW, GRID)),
}


def operands_of(shapes: tuple[tuple[int, ...], ...], kind: str, least: float = -np.inf) -> list[Bounded]:
    made = [
        drawn(*shape, seed=at, constant=kind == "constant", least=least, step=2.0 ** -(2 + at))
        for at, shape in enumerate(shapes, 3)
    ]
    if kind == "written":
        for each in made:
            each.make_writable()
    return made


@pytest.mark.parametrize("kind", ["whole", "constant", "written"])
@pytest.mark.parametrize("name", SUMS | MOVES)
def test_fields_go_where_the_elements_go(name: str, kind: str) -> None:
    """Sums add all but the roundings, of which the most count, and the overflow, which spoils all that it is in."""
    function, shapes = (SUMS | MOVES)[name]
    operands = operands_of(shapes, kind)
    result = function(*operands)
    found, parts, given = fields(result), ways(function, *shapes), [fields(each) for each in operands]
    assert np.array_equal(found["value"], function(*(each.value for each in operands)))
    each_way = list(zip(parts, given, strict=True))
    right = {name: sum(np.abs(part) @ of[name].reshape(-1) for part, of in each_way) for name in ADDED[1:]}
    most = [((part != 0) * of["roundings"].reshape(-1)).max(-1) for part, of in each_way]
    spoilt = [((part != 0) & of["overflow"].reshape(-1)).any(-1) for part, of in each_way]
    right |= {"roundings": np.max(most, axis=0), "overflow": np.any(spoilt, axis=0)}
    # A constant stays one also where zeros are put beside, which makes their bounds wider alone.
    counted = np.any([(part != 0).any(-1) for part in parts], axis=0) | (kind != "constant")
    for field, expected in right.items():
        assert np.array_equal(found[field][counted], expected[counted]), field
        assert (found[field] >= expected).all(), field
    assert result.facts.step == min(each.facts.step for each in operands)


@pytest.mark.parametrize("least", [-np.inf, 0.0, 0.25])
@pytest.mark.parametrize("name", SUMS | MOVES)
def test_what_is_known_to_be_positive_stays_so_unless_it_is_subtracted(name: str, least: float) -> None:
    function, shapes = (SUMS | MOVES)[name]
    operands = operands_of(shapes, "whole", least)
    known, parts = function(*operands).facts.least, ways(function, *shapes)
    if least < 0 or min(part.min() for part in parts) < 0:
        assert known == -np.inf
    else:
        smallest = sum(part.sum(-1) for part in parts).min() * least
        assert 0 <= known <= smallest


@pytest.mark.parametrize("places", [(), (0,), (1,)])
def test_one_term_that_may_be_negative_is_enough(places: tuple[int, ...]) -> None:
    operands = [drawn(3, seed=at, least=-np.inf if at in places else 0.5 + at) for at in (0, 1)]
    right = -np.inf if places else 0.99 * 2.0
    assert np.add(*operands).facts.least == right
    assert np.concatenate(operands).facts.least == (-np.inf if places else 0.0)
    assert np.where([True, False, True], *operands).facts.least == (-np.inf if places else 0.5)


def test_arrays_with_other_constants_keep_each_its_own() -> None:
    one, other = drawn(2, seed=1, constant=True), drawn(3, seed=2, constant=True)
    found = fields(np.concatenate([one, other]))
    for name, right in fields(one).items():
        assert np.array_equal(found[name], np.concatenate([right, fields(other)[name]]))


def test_scattered_additions_keep_what_there_was() -> None:
    """What np.add.at finds is closed by the copy, and then one term beside those that are added."""
    a, b = drawn(4, seed=1, step=0.5), drawn(3, seed=2)
    made = scattered(a, b)
    before, after, added = fields(a.copy()), fields(made), fields(b)
    for name in ADDED:
        right = before[name].copy()
        np.add.at(right, [0, 2, 0], added[name])
        assert np.array_equal(after[name], right), name
    most, spoilt = before["roundings"], before["overflow"].copy()
    np.maximum.at(most, [0, 2, 0], added["roundings"])
    np.logical_or.at(spoilt, [0, 2, 0], added["overflow"])
    assert np.array_equal(after["roundings"], most)
    assert np.array_equal(after["overflow"], spoilt)
    assert made.facts.step == 0.25
    assert made.facts.least == -np.inf
    assert not made.facts.closed


def test_plain_numbers_are_scattered_too() -> None:
    made = np.zeros(3, like=drawn(1))
    np.add.at(made, [0, 2, 0], 1.0)
    assert made.value.tolist() == fields(made)["terms"].tolist() == [2, 0, 1]


@pytest.mark.parametrize("leasts", [(1.0, 2.0), (1.0, -np.inf), (-np.inf, 1.0)])
def test_scattered_additions_know_signs(leasts: tuple[float, float]) -> None:
    a, b = (drawn(size, seed=size, least=least) for size, least in zip((4, 3), leasts, strict=True))
    assert scattered(a, b).facts.least == (0.0 if min(leasts) >= 0 else -np.inf)


def test_counts_of_nothing_are_zeros_of_no_terms() -> None:
    weights = drawn(0)
    found = np.bincount(np.zeros(0, int), weights, 3)
    assert found.value.tolist() == [0, 0, 0]
    assert fields(found)["terms"].tolist() == [0, 0, 0]
    assert np.bincount(np.array([1.0, 0.0, 1.0]).astype(int), drawn(3)).shape == (2,)
    by_bounds = np.bincount(Bounded(SINGLE, [2.0, 0.0, 2.0]), drawn(3))
    assert by_bounds.shape == (3,)


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("shape", [(4, 8), (3, 5)])
def test_a_mean_is_a_closed_quotient_of_the_sum(axis: Any, keepdims: bool, shape: tuple[int, ...]) -> None:
    a = drawn(*shape, least=0.0)
    count = a.size // np.sum(np.ones(shape), axis, keepdims=True).size
    found, right = np.mean(a, axis, keepdims=keepdims), (np.sum(a, axis, keepdims=keepdims) / count).closed()
    assert found.of_one_term()
    assert np.allclose(found.value, a.value.mean(axis, keepdims=keepdims))
    for name, field in fields(right).items():
        assert np.array_equal(fields(found)[name], field), name
    assert found.facts == right.facts


def test_an_axis_that_is_not_there_is_an_error_of_numpy() -> None:
    sums = np.sum, np.mean, np.var, np.cumsum, np.add.accumulate, np.add.reduce, np.diff, np.prod
    others = np.max, np.maximum.accumulate, np.sort, np.argsort, np.argmax, np.median, np.flip
    for function in (*sums, *others):
        with pytest.raises(np.exceptions.AxisError, match="axis 1"):
            function(drawn(3), axis=1)


def test_minus_zero_and_zero_are_zero() -> None:
    for found in (spread([-0.0]) + 0, 0.0 + spread([-0.0])):
        assert not np.signbit(found.value).any()
        assert found.closed().error == 0


def test_nothing_overflows_in_a_sum_of_nothing() -> None:
    empty = Bounded(SINGLE, np.zeros((2, 0)), overflow=True, facts=Facts(1.0, 0.0))
    found = fields(np.sum(empty, axis=1))
    assert found["value"].tolist() == found["terms"].tolist() == [0, 0]
    assert not found["overflow"].any()
