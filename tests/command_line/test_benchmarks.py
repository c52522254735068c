"""The benchmarks: what they make of samples, what they take as arguments, and one small run of the whole."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import run_python
from rich.console import Console

from benchmarks import __main__ as command
from benchmarks import contenders, measure, table
from benchmarks.contenders import CALL, KERNEL, Comparison, Conditions, Contender, Entry, Goal
from benchmarks.figures import NotMeasured, Rates, Reason, figure, mean, worst
from py_backends.contract import Target
from py_backends.display.console import print_remarks, print_section
from py_backends.results.report import MULTIPLY_ADDS, STREAMED, Ceiling, Report, Rounds, Row
from py_backends.workers.probe import BackendTarget

pytestmark = pytest.mark.slow

ROUNDS = range(8)
MATMUL = Conditions("matmul", "float32")
ONE, OTHER, THIRD = (Contender(label, CALL, label) for label in ("one", "other", "third"))


def row(contender: Contender, size: int, seconds: list[float] | None, conditions: Conditions = MATMUL) -> Row:
    """A row as a comparison leaves it; without times it says who is missing."""
    shape = {"m": size, "n": size, "k": size} if conditions.kernel == "matmul" else {"n": size}
    statement = Entry(contender, size).statement(conditions)
    made = Row(conditions.kernel, contender.backend, "cpu", "tuned", conditions.dtype, shape, "ok", statement=statement)
    if seconds is None:
        return replace(made, status="unavailable", reason=f"{contender.label} is missing", fix="bring it")
    return replace(made, kernel_seconds=list(seconds))


def measured(**seconds: dict[int, list[float]]) -> dict[Conditions, Report]:
    """A report with samples by the contender's label and by size."""
    rows = [
        row(contender, size, seconds.get(contender.label, {}).get(size))
        for contender in (ONE, OTHER, THIRD)
        for size in (8, 16)
    ]
    rounds = Rounds(len(ROUNDS), len(ROUNDS), {})
    return {MATMUL: Report("now", "1", {}, {}, rows, rounds=rounds)}


def goal(asked: float | None = 1.0, against=(OTHER,), **more) -> Goal:
    comparisons = tuple(
        Comparison(Entry(ONE, size), tuple(Entry(other, size) for other in against)) for size in (8, 16)
    )
    return Goal(MATMUL, "one", "of the other", "2 sizes", comparisons, asked, **more)


def test_the_mean_is_geometric_within_a_round_and_a_median_over_rounds() -> None:
    drift = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
    series = [{n: 2 * d for n, d in enumerate(drift)}, {n: 8 / d for n, d in enumerate(drift)}]
    found = mean(series)
    assert (found.value, found.low, found.high) == pytest.approx((4, 4, 4)), "what slows a round cancels in it"
    spread = mean([dict(enumerate([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]))])
    assert (spread.value, spread.low, spread.high) == pytest.approx((4, 1, 7))


def test_the_mean_takes_rounds_that_have_all_ratios() -> None:
    assert mean([{0: 2.0, 1: 5.0}, {0: 8.0}]).value == pytest.approx(4)
    with pytest.raises(NotMeasured, match="no round in common"):
        mean([{0: 1.0}, {1: 1.0}])


def test_the_worst_is_the_lowest_median() -> None:
    found, at = worst([{0: 1.0, 1: 1.0, 2: 0.1}, {0: 0.9, 1: 0.9, 2: 0.9}])
    assert (found.value, at) == (0.9, 1)
    with pytest.raises(NotMeasured, match="no round in common"):
        worst([{}, {0: 1.0}])


def test_a_figure_is_a_ratio_of_rates_against_the_fastest_at_each_size() -> None:
    measurement = measured(
        one={8: [1.0] * 8, 16: [1.0] * 8},
        other={8: [2.0] * 8, 16: [4.0] * 8},
        third={8: [3.0] * 8, 16: [1.0] * 8},
    )
    found = figure(goal(1.4, (OTHER, THIRD)), measurement)
    assert found.value is not None
    assert found.value.value == pytest.approx(math.sqrt(2 * 1))
    assert found.reached is True
    assert figure(goal(1.5, (OTHER, THIRD)), measurement).reached is False
    assert figure(goal(None, (OTHER, THIRD)), measurement).reached is None


