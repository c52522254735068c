"""Functions that keep results for inputs that come again: a remark, or a wrong result where they only look the same."""

from __future__ import annotations

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


def remark(function: Callable[..., Any], *inputs: Array, bound: Any = 1e-9, overflow: Any = None) -> str | None:
    """What is said of a function of these inputs, whose right results have this bound; None for bit for bit."""
    inputs = inputs or (X, Y)
    right = arrays_of(function(*inputs))
    values = [Form.of(each, "it").kept(each) for each in right]
    references = [Reference(each, None if bound is None else np.full(each.shape, bound), overflow) for each in values]

    def call(given: Sequence[Array]) -> tuple[Array, ...]:
        return arrays_of(function(*given))

    return kept.remark("mine", call, inputs, [Form.of(each, "it") for each in inputs], lambda: references)


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


@after_a_change("py_backends/racing", "py_backends/harness/running_row.py")
def test_a_race_says_who_keeps_results() -> None:
    named = {"numpy": np.cumsum, "content": functions.kept_by_content, "address": functions.kept_by_address}
    first, content, address = pb.race(named, X, budget=2).rows
    assert (first.status, content.status, address.status) == ("ok", "ok", "mismatch")
    assert "it may keep results" not in (first.note or "")
    assert "it may keep results" in (content.note or "")
    assert "address gives an earlier result" in (address.reason or "")


@after_a_change("py_backends/racing", "py_backends/harness/running_row.py")
def test_who_ends_its_process_on_other_inputs_keeps_its_row() -> None:
    report = pb.race({"numpy": np.cumsum, "mine": partial(functions.ends_on_others, X)}, X, budget=0.5)
    assert [row.status for row in report.rows] == ["ok", "ok"]
    assert not any("worker ended" in (row.note or "") for row in report.rows)
