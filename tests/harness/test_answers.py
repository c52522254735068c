"""Right answers keep within the budget, however a problem computes them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from py_backends import registry
from py_backends.contract import Target
from py_backends.harness.answers import answerable
from py_backends.harness.running_row import RunningRow
from py_backends.results.spec import Sizes, Spec

VECADD = registry.problem("vecadd")
WANTED = (1_000_003,)


def rows_for(backends: str, dtypes: str = "float32") -> list[RunningRow]:
    each = [(backend, dtype) for backend in backends.split() for dtype in dtypes.split()]
    specs = [Spec("vecadd", backend, "cpu", "lecture", dtype, WANTED) for backend, dtype in each]
    return [RunningRow(spec, Target("cpu"), None, sizes=spec.sizes) for spec in specs]


@pytest.fixture(autouse=True)
def of_anybodys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel counts as one that somebody brings."""
    monkeypatch.setattr(registry, "kernel_plugin", lambda _: "somewhere")


def case_of(pace: float, asked: list[Sizes] | None = None, always: float = 0.0) -> Any:
    """Cases whose right answers take so many seconds for each unit of work, and some at every shape."""

    def made(row: RunningRow, sizes: Sizes) -> Any:
        if asked is not None:
            asked.append(sizes)
        return SimpleNamespace(seconds_of_answer=lambda: always + pace * row.problem.work(sizes))

    return made


def test_an_answer_that_takes_minutes_makes_the_shape_smaller_and_says_why() -> None:
    asked: list[Sizes] = []
    rows = rows_for("numpy openmp")
    assert answerable(rows, case_of(1e-4, asked), 2.0, shorten=True) == rows
    (sizes,) = {row.sizes for row in rows}
    assert 1e-4 * VECADD.work(sizes) <= 5 < 2.1e-4 * VECADD.work(sizes)
    assert all("whose right answer would take about 100 s" in row.notes[0] for row in rows)
    assert sum(1e-4 * VECADD.work(each) for each in asked) < 15, "it is not computed at the wanted shape"


def test_a_quick_one_changes_nothing() -> None:
    rows = rows_for("numpy", "float32 float64")
    assert answerable(rows, case_of(1e-9), 2.0, shorten=True) == rows
    assert all(row.sizes == WANTED and not row.notes for row in rows)


def test_what_it_takes_at_every_shape_does_not_grow() -> None:
    """A loop over steps, whose calls take as long for few elements as for many."""
    (row,) = rows_for("numpy")
    answerable([row], case_of(1e-7, always=0.3), 2.0, shorten=True)
    assert row.sizes == WANTED


def test_the_projects_own_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "kernel_plugin", lambda _: None)
    asked: list[Sizes] = []
    (row,) = rows_for("numpy")
    assert answerable([row], case_of(1e-4, asked), 2.0, shorten=True) == [row]
    assert (row.sizes, asked) == (WANTED, [])


def test_quick_answers_leave_their_time_to_longer_ones() -> None:
    one, other = rows_for("numpy", "float32 float64")
    paces = {"float32": 1e-9, "float64": 6e-5}
    cases: Any = lambda row, sizes: case_of(paces[row.spec.dtype])(row, sizes)  # noqa: E731  # `def` would not be shorter
    answerable([one, other], cases, 150.0, shorten=False)
    assert other.reason is None


def test_a_longer_budget_has_time_for_a_longer_answer() -> None:
    (row,) = rows_for("numpy")
    answerable([row], case_of(1e-4), 400.0, shorten=True)
    assert row.sizes == WANTED


def test_where_shapes_are_fixed_the_row_is_left_out_and_says_what_to_do() -> None:
    (row,) = rows_for("numpy")
    assert answerable([row], case_of(1e-4), 2.0, shorten=False) == []
    assert row.reason == "its right answer at 1000003 would take about 100 s"
    assert "--shape" in (row.fix or "")


def test_a_problem_that_fails_is_left_to_its_check() -> None:
    rows = rows_for("numpy")

    def broken(*_: Any) -> Any:
        raise ZeroDivisionError

    assert answerable(rows, broken, 2.0, shorten=True) == rows