def test_a_figure_that_must_not_be_exceeded_is_a_ratio_of_times() -> None:
    measurement = measured(one={8: [3.0] * 8, 16: [4.0] * 8}, other={8: [1.0] * 8, 16: [1.0] * 8})
    found = figure(goal(4.0, at_most=True, summary="worst"), measurement)
    assert found.value is not None
    assert (found.value.value, found.reached, found.note) == (4.0, True, "at n = 16")
    assert figure(goal(3.9, at_most=True, summary="worst"), measurement).reached is False


def test_of_times_the_interval_is_turned_around() -> None:
    spread = [float(each) for each in range(1, 9)]
    found = figure(goal(at_most=True), measured(one={8: spread, 16: spread}, other={8: [1.0] * 8, 16: [1.0] * 8}))
    assert found.value is not None
    assert (found.value.low, found.value.high) == pytest.approx((1, 8))


def test_sizes_are_compared_by_the_work_they_do() -> None:
    measurement = measured(one={8: [1.0] * 8, 16: [8.0] * 8})
    comparison = Comparison(Entry(ONE, 16), (Entry(ONE, 8),))
    found = figure(Goal(MATMUL, "one", "of itself", "n", (comparison,), 1.0), measurement)
    assert found.value is not None
    assert found.value.value == pytest.approx(1)


def test_what_is_missing_is_no_failure_and_says_why() -> None:
    without_subject = figure(goal(), measured(other={8: [1.0], 16: [1.0]}))
    assert (without_subject.value, without_subject.reached) == (None, None)
    assert without_subject.reason == Reason("one is missing", "bring it")
    without_other = figure(goal(), measured(one={8: [1.0], 16: [1.0]}))
    assert without_other.reason == Reason("other is missing", "bring it")
    without_one_of_two = figure(
        goal(against=(OTHER, THIRD)), measured(one={8: [1.0], 16: [1.0]}, third={8: [1.0], 16: [1.0]})
    )
    assert without_one_of_two.value is not None
    assert without_other.reason.text in (without_one_of_two.note or "")


def test_what_is_wrong_is_no_figure_however_fast() -> None:
    """Neither that of a subject, nor that which others are compared with."""
    times = {8: [1.0] * 8, 16: [1.0] * 8}
    measurement = measured(one=times, other=times, third={8: [0.1] * 8, 16: [0.1] * 8})
    (report,) = measurement.values()
    for at, each in enumerate(report.rows):
        if each.backend == "third":
            report.rows[at] = replace(each, status="mismatch", reason="it is wrong")
    found = figure(goal(against=(OTHER, THIRD)), measurement)
    assert found.value is not None
    assert found.value.value == 1
    assert "third" in (found.note or "")
    assert figure(goal(against=(THIRD,)), measurement).reason == Reason("it is wrong")


def test_a_contender_may_have_a_number_format_of_its_own() -> None:
    """Elements a second of one format over those of another, both of one run."""
    conditions, narrow = Conditions("vecadd", "bfloat16"), Contender("one", KERNEL, "one")
    wide = contenders.in_float32(narrow)
    assert wide.label == "one float32"
    rows = [row(narrow, 1000, [1.0] * 8, conditions), row(wide, 1000, [2.0] * 8, conditions._replace(dtype="float32"))]
    comparison = Comparison(Entry(narrow, 1000), (Entry(wide, 1000),))
    asked = Goal(conditions, "one", "times its float32", "n", (comparison,), 1.9)
    reports = {conditions: Report("now", "1", {}, {}, rows)}
    found = figure(asked, reports)
    assert found.value is not None
    assert (found.value.value, found.reached) == (2.0, True)
    rates = Rates(conditions, reports)
    assert [rates.median(Entry(who, 1000)) * 1e9 for who in (narrow, wide)] == pytest.approx([6 * 1000, 12 * 500])
    plan = measure._plan(conditions, [Entry(contenders.AVX, 8), Entry(contenders.in_float32(contenders.AVX), 8)], 3)
    specs = plan.specs([BackendTarget("avx", Target("avx512"))])
    assert [(spec.dtype, spec.statement) for spec in specs] == [
        ("bfloat16", "pb.vecadd(a, b, out=c, backend='avx')"),
        ("float32", "pb.vecadd(a, b, out=c, backend='avx')"),
    ]


