"""The command `choose`: made-up results with known answers, rounds of a race, and what is planned."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from commands import run_command, run_here
from made_rows import with_work
from rich.console import Console
from simulated_choices import simulated

from py_backends import registry
from py_backends.commands.choose.analysis import Choice, choices
from py_backends.commands.choose.plan import _RUNS, budget_for_others, other_sizes, plan, race, statement
from py_backends.commands.choose.table import answer, print_report
from py_backends.commands.report.page import page
from py_backends.contract import Target
from py_backends.errors import WrongRequest
from py_backends.functions import api, call
from py_backends.harness.case import Case
from py_backends.harness.pairing import Group, groups
from py_backends.harness.running_row import RunningRow
from py_backends.harness.sizing import LONGER_BUDGET
from py_backends.results.report import Duration, Report, Row, Seconds
from py_backends.results.spec import Spec
from py_backends.results.verdicts import MARGIN, UNCLEAR
from py_backends.system import machine
from py_backends.workers.probe import BackendTarget
from py_backends.workers.runner import Runner, Sample
from py_backends.workers.session import Session

ROUNDS, ASKED = 30, 1000
Times = Mapping[str, float]
"""Seconds by backend."""


def row(
    backend: str, taken: float | Sequence[float], *, size: int = ASKED, call: bool = True, **phases: float | None
) -> Row:
    """A row of vecadd of this many seconds, give or take a thousandth, or of these round by round."""
    noise = np.random.default_rng([len(backend), size, call]).normal(0, 0.001, ROUNDS)
    samples = (np.asarray(taken) * np.exp(noise)).tolist() if isinstance(taken, float) else list(taken)
    middle = float(np.median(samples))
    seconds = Seconds(kernel=Duration(middle, None, None, middle, len(samples)), **phases)
    statement = f"pb.vecadd(a, b, out=c, backend={backend!r})" if call else None
    made = Row("vecadd", backend, "cpu", "tuned", "float32", {"n": size}, "ok", threads=2, statement=statement)
    return with_work(replace(made, seconds=seconds, kernel_seconds=samples))


def report(*rows: Row) -> Report:
    return Report("2026-11-22", "0.1.0", {"cpu": "Made-up"}, {"seed": 1, "budget_seconds": 60.0}, list(rows))


def chosen(calls: Times, kernels: Times | None = None, others: Mapping[int, Times] | None = None) -> Choice:
    """What rows of these seconds say: calls and kernels at the size that is asked for, calls at others."""
    rows = [row(name, taken, call=False) for name, taken in (kernels or calls).items()]
    rows += [row(name, taken) for name, taken in calls.items()]
    rows += [row(name, taken, size=size) for size, times in (others or {}).items() for name, taken in times.items()]
    (choice,) = choices(report(*rows))
    return choice


def lines(choice: Choice) -> dict[str, str]:
    return {remark.subject: remark.text for remark in answer(choice)}


class TestAnswers:
    def test_the_quickest_call_wins_whatever_its_kernel(self) -> None:
        choice = chosen({"copies": 3.0, "stays": 2.0, "slow": 50.0}, {"copies": 1.0, "stays": 1.9, "slow": 49.0})
        said = lines(choice)
        assert choice.calls.best.backend == "stays"
        assert [each.backend for each in choice.calls.candidates] == ["stays"]
        assert said["use"] == "stays cpu tuned: 2.00 s a call, pb.vecadd(a, b, out=c, backend='stays')"
        assert re.fullmatch(r"a call costs 10\d ms beyond the kernel against 2.00 s of copies cpu tuned", said["why"])
        assert said["second"].startswith("copies cpu tuned: 3.00 s a call, takes 1.50x as long (1.50 to 1.50)")
        assert "by the kernel alone it is copies cpu tuned, 1.90x as fast" in said["one call"]

    def test_a_quicker_kernel_explains_a_quicker_call(self) -> None:
        kernels = replace(row("one", 0.9, call=False), percent_of_ceiling=93.2), row("two", 1.4, call=False)
        (choice,) = choices(report(*kernels, row("one", 1.0), row("two", 1.5)))
        said = lines(choice)
        assert said["why"].startswith("its kernel takes 900 ms against 1.40 s of two cpu tuned; its kernel reaches 93%")
        assert said["one call"].endswith("the kernel alone gives no other answer")

    def test_kernels_that_contradict_the_calls_explain_nothing(self) -> None:
        """A launch of the harness may cost more than the call that a user writes."""
        said = lines(chosen({"one": 1.0, "two": 1.5}, {"one": 4.0, "two": 2.0}))
        assert said["why"] == "its call as a whole is shorter, which the kernels alone do not explain"
        assert said["one call"].startswith("nothing to be seen beyond the kernel, which alone takes 4.00 s")

    def test_an_interval_beside_1_may_be_too_little_for_a_verdict(self) -> None:
        """All verdicts hold together, which asks more of each than its own interval does."""
        choice = chosen({"one": 1.0, "two": 1.02})
        second = id(choice.calls.rows[1])
        choice.calls.ahead[second] = replace(choice.calls.ahead[second], verdict=UNCLEAR)
        said = lines(choice)["second"]
        assert said.endswith("takes 1.02x as long (1.02 to 1.02), not by enough to be certain")

    def test_who_cannot_be_told_apart_is_named_as_such(self) -> None:
        noisy = [0.8, 1.3] * (ROUNDS // 2)
        rows = [row(name, 1.0, call=call) for name in ("one", "far") for call in (True, False)]
        rows = [each if each.backend == "one" else row("far", 9.0, call=bool(each.statement)) for each in rows]
        (choice,) = choices(report(*rows, row("noisy", noisy), row("noisy", noisy, call=False)))
        said = lines(choice)
        assert [each.backend for each in choice.calls.candidates] == ["one", "noisy"]
        assert re.match(
            "one cpu tuned, or noisy cpu tuned, which takes 0.80x to 1.30x as long: no difference is certain; 1.00 s",
            said["use"],
        )
        assert said["why"] == "nothing certain sets it apart from noisy cpu tuned"
        assert said["second"].endswith("(0.80 to 1.30), no difference is certain")

    def test_the_baseline_is_told_wherever_it_stands(self) -> None:
        said = lines(chosen({"one": 1.0, "two": 1.5, "three": 1.6, "numpy": 2.7}))
        assert re.search(r"; numpy cpu tuned: 2.70 s a call, takes 2.70x as long \(2.70 to 2.70\)$", said["second"])
        said = lines(chosen({"one": 1.0, "numpy": 2.7, "three": 3.5}))
        assert said["second"].count("numpy") == 1
        noisy = [0.8, 1.3] * (ROUNDS // 2)
        rows = [row("one", 1.0), row("two", [0.9, 1.2] * (ROUNDS // 2)), row("numpy", noisy)]
        (choice,) = choices(report(*rows, row("one", 1.0, call=False)))
        assert lines(choice)["second"].endswith("(0.80 to 1.30), no difference is certain")

    def test_ties_stand_in_the_order_of_what_is_printed(self) -> None:
        """By the median of the ratios, 1.01 and 1.05; by the ratio of the medians they are 1.075 and 1.05."""
        times = {"best": [1.0, 2.0, 3.0], "one": [0.8, 2.15, 3.03], "two": [2.1, 2.1, 2.1], "far": [1.04, 2.08, 3.12]}
        rows = [row(name, taken * (ROUNDS // 3)) for name, taken in times.items()]
        (choice,) = choices(report(*rows, row("best", 1.0, call=False)))
        assert [each.backend for each in choice.calls.rows] == ["best", "one", "two", "far"]
        assert lines(choice)["second"].startswith("one cpu tuned: 2.15 s a call, takes 1.01x as long")

    def test_what_is_the_same_is_called_so(self) -> None:
        said = lines(chosen({"one": 1.0, "other": 1.001}))
        assert ": the same within 10%; " in said["use"]
        assert said["second"].endswith("the same within 10%")

    def test_few_rounds_rule_out_only_who_is_far_behind(self) -> None:
        rows = [row(name, [taken] * 3) for name, taken in (("one", 1.0), ("near", 9.0), ("far", 11.0))]
        (choice,) = choices(report(*rows, row("one", [1.0] * 3, call=False)))
        assert [each.backend for each in choice.calls.candidates] == ["one", "near"]

    def test_the_parts_of_a_call(self) -> None:
        phases = {"upload": 0.3, "download": 0.1, "release": 0.0001}
        rows = [row("one", 1.0), row("two", 2.0), row("one", 0.5, call=False, **phases)]
        (choice,) = choices(report(*rows))
        said = lines(choice)["one call"]
        assert said.startswith(
            "500 ms of 1.00 s beyond the kernel (50%): upload 300 ms, download 100 ms, the call itself"
        )
        assert "release" not in said, "a phase below a hundredth is left out"

    @pytest.mark.parametrize(
        ("call", "first", "said"), [(0.1, 4.2, True), (0.1, 0.9, False), (1e-6, 1e-3, False), (0.1, None, False)]
    )
    def test_a_first_call_that_compiles_is_told(self, call: float, first: float | None, said: bool) -> None:
        best = row("one", call, first_launch=first)
        (choice,) = choices(report(best, row("one", call, call=False)))
        ends = lines(choice)["one call"].endswith("; the first one in a process takes 4.20 s more")
        assert ends == said
        assert ("first one" in lines(choice)["one call"]) == said

    def test_phases_of_single_calls_that_repeated_calls_do_not_pay_are_not_named(self) -> None:
        rows = [row("one", 1.0), row("two", 2.0), row("one", 0.9, call=False, upload=0.3, download=0.1)]
        (choice,) = choices(report(*rows))
        assert "upload" not in lines(choice)["one call"]

    def test_whose_call_has_no_time_is_missing_with_its_own_reason(self) -> None:
        late = replace(row("late", 1.0), status="skipped", seconds=None, fix=LONGER_BUDGET)
        (choice,) = choices(report(row("one", 1.0), row("one", 1.0, call=False), row("late", 9.0, call=False), late))
        assert [(each.backend, each.status) for each in choice.missing] == [("late", "skipped")]

    def test_a_page_shows_kernels_and_no_calls(self) -> None:
        shown = page([("choice.json", report(row("one", 1.0), row("two", 0.123, call=False)))])
        assert "123 ms" in shown
        assert "1.00 s" not in shown

    def test_without_a_timed_call_there_is_no_answer(self) -> None:
        assert choices(report(row("one", 1.0, call=False))) == []


class TestOtherSizes:
    HERE: Times = {"one": 1.0, "two": 1.5}

    def test_the_answer_changes_on_both_sides(self) -> None:
        others = {10: {"one": 2.0, "two": 1.0}, 100: {"one": 1.0, "two": 1.2}, 9000: {"one": 3.0, "two": 1.0}}
        choice = chosen(self.HERE, others=others)
        assert lines(choice)["other sizes"] == (
            "the answer changes between 10 and 100: at 10 it is two cpu tuned, 2.00x as fast; "
            "the answer changes between 1000 and 9000: at 9000 it is two cpu tuned, 3.00x as fast"
        )

    def test_the_nearest_change_counts(self) -> None:
        others = {10: {"one": 1.0, "two": 2.0}, 100: {"one": 2.0, "two": 1.0}}
        found = chosen(self.HERE, others=others).change(upwards=False)
        assert found is not None
        assert (found[0].sizes, found[1]) == ((100,), (ASKED,))

    def test_without_a_change_it_says_how_far_was_measured(self) -> None:
        choice = chosen(self.HERE, others={10: self.HERE, 100: self.HERE})
        assert lines(choice)["other sizes"] == "no other answer is certain down to 10"

    def test_where_two_cannot_be_told_apart_nothing_changes(self) -> None:
        """At 10 one of the two may win; whoever takes it here is not wrong there for certain."""
        noisy = row("two", [0.7, 1.2] * (ROUNDS // 2), size=10)
        rows = [row(name, taken, call=call) for name, taken in self.HERE.items() for call in (True, False)]
        (choice,) = choices(report(*rows, row("one", 1.0, size=10), noisy))
        assert choice.change(upwards=False) is None

    @pytest.mark.parametrize(
        ("budget", "dtypes", "why"),
        [
            (35.0, ["float32"], "this takes a --budget of 36 or more"),
            (36.0, ["float32"], "the budget went to the size that was asked for"),
            (71.0, ["float32", "float64"], "this takes a --budget of 72 or more"),
            (300.0, ["float32", "float64"], "the budget went to the size that was asked for"),
        ],
    )
    def test_why_none_was_measured_is_said(self, budget: float, dtypes: list[str], why: str) -> None:
        rows = [row("one", 1.0, call=call) for call in (True, False)]
        made = report(*(replace(each, dtype=dtype) for dtype in dtypes for each in rows))
        made.settings["budget_seconds"] = budget
        for choice in choices(made):
            assert lines(choice)["other sizes"] == f"not measured: {why}"

    def test_what_is_named_as_thebudget_for_others_suffices(self) -> None:
        problem = registry.problem("matmul")
        budget = budget_for_others(problem, (64, 64, 64), "float32")
        assert budget is not None
        assert other_sizes(problem, (64, 64, 64), "float32", budget)
        assert not other_sizes(problem, (64, 64, 64), "float32", budget - 1)

    def test_of_nothing_there_is_no_other_size(self) -> None:
        (choice,) = choices(report(*(row("one", 1.0, size=0, call=call) for call in (True, False))))
        assert lines(choice)["other sizes"] == "there is none to try"

    def test_what_was_not_measured_is_said(self) -> None:
        not_run: dict[str, Any] = {"status": "skipped", "seconds": None, "fix": LONGER_BUDGET}
        late = [replace(row(name, 9.0, size=8000), **not_run) for name in self.HERE]
        rows = [row(name, taken, size=size) for size in (10, ASKED) for name, taken in self.HERE.items()]
        (choice,) = choices(report(row("one", 1.0, call=False), *rows, *late))
        assert lines(choice)["other sizes"].endswith("; 8000 takes too long for the budget")

    def test_nothing_measured_elsewhere_is_no_answer_for_elsewhere(self) -> None:
        late = replace(row("one", 1.0, size=8000), status="skipped", seconds=None, fix=LONGER_BUDGET)
        (choice,) = choices(report(row("one", 1.0, call=False), row("one", 1.0), late))
        assert lines(choice)["other sizes"] == (
            "not measured: the budget went to the size that was asked for; 8000 takes too long for the budget"
        )

    def test_another_shape_of_the_same_proportions(self) -> None:
        problem = registry.problem("matmul")
        assert other_sizes(problem, (64, 64, 64), "float32", 20) == []
        sizes = other_sizes(problem, (64, 128, 256), "float32", 1000)
        assert sizes[-1] == (128, 256, 512)
        assert all(m * 4 == n * 2 == k for m, n, k in sizes)
        assert all(problem.work(size) < problem.work((64, 128, 256)) for size in sizes[:-1])
        assert len(other_sizes(registry.problem("vecadd"), (2**22,), "float32", 36)) == 2

    def test_nothing_else_is_tried_of_nothing(self) -> None:
        assert other_sizes(registry.problem("vecadd"), (0,), "float32", 1000) == []


def spec(backend: str = "avx", dtype: str = "float32", kernel: str = "vecadd") -> Spec:
    return Spec(kernel, backend, "cpu", "tuned", dtype, (5,) if kernel == "vecadd" else (5, 6, 7))


class TestPlan:
    @pytest.mark.parametrize(
        ("asked", "threads", "expected"),
        [
            (spec(), None, "pb.vecadd(a, b, out=c, backend='avx', target='cpu', variant='tuned')"),
            (spec(), 3, "pb.vecadd(a, b, out=c, backend='avx', target='cpu', variant='tuned', threads=3)"),
            (spec("numpy"), None, "np.add(a, b, out=c)"),
            (spec("numpy", kernel="matmul"), None, "np.matmul(a, b, out=c)"),
            # NumPy has no parameter for threads, and its product of int8 is one of int8.
            (spec("numpy"), 1, "pb.vecadd(a, b, out=c, backend='numpy', target='cpu', variant='tuned', threads=1)"),
            (
                spec("numpy", "int8", "matmul"),
                None,
                "pb.matmul(a, b, out=c, backend='numpy', target='cpu', variant='tuned')",
            ),
        ],
    )
    def test_what_is_timed_is_what_a_user_writes(self, asked: Spec, threads: int | None, expected: str) -> None:
        assert statement(asked, threads) == expected

    def test_calls_of_what_is_there_at_all_sizes_and_kernels_at_one(self) -> None:
        found = [
            BackendTarget("numpy", Target("cpu")),
            BackendTarget("cpp", Target("cpu")),
            BackendTarget("cuda", Target("emulated", emulated=True, reason="no driver", fix="get one")),
        ]
        planned = plan(["vecadd"], 36, shapes={"vecadd": [(2**20,)]})
        specs = planned.specs(found)
        kernels = [each.backend for each in specs if each.statement is None]
        assert kernels == ["numpy", "cpp", "cuda"], "the one that is emulated says why it has no time"
        calls = [(each.backend, each.sizes == (2**20,)) for each in specs if each.statement]
        assert sorted(set(calls)) == [("cpp", False), ("cpp", True), ("numpy", False), ("numpy", True)]
        assert not planned.controls

    def test_the_budget_is_shared_among_what_can_run(self) -> None:
        """vecadd has no int8, so matmul has the whole budget: enough for other sizes."""
        shapes = {"vecadd": [(2**12,)], "matmul": [(64, 64, 64)]}
        planned = plan(["vecadd", "matmul"], 28, dtypes=("int8",), shapes=shapes)
        specs = planned.specs([BackendTarget("numpy", Target("cpu"))])
        assert {each.kernel for each in specs} == {"matmul"}
        assert len({each.sizes for each in specs}) == 2

    def test_what_needs_variables_is_no_answer_for_a_process_without_them(self) -> None:
        needy = Target("needy", environment={"MADE_UP_FOR_A_TEST": "1"})
        planned = plan(["vecadd"], 36, shapes={"vecadd": [(2**20,)]})
        specs = planned.specs([BackendTarget("numpy", Target("cpu")), BackendTarget("cpp", needy)])
        assert {each.backend for each in specs} == {"numpy"}

    def test_a_named_target_that_needs_variables_says_which(self) -> None:
        needy = BackendTarget("cpp", Target("needy", environment={"MADE_UP_FOR_A_TEST": "1"}))
        planned = plan(["vecadd"], 36, targets=["needy"])
        words = "^cpp needy is not available: it needs a process that was started with MADE_UP_FOR_A_TEST=1$"
        with pytest.raises(WrongRequest, match=words):
            planned.specs([BackendTarget("numpy", Target("cpu")), needy])
        specs = planned.specs([BackendTarget("numpy", Target("needy")), needy])
        assert {each.backend for each in specs} == {"numpy"}, "another backend has it without them"

    def test_one_shape_at_a_time(self) -> None:
        with pytest.raises(WrongRequest, match="an answer is for one shape"):
            plan(["vecadd"], 60, shapes={"vecadd": [(5,), (6,)]})


def timed(backend: str, size: int, *, call: bool) -> RunningRow:
    spec = Spec("vecadd", backend, "cpu", "tuned", "float32", (size,), statement="a call" if call else None)
    case = cast(Case, type("Sizes", (), {"sizes": (size,)})())
    row = RunningRow(spec, Target("cpu"), None, controls=False, sizes=(size,), status="ok")
    return row.on(cast(Runner, None), case)


def run_race(made: Sequence[Group], times: Times, most: int = 200) -> int:
    """Give samples to whom it chooses until there is none, or for `most` rounds; how many rounds there were."""
    generator = np.random.default_rng(1)
    for number in range(most):
        in_round = race(made)
        if not in_round:
            return number
        for each in in_round:
            taken = times[each.spec.backend] * math.exp(0.002 * generator.standard_normal())
            each.samples[number] = Sample(upload=0.0, kernel=taken, download=0.0, end_to_end=taken, drain=0.0)
    return most


class TestRace:
    def race_of(self, times: Times) -> tuple[int, dict[tuple[str, int, bool], int]]:
        """Rounds in all, and of each backend, size and whether of calls."""
        rows = [timed(name, size, call=True) for size in (10, ASKED) for name in times]
        rows += [timed(name, ASKED, call=False) for name in times]
        taken = run_race(groups(rows), times)
        return taken, {
            (each.spec.backend, each.case.sizes[0], each.spec.statement is not None): len(each.samples) for each in rows
        }

    def test_who_is_far_behind_has_but_a_look(self) -> None:
        taken, rounds = self.race_of({"one": 1.0, "near": 1.3, "far": 30.0})
        assert taken < 60
        assert {count for (name, *_), count in rounds.items() if name == "far"} == {3}
        assert rounds["near", ASKED, True] >= 6

    def test_equals_are_told_to_be_the_same_and_it_ends(self) -> None:
        taken, _ = self.race_of({"one": 1.0, "other": 1.0})
        assert taken < 150

    def test_what_no_round_makes_clear_ends_nevertheless(self) -> None:
        taken, rounds = self.race_of({"one": 1.0, "other": 1.01})
        assert taken <= 200
        assert max(rounds.values()) <= 100

    def test_who_looks_after_every_round_is_seldom_wrong(self) -> None:
        """Of two calls that differ by 1% exactly, neither is behind by more."""
        seconds = (1.0, 1 + MARGIN)
        assert sum(outcome.wrong(seconds) for outcome in simulated(seconds, runs=100)) <= 5

    def test_a_clear_winner_is_found_in_few_rounds(self) -> None:
        (outcome,) = simulated([1.0, *[1.5] * 11], runs=1, noise=0.01)
        assert outcome.alone()
        assert outcome.rounds <= _RUNS

    def test_the_size_that_is_asked_for_comes_first(self) -> None:
        rows = [timed(name, size, call=True) for size in (10, ASKED) for name in ("one", "other")]
        rows += [timed("one", ASKED, call=False)]
        run_race(groups(rows), {"one": 1.0, "other": 1.3}, most=4)
        assert {each.case.sizes[0] for each in rows if each.samples} == {ASKED}

    def test_one_alone_has_what_an_interval_needs(self) -> None:
        _, rounds = self.race_of({"one": 1.0})
        assert set(rounds.values()) == {6}


class TestWorkers:
    """What a worker does to time calls."""

    def test_calls_share_its_device(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A second device would compile everything once more, and ranks would be there twice."""
        for table in "_devices", "_launches", "_ready":
            monkeypatch.setattr(call, table, {})
        session = Session()
        session.open([], "numpy", "cpu", machine.cpus())
        session.prepare([], "vecadd", "lecture", "float32")
        monkeypatch.setattr(registry.backend("numpy"), "open", None)  # a second one could not be opened
        a = np.arange(3, dtype=np.float32)
        assert api.function("vecadd")(a, a, backend="numpy", target="cpu").tolist() == [0.0, 2.0, 4.0]

    def test_only_small_copies_stay(self, monkeypatch: pytest.MonkeyPatch) -> None:
        placed = type("Placed", (), {"sizes": [3], "arrays": lambda _: [np.ones(3, np.float32)] * 3})()
        session = Session()
        small = session._copies_of(1, "a call", placed, "vecadd")
        assert session._copies_of(1, "a call", placed, "vecadd") is small
        monkeypatch.setattr("py_backends.workers.session._MOST_KEPT", 35)
        large = session._copies_of(2, "a call", placed, "vecadd")
        assert session._copies_of(2, "a call", placed, "vecadd") is not large


