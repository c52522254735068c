"""Functions that keep results for inputs that come again: a remark, or a wrong result where they only look the same."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
import raced_functions as functions
from conftest import after_a_change

import py_backends as pb
from py_backends.contract import Array, Reference
from py_backends.errors import WrongResult
from py_backends.racing import kept
from py_backends.racing.form import Form, arrays_of

pytestmark = pytest.mark.stamped

X = np.random.default_rng(1).standard_normal(1000)
Y = np.random.default_rng(2).standard_normal(1000)
PAUSE = 0.02


@pytest.fixture(autouse=True)
def drawn_alike() -> None:
    random.seed(1)


def remark(
    function: Callable[..., Any], *inputs: Array, bound: Any = 1e-9, overflow: Any = None, right: Any = None
) -> str | None:
    """What is said of a function of these inputs, whose right results have this bound; None for bit for bit.

    right: the function that tells what is right for changed inputs; None where nobody knows.
    """
    inputs = inputs or (X, Y)
    forms = [Form.of(each, "it") for each in inputs]
    outputs = arrays_of((right or function)(*inputs))
    values = [Form.of(each, "it").kept(each) for each in outputs]
    references = [Reference(each, None if bound is None else np.full(each.shape, bound), overflow) for each in values]

    def call(given: Sequence[Array]) -> tuple[Array, ...]:
        return arrays_of(function(*given))

    def answers() -> list[kept.Change]:
        if right is None:
            return []
        results = [Form.of(each, "it") for each in outputs]
        return kept.changes(lambda given: arrays_of(right(*given)), inputs, forms, results)

    return kept.remark("mine", call, inputs, forms, lambda: references, answers)


def keeping(key: Callable[..., Any], function: Callable[..., Any] = np.add) -> Callable[..., Any]:
    """A function that takes its time, and keeps what it gives by a key of its inputs."""
    results: dict[Any, Any] = {}

    def keep(*inputs: Array) -> Any:
        found = key(*inputs)
        if found not in results:
            time.sleep(PAUSE)
            results[found] = function(*inputs)
        return results[found]

    return keep


def by_content(*inputs: Array) -> Any:
    return tuple(each.tobytes() for each in inputs)


def by_address(*inputs: Array) -> Any:
    return tuple(each.ctypes.data for each in inputs)


KINDS: dict[str, tuple[tuple[Array, ...], Callable[..., Any], Any]] = {
    "real": ((X, Y), np.add, 1e-9),
    "of one input": ((X,), np.cumsum, 1e-9),
    "complex": ((X + 1j, Y - 1j), np.add, 1e-9),
    "whole": ((np.arange(1000), np.arange(1000)), np.add, None),
    "two outputs": ((X,), lambda x: (x + 1, np.cumsum(x)), 1e-9),
    "others as well": ((X, np.zeros(3), np.zeros(0), np.array(2.0)), lambda x, *_: x + 1, 1e-9),
    "of another length": ((np.arange(1000.0),), np.unique, 1e-9),
}


@pytest.mark.parametrize("kind", KINDS)
def test_results_that_are_kept_for_an_address_are_wrong(kind: str) -> None:
    inputs, function, bound = KINDS[kind]
    with pytest.raises(WrongResult, match="mine gives an earlier result where other numbers lie"):
        remark(keeping(by_address, function), *inputs, bound=bound)


UNSEEN = "mine gives an earlier result for inputs of which a value of each was changed: it may keep results"
PARTS: dict[str, Callable[..., Any]] = {
    "nothing": lambda *_: None,
    "the first element": lambda x, *_: x.flat[0],
    "both ends": lambda *inputs: tuple(each.reshape(-1)[[0, -1]].tobytes() for each in inputs if each.size),
    "each seventh element": lambda x, *_: x.reshape(-1)[::7].tobytes(),
    "the diagonal": lambda x, *_: x[: len(x) // 30 * 30].reshape(-1, 30)[:30].diagonal().tobytes(),
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("kind", KINDS)
def test_results_that_are_kept_by_a_part_of_the_inputs_are_wrong(part: str, kind: str) -> None:
    inputs, function, bound = KINDS[kind]
    with pytest.raises(WrongResult, match=UNSEEN):
        remark(keeping(PARTS[part], function), *inputs, bound=bound, right=function)


def test_a_result_that_is_kept_until_its_key_changes_is_wrong() -> None:
    """What is given then may be that of changed inputs."""
    last: list[Any] = [None, None]

    def keep(x: Array, y: Array) -> Any:
        if last[0] != x[::7].tobytes():
            last[:] = x[::7].tobytes(), x + y
        return last[1]

    with pytest.raises(WrongResult, match=UNSEEN):
        remark(keep, right=np.add)


SQUARE = X[:900].reshape(30, 30)
SYMMETRIC = SQUARE + SQUARE.T
HONEST: dict[str, tuple[tuple[Array, ...], Callable[..., Any], Callable[..., Any], Any]] = {
    "another order of sums": (
        (X,),
        np.cumsum,
        lambda x: x.sum() - np.cumsum(x[::-1])[::-1] + x,
        1e-9,
    ),
    "sums in float32": ((X,), lambda x: np.cumsum(x, dtype=np.float32).astype(x.dtype), np.cumsum, 1e-3),
    "whole": ((np.arange(1000), np.arange(1000)), np.add, lambda x, y: y + x, None),
    "booleans": ((X > 0, Y > 0), np.logical_xor, np.not_equal, None),
    "complex": ((X + 1j, Y - 1j), np.add, lambda x, y: y + x, 1e-9),
    "several outputs": ((X, Y), lambda x, y: (x + y, np.sort(x)), lambda x, y: (y + x, np.sort(x)), 1e-9),
    "few elements": ((X,), np.max, lambda x: np.sort(x)[-1], 1e-9),
    "a triangle": ((SYMMETRIC,), lambda a: np.triu(a) + np.triu(a, 1).T, np.positive, 1e-9),
    "a triangle that is nearly the other one": (
        (SYMMETRIC + 1e-12 * SQUARE,),
        lambda a: np.triu(a) + np.triu(a, 1).T,
        np.positive,
        1e-9,
    ),
    "one of two that say the same": ((X, X.astype(np.float32)), lambda x, _: x + 1, lambda _, y: y + 1.0, 1e-3),
    "a part of a diagonal matrix": ((np.diag(X[:30]),), lambda a: a.diagonal(), lambda a: a.sum(axis=1), 1e-9),
}


@pytest.mark.parametrize("kind", HONEST)
def test_a_right_function_is_let_go(kind: str) -> None:
    """One that is right for the inputs of its race alone, too: it may know more of them."""
    inputs, function, right, bound = HONEST[kind]
    found = remark(function, *inputs, bound=bound, right=right)
    assert found is None or "times as fast" in found, "a busy machine may make that of small functions"


def test_a_change_within_the_bound_says_nothing() -> None:
    for wide in ({"bound": 1e3}, {"overflow": np.ones(X.shape, bool)}):
        assert remark(keeping(PARTS["nothing"]), right=np.add, **wide) is None


def test_the_right_function_is_called_three_times_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []

    def right(given: Sequence[Array]) -> tuple[Array, ...]:
        counted.append(1)
        return (given[0] + 1,)

    form = Form.of(X, "it")
    assert len(kept.changes(right, [X], [form], [form])) == len(counted) == 3
    monkeypatch.setattr(kept, "LONGEST_ANSWER", 0.0)
    assert len(kept.changes(right, [X], [form], [form])) == 1
    assert kept.changes(right, [np.zeros(9)], [form], [form]) == []
    assert len(counted) == 4, "and not where nothing can be changed"


def test_equal_elements_change_together() -> None:
    """So a symmetric matrix stays one."""
    form = Form.of(SYMMETRIC, "it")
    for place in range(SYMMETRIC.size - 1):
        inputs = kept.Inputs.like([SYMMETRIC], [form])
        inputs.change([place])
        (changed,) = inputs.given
        assert (changed == changed.T).all()
        assert changed.flat[place] == SYMMETRIC.flat[place + 1]
    whole = kept.Inputs.like([np.array([np.nan, 1.0])], [Form((2,), np.dtype(float))])
    whole.change([0])
    assert (whole.given[0] == 1).all()


def test_results_that_are_kept_by_their_inputs_are_a_remark() -> None:
    found = remark(keeping(by_content))
    assert found is not None
    assert found.startswith("its calls on the same inputs are ")
    assert found.endswith(" times as fast as one on others: it may keep results")
    assert ";" not in found, "which parts the sentences of a note"


def test_stale_results_within_a_wide_bound_are_a_remark() -> None:
    """They may be right, for all that the bound says."""
    for wide in ({"bound": 1e3}, {"overflow": np.ones(X.shape, bool)}):
        assert "may keep results" in (remark(keeping(by_address), **wide) or "")


def test_who_computes_each_time_is_let_go() -> None:
    """The smallest functions too, those whose results depend on few elements, and those that take their time."""

    def waits(x: Array) -> Array:
        time.sleep(PAUSE / 10)
        return x + 1

    for function in (waits, np.cumsum, np.sort, np.max, lambda x: x[0], np.ndim):
        assert remark(function, X) is None


def test_little_is_called_for_who_computes_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow function is called twice, and no more."""
    counted: list[int] = []

    def counts(x: Array, y: Array) -> Array:
        counted.append(1)
        time.sleep(PAUSE)  # so long that a busy machine does not make five of it
        return x + y

    remark(counts)
    assert len(counted) <= 1 + 2 + 1 + 2 * 3 + 2 + 4, "with one more change, since the machine is busy"
    counted.clear()
    monkeypatch.setattr(kept, "_LONGEST", 1e-4)
    assert remark(counts) is None
    assert len(counted) == 3