def test_what_no_target_multiplies_is_told_from_a_target_that_is_missing() -> None:
    float16 = Conditions("matmul", "float16")
    targets = [BackendTarget("onednn", Target("cpu", dtypes={"matmul": ("float32", "bfloat16")}))]
    assert measure._plan(float16, [Entry(contenders.ONEDNN, 8)], 3).specs(targets) == []
    rates = Rates(float16, {float16: Report("now", "1", {}, {}, [])})
    assert "float16" in rates.why_not(Entry(contenders.ONEDNN, 8)).text
    assert "target amx" in rates.why_not(Entry(contenders.AMX, 8)).text


def test_statements_are_what_users_write() -> None:
    said = [
        Entry(who, 8).statement(MATMUL._replace(threads=2))
        for who in (contenders.NUMPY, contenders.AVX_AVX2, contenders.MKL)
    ]
    assert said == ["np.matmul(a, b, out=c)", "pb.matmul(a, b, out=c, backend='avx', target='avx2', threads=2)", None]


def test_specs_are_of_the_first_target_that_is_there() -> None:
    there = Target("avx512")
    absent = Target("sse", available=False, reason="no such CPU", fix="buy one")
    found = [BackendTarget("avx", absent), BackendTarget("avx", there)]
    plan = measure._plan(
        MATMUL, [Entry(contenders.AVX, 8), Entry(contenders.PEAK, 8), Entry(contenders.AVX_AVX2, 8)], 3
    )
    (spec,) = plan.specs(found)
    assert (spec.target, spec.sizes, spec.statement) == ("avx512", (8, 8, 8), "pb.matmul(a, b, out=c, backend='avx')")
    assert plan.rounds == 3


def test_variables_are_those_of_the_conditions_for_as_long_as_they_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "5")
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    with measure._environment(Conditions("matmul", "float32", 1, (("OPENBLAS_CORETYPE", "Haswell"),))):
        assert (os.environ["OPENBLAS_NUM_THREADS"], os.environ["OPENBLAS_CORETYPE"]) == ("1", "Haswell")
    assert os.environ["OPENBLAS_NUM_THREADS"] == "5"
    assert "OPENBLAS_CORETYPE" not in os.environ


class TestMeasuring:
    """What `measure` asks of the harness, for goals under three conditions."""

    ALONE = MATMUL._replace(threads=1)
    LARGE = MATMUL._replace(dtype="float64")
    GOALS = (
        goal(),
        replace(goal(), conditions=ALONE),
        Goal(LARGE, "one", "of the other", "n", (Comparison(Entry(ONE, 2048), (Entry(OTHER, 2048),)),), 1.0),
    )

    @pytest.fixture
    def asked(self, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, dict[str, Any]]]:
        """The plans and settings of all comparisons. The second one is interrupted if it has a seed of 2."""
        asked: list[tuple[Any, dict[str, Any]]] = []

        def run(plan: Any, settings: dict[str, Any], _: Any) -> Report:
            asked.append((plan, settings))
            return Report("now", "1", {}, {}, interrupted=settings["seed"] == 2 and len(asked) == 2)

        monkeypatch.setattr(measure, "run", run)
        return asked

    def test_shares_the_budget_by_the_work(self, asked: list[tuple[Any, dict[str, Any]]]) -> None:
        reports = measure.measure(self.GOALS, {"seed": 1, "threads": 2, "budget_seconds": 90.0}, 7, None)
        assert list(reports) == [MATMUL, self.ALONE, self.LARGE]
        first, second, large = (settings["budget_seconds"] for _, settings in asked)
        assert first + second + large == pytest.approx(90)
        assert first == second < large / 2

    def test_takes_the_threads_of_the_conditions_first(self, asked: list[tuple[Any, dict[str, Any]]]) -> None:
        measure.measure(self.GOALS, {"seed": 1, "threads": 2, "budget_seconds": 90.0}, 7, None)
        assert [settings["threads"] for _, settings in asked] == [2, 1, 2]

    def test_skips_what_takes_too_long_at_its_size(self, asked: list[tuple[Any, dict[str, Any]]]) -> None:
        """A figure at a smaller size is none of the goal's."""
        measure.measure(self.GOALS, {"seed": 1, "threads": None, "budget_seconds": 90.0}, 7, None)
        assert {(plan.shorten, plan.timed_only, plan.rounds) for plan, _ in asked} == {(False, True, 7)}

    def test_ends_with_an_interruption(self, asked: list[tuple[Any, dict[str, Any]]]) -> None:
        reports = measure.measure(self.GOALS, {"seed": 2, "threads": None, "budget_seconds": 90.0}, 7, None)
        assert list(reports) == [MATMUL, self.ALONE]