def test_five_lines_a_workload_and_who_has_no_time() -> None:
    missing = replace(row("absent", 1.0, call=False), status="unavailable", seconds=None, reason="no driver")
    slow = replace(
        row("slow", 1.0, call=False), status="skipped", seconds=None, fix=LONGER_BUDGET, estimated_seconds=4.0
    )
    rows = [row(name, taken, call=call) for name, taken in (("one", 1e-3), ("two", 2e-3)) for call in (True, False)]
    out = io.StringIO()
    print_report(report(*rows, missing, slow), Console(file=out, width=120, no_color=True))
    lines_of_answer = re.findall(r"^  (\w[\w ]*?)  +\S", out.getvalue(), re.MULTILINE)
    assert lines_of_answer == ["use", "why", "second", "one call", "other sizes"]
    assert (
        "  not there (py-backends doctor says why): absent cpu; too long for the budget: slow cpu (about 4 s)"
        in out.getvalue()
    )


def test_who_is_not_there_is_named_with_reason_and_fix_where_nothing_was_timed() -> None:
    missing = {"status": "unavailable", "seconds": None, "reason": "no driver", "fix": "get one"}
    rows = [replace(row("absent", 1.0, call=call), **missing) for call in (True, False)]
    elsewhere = replace(row("absent", 1.0, size=9), **missing | {"reason": "of another size"})
    out = io.StringIO()
    print_report(report(*rows, elsewhere), Console(file=out, width=120, no_color=True))
    printed = [" ".join(line.split()) for line in out.getvalue().splitlines()]
    at = printed.index("vecadd float32 1000 no call was timed")
    assert printed[at + 1 :] == ["absent cpu no driver get one", "", "No row ran."]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--kernel matmull", "unknown kernel 'matmull': did you mean 'matmul'?"),
        ("--shape vecadd=10 --shape vecadd=20", "an answer is for one shape"),
        ("--kernel vecadd --dtype int8", "nothing runs in int8"),
    ],
)
def test_wrong_usage_is_one_line(options: str, words: str) -> None:
    run = run_here("choose", "--backend", "python", *options.split())
    assert (run.returncode, run.stdout) == (2, "")
    (line,) = run.stderr.splitlines()
    assert words in line


@pytest.mark.nightly
@pytest.mark.numpy
@pytest.mark.python
def test_a_real_run(tmp_path: Path) -> None:
    """NumPy's addition of a million elements is quicker than Python's loop."""
    file = tmp_path / "choice.json"
    run = run_command(
        "choose", "--backend", "numpy,python", "--shape", "vecadd=100003", "--budget", "5", "--json", file
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert "use          numpy cpu lecture: " in run.stdout
    assert "np.add(a, b, out=c)" in run.stdout
    rows: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["rows"]
    assert {bool(each["statement"]) for each in rows} == {True, False}


@pytest.mark.slow
def test_no_row_ends_with_1() -> None:
    """What is not there cannot be chosen, and the run says so."""
    run = run_command("choose", "--backend", "numpy", "--kernel", "vecadd", "--variant", "tuned", "--budget", "1")
    assert run.returncode == 1
    assert "No row ran." in run.stdout