def test_who_fails_on_other_inputs_is_not_judged() -> None:
    def picky(x: Array, y: Array) -> Array:
        if x.tobytes() != X.tobytes():
            raise ValueError("other numbers")
        return x + y

    assert remark(picky) is None


def test_where_nothing_can_be_changed_nothing_is_called() -> None:
    for inputs in ((np.zeros(9),), (np.zeros(0),), (np.array(1.0),)):
        assert remark(keeping(by_address, np.negative), *inputs) is None


def test_changed_inputs_are_of_the_kind_of_the_own_ones() -> None:
    """Sorted as those are, within their range, at a page, and not to be written to. The own ones stay as they are."""
    own, seen = np.arange(1000.0), list[Array]()
    own.flags.writeable = False

    def look(x: Array) -> Array:
        assert not x.flags.writeable
        seen.append(x.copy())
        return x + 1

    remark(look, own)
    others = [each for each in seen if each.tobytes() != own.tobytes()]
    assert others
    for each in others:
        assert (np.diff(each) >= 0).all()
        assert np.isin(each, own).all()
        assert np.count_nonzero(each != own) == 1
    assert kept.Inputs.like([own], [Form.of(own, "it")]).given[0].ctypes.data % 4096 == 0


def test_who_keeps_the_last_result_alone_is_said() -> None:
    """Between two calls on its own inputs there is one on others, which takes its place."""
    last: list[Any] = [b"", None]

    def add(x: Array, y: Array) -> Any:
        if last[0] != x.tobytes() + y.tobytes():
            time.sleep(PAUSE)
            last[:] = x.tobytes() + y.tobytes(), x + y
        return last[1]

    assert "it may keep results" in (remark(add, right=np.add) or "")