def test_a_ceiling_is_a_rate_of_the_case_by_round() -> None:
    """A kernel that takes twice as long as its bytes or its operations need has half of the ceiling."""
    conditions = Conditions("vecadd", "float32")
    one = Contender("one", KERNEL, "one")
    near, far = (
        Ceiling("cpu", STREAMED, "float32", "avx2", 2, size, "gbytes_per_second", 1.0, None, None, [rate] * 8)
        for size, rate in ((12_000, 3.0), (12_000_000, 1.0))
    )
    record = Ceiling("cpu", STREAMED, "float32", "sse", 2, 12_000, "gbytes_per_second", 9.0, None, None)
    peak = Ceiling("cpu", MULTIPLY_ADDS, "float32", "avx2", 2, None, "gflops", 1.0, None, None, [1.0] * 8)
    report = Report("now", "1", {}, {}, [row(one, 1000, [8e-6] * 8, conditions)], ceilings=[record, far, near, peak])
    for ceiling, expected in (contenders.STREAMED, 0.5), (contenders.PEAK, 0.125):
        comparison = Comparison(Entry(one, 1000), (Entry(ceiling, 1000),))
        found = figure(Goal(conditions, "one", "of the ceiling", "n", (comparison,), 1.0), {conditions: report})
        assert found.value is not None
        assert found.value.value == pytest.approx(expected)


def test_what_was_interrupted_says_so() -> None:
    reason = figure(goal(), {}).reason
    assert reason is not None
    assert "interrupted" in reason.text


def test_tables_have_a_line_a_goal_and_a_column_a_contender() -> None:
    measurement = measured(one={8: [1.0] * 8, 16: [1.0] * 8}, other={8: [2.0] * 8, 16: [2.0] * 8})
    figures = [figure(goal(), measurement), figure(goal(against=(THIRD,)), measurement)]
    console = Console(width=120)
    with console.capture() as captured:
        for section in (*table.goal_sections(figures), *table.size_sections(figures, measurement)):
            print_section(section, console)
        print_remarks("Not measured", table.missing(figures), console)
    lines = captured.get().splitlines()
    assert any("2.000 to 2.000" in line and "reached" in line for line in lines)
    assert any("not measured" in line for line in lines)
    assert any("third is missing" in line and "bring it" in line for line in lines)
    assert any(line.split() == ["n", "8", "16"] for line in lines)
    assert any(line.split() == ["one", "of", "the", "other", "2.00", "2.00"] for line in lines)


def test_goals_of_cpus_and_gpus_may_have_other_kinds_of_sizes() -> None:
    lines = [("avx", {16384: 1.0}), ("cuda", {(131072, 1024): 2.0})]
    (section,) = table._by_size("nbody float32", "medians", lines)
    assert section.header == ("n", "16384", "131072x1024")


def test_the_last_line_counts_what_was_reached() -> None:
    measurement = measured(one={8: [1.0] * 8, 16: [1.0] * 8}, other={8: [2.0] * 8, 16: [2.0] * 8})
    asked = [goal(1.0), goal(2.5), goal(2.6), goal(9.0), goal(None), goal(against=(THIRD,))]
    console, report = Console(width=120), measurement[MATMUL]
    with console.capture() as captured:
        table.print_all(report, [figure(each, measurement) for each in asked], measurement, console)
    assert re.findall(r"\d+", captured.get().splitlines()[-1]) == ["1", "3", "1"], "reached, not reached, not measured"


def test_json_is_strict_and_has_every_sample() -> None:
    measurement = measured(one={8: [1.0] * 8, 16: [1.0] * 8})
    text = command.to_json([figure(goal(), measurement)], measurement)
    found = json.loads(text, parse_constant=lambda constant: pytest.fail(f"{constant} is no JSON"))
    assert found["figures"][0]["reason"] == "other is missing"
    assert found["figures"][0]["figure"] is None
    (comparison,) = found["comparisons"]
    assert comparison["under"] == {"threads": None, "environment": {}}
    assert [row["kernel_seconds"] for row in comparison["rows"][:2]] == [[1.0] * 8] * 2


class TestCommand:
    """From the arguments to the exit code, with a comparison that found nothing in place of a measurement."""

    OPTIONS = ("--only", "openmp", "--kernel", "vecadd", "--dtype", "float32", "--elements", "1000", "--seed", "0")

    def run(self, monkeypatch: pytest.MonkeyPatch, measured: Callable[[], object], *options: str, **found: Any) -> int:
        def measure(wanted: Sequence[Goal], settings: dict[str, Any], *_: Any) -> dict[Conditions, Report]:
            assert settings["seed"] == 0
            measured()
            return {each.conditions: Report("now", "1", {"cpu": "a CPU"}, {}, **found) for each in wanted}

        monkeypatch.setattr(command, "measure", measure)
        return command.main([*self.OPTIONS, *options])

    def test_every_goal_is_judged(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        file = tmp_path / "a.json"
        assert self.run(monkeypatch, lambda: None, "--dtype", "bfloat16,float16", "--json", str(file)) == 0
        assert "2 not measured" in capsys.readouterr().out
        assert [each["dtype"] for each in json.loads(file.read_text())["figures"]] == ["bfloat16", "float16"]

    def test_an_interruption_is_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.run(monkeypatch, lambda: None, interrupted=True) == 130

    def test_what_cannot_be_written_is_shown(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        folder = tmp_path / "lost"
        folder.mkdir()
        assert self.run(monkeypatch, folder.rmdir, "--json", str(folder / "a.json")) == 1
        shown = capsys.readouterr()
        assert "1 not measured" in shown.out
        assert len(shown.err.splitlines()) == 1
        assert str(folder / "a.json") in shown.err


@pytest.mark.parametrize(
    "wrong",
    [
        ["--only", "avy"],
        ["--kernel", "matmull"],
        ["--dtype", "float8"],
        ["--sizes", "64,,127"],
        ["--sizes", "0"],
        ["--threads", "0"],
        ["--rounds", "many"],
        ["--budget", "-1"],
        ["--budget", "nan"],
        ["--json", "/no/such/folder/file.json"],
        ["--json", "/proc/file.json"],
        ["--seed", "-1"],
        ["--unknown"],
        ["--only", "numba_cuda", "--kernel", "vecadd"],
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(wrong)
    assert ended.value.code == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_machine_without_a_contender_says_so_at_once() -> None:
    run = run_python("-m", "benchmarks", "--only", "cuda", "--sizes", "16", "--elements", "100", "--budget", "0.1")
    assert run.returncode == 0, run.stderr
    assert "without TF32" in run.stdout


@pytest.mark.nightly
@pytest.mark.avx
def test_the_whole_at_small_sizes(tmp_path) -> None:
    file = tmp_path / "benchmarks.json"
    run = run_python(
        *("-m", "benchmarks", "--only", "avx,openmp", "--sizes", "16,33", "--elements", "1000", "--budget", "60"),
        *("--rounds", "7", "--dtype", "float32", "--json", file),
    )
    assert run.returncode == 0, run.stdout + run.stderr
    found = json.loads(file.read_text(encoding="utf-8"))
    figures = {(each["subject"], each["ratio"]): each for each in found["figures"]}
    for subject, ratio in ("avx", "of NumPy"), ("avx 1 thread", "of the FMA peak"), ("avx", "times numpy.add a call"):
        assert figures[subject, ratio]["figure"] > 0, figures[subject, ratio]["reason"]
        assert f"{figures[subject, ratio]['figure']:.3f}" in run.stdout
    timed = [row for each in found["comparisons"] for row in each["rows"] if row["status"] == "ok"]
    assert {row["shape"]["n"] for row in timed} == {16, 33, 1000, 1024}
    assert {row["statement"] for row in timed} >= {None, "np.add(a, b, out=c)", "pb.matmul(a, b, out=c, backend='avx')"}
    assert all(row["check"]["passed"] and row["seconds"]["kernel"]["samples"] <= 7 for row in timed)