@after_a_change("py_backends/racing", "py_backends/harness/running_row.py")
def test_a_race_says_who_keeps_results() -> None:
    named = {"numpy": np.cumsum, "content": functions.kept_by_content, "address": functions.kept_by_address}
    first, content, address = pb.race(named, X, budget=2).rows
    assert (first.status, content.status, address.status) == ("ok", "ok", "mismatch")
    assert "it may keep results" not in (first.note or "")
    assert "it may keep results" in (content.note or "")
    assert "address gives an earlier result" in (address.reason or "")


@after_a_change("py_backends/racing", "py_backends/harness/running_row.py")
def test_a_race_says_who_gives_its_first_result_for_ever() -> None:
    named = {"first": functions.first_for_ever, "numpy": np.cumsum}
    for given in ({"tolerance": 1e-9}, {"reference": np.cumsum}):
        first, numpy = pb.race(named, X, budget=1, **given).rows  # type: ignore[arg-type]  # of two kinds
        assert (first.status, numpy.status) == ("mismatch", "ok"), "the baseline may be the one"
        assert "first gives an earlier result for inputs of which" in (first.reason or "")


@after_a_change("py_backends/racing", "py_backends/harness/running_row.py")
@pytest.mark.parametrize("how", ["raises", "ends"])
def test_a_right_function_that_fails_on_other_inputs_tells_what_is_right(how: str) -> None:
    right = partial(functions.ends_on_others if how == "ends" else functions.raises_on_others, X)
    report = pb.race({"numpy": np.cumsum}, X, reference=right, budget=0.5, tolerance=1e-9)
    assert [row.status for row in report.rows] == ["ok"]


@after_a_change("py_backends/racing", "py_backends/harness/running_row.py")
def test_who_ends_its_process_on_other_inputs_keeps_its_row() -> None:
    report = pb.race({"numpy": np.cumsum, "mine": partial(functions.ends_on_others, X)}, X, budget=0.5)
    assert [row.status for row in report.rows] == ["ok", "ok"]
    assert not any("worker ended" in (row.note or "") for row in report.rows)
