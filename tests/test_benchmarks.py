"""The benchmarks: what they make of samples, what they take as arguments, and one small run of the whole."""

from __future__ import annotations

import json
import math
import random
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from commands import run_python
from rich.console import Console

from benchmarks import __main__ as command
from benchmarks import goals, measure, table
from benchmarks.figures import figure, mean, worst
from benchmarks.goals import Comparison, Contender, Entry, Goal
from benchmarks.measure import Measurement, Reason
from py_backends.harness.results import Report

ROUNDS = range(8)
ONE, OTHER, THIRD = (Contender(label, "call", label) for label in ("one", "other", "third"))


def entry(contender: Contender, size: int) -> Entry:
    return Entry(contender, "matmul", "float32", size)


def measured(**seconds: dict[int, list[float]]) -> Measurement:
    """Samples by the contender's label and by size."""
    samples = {
        entry(contender, size): dict(enumerate(times))
        for contender in (ONE, OTHER, THIRD)
        for size, times in seconds.get(contender.label, {}).items()
    }
    reasons = {
        entry(contender, size): Reason(f"{contender.label} is missing", "bring it")
        for contender in (ONE, OTHER, THIRD)
        for size in (8, 16)
        if entry(contender, size) not in samples
    }
    return Measurement(samples, reasons, {("matmul", "float32"): len(ROUNDS)})


def goal(asked: float | None = 1.0, against=(OTHER,), **more) -> Goal:
    comparisons = tuple(
        Comparison(entry(ONE, size), tuple(entry(other, size) for other in against)) for size in (8, 16)
    )
    return Goal("one", "one", "of the other", "2 sizes", comparisons, asked, **more)


def test_the_mean_is_geometric_within_a_round_and_a_median_over_rounds() -> None:
    drift = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
    series = [{n: 2 * d for n, d in enumerate(drift)}, {n: 8 / d for n, d in enumerate(drift)}]
    found = mean(series)
    assert (found.value, found.low, found.high) == pytest.approx((4, 4, 4)), "what slows a round cancels in it"
    spread = mean([dict(enumerate([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]))])
    assert (spread.value, spread.low, spread.high) == pytest.approx((4, 1, 7))


def test_the_mean_takes_rounds_that_have_all_ratios() -> None:
    assert mean([{0: 2.0, 1: 5.0}, {0: 8.0}]).value == pytest.approx(4)
    with pytest.raises(ValueError, match="no round in common"):
        mean([{0: 1.0}, {1: 1.0}])


def test_the_worst_is_the_lowest_median() -> None:
    found, at = worst([{0: 1.0, 1: 1.0, 2: 0.1}, {0: 0.9, 1: 0.9, 2: 0.9}])
    assert (found.value, at) == (0.9, 1)


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


def test_sizes_are_compared_by_the_work_they_do() -> None:
    measurement = measured(one={8: [1.0] * 8, 16: [8.0] * 8})
    comparison = Comparison(entry(ONE, 16), (entry(ONE, 8),))
    found = figure(Goal("one", "one", "of itself", "n", (comparison,), 1.0), measurement)
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
    assert without_one_of_two.note == "without other (other is missing)"


def test_the_goals_are_those_of_the_issue() -> None:
    found = goals.goals()
    assert {each.backend for each in found} == set(command.BACKENDS)
    for dtype in goals.DTYPES:
        asked = {(g.subject, g.what): g.asked for g in found if (g.kernel, g.dtype) == ("matmul", dtype)}
        assert asked["avx", "of the best library"] == 1.00
        assert asked["avx", "of NumPy"] == 1.15
        assert asked["avx 1 thread", "of the FMA peak"] == 0.80
        assert asked["opencl", "of NumPy, kernel"] == (0.95 if dtype == "float32" else 0.90)
        assert asked["sycl e2e", "of NumPy, end to end"] == (0.85 if dtype == "float32" else 0.80)
    means = next(each for each in found if each.what == "of the best library")
    assert [each.subject.size for each in means.comparisons] == list(goals.SIZES)


def test_every_goal_is_of_one_kernel_and_dtype() -> None:
    for each in goals.goals():
        assert {(entry.kernel, entry.dtype) for entry in each.entries()} == {(each.kernel, each.dtype)}


def test_neighbours_are_one_off_round_sizes() -> None:
    found = [each for each in goals.goals(["float32"], [127, 256, 1000, 4096]) if each.summary == "worst"]
    pairs = {(c.subject.size, c.against[0].size) for g in found if not g.at_most for c in g.comparisons}
    assert pairs == {(255, 256), (257, 256), (999, 1000), (1001, 1000)}


def test_a_round_keeps_sizes_together() -> None:
    rows = [SimpleNamespace(entry=entry(who, size)) for size in (255, 256, 257, 64, 512) for who in (ONE, OTHER)]
    orders = set()
    for seed in range(20):
        measure._SizesTogether(random.Random(seed)).shuffle(rows)
        sizes = [row.entry.size for row in rows]
        runs = [size // 250 for size in sizes]
        assert sum(here != there for here, there in pairwise(runs)) == 2
        orders.add(tuple(sizes))
    assert len(orders) > 10


def test_tables_have_a_line_a_goal_and_a_column_a_contender() -> None:
    measurement = measured(one={8: [1.0] * 8, 16: [1.0] * 8}, other={8: [2.0] * 8, 16: [2.0] * 8})
    figures = [figure(goal(), measurement), figure(goal(against=(THIRD,)), measurement)]
    console = Console(width=120)
    with console.capture() as captured:
        table.print_goals(figures, console)
        table.print_missing(figures, console)
        table.print_sizes(figures, measurement, console)
    lines = captured.get().splitlines()
    assert any("2.000 to 2.000" in line and "reached" in line for line in lines)
    assert any("not measured" in line for line in lines)
    assert any("third is missing" in line and "bring it" in line for line in lines)
    assert any("one / other" in line for line in lines)
    assert any(line.split() == ["16", "2.00"] for line in lines)


def test_json_is_strict_and_has_every_sample() -> None:
    measurement = measured(one={8: [1.0] * 8, 16: [1.0] * 8})
    figures = [figure(goal(), measurement)]
    text = command.to_json(Report("now", "1", {}, {}), figures, measurement)
    found = json.loads(text, parse_constant=lambda constant: pytest.fail(f"{constant} is no JSON"))
    assert found["figures"][0]["reason"] == "other is missing"
    assert found["figures"][0]["figure"] is None
    assert [each["n"] for each in found["entries"]] == [8, 16]
    assert found["entries"][0]["seconds"] == [1.0] * 8
    assert found["entries"][0]["rate"] == pytest.approx(2 * 8**3 / 1e9)


def test_columns_that_do_not_fit_stand_below(capsys: pytest.CaptureFixture[str]) -> None:
    columns = {f"contender {number}": {8: "1.00", 16: "2.00"} for number in range(9)}
    table._print_by_size("rates", columns, Console(width=60))
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 60 for line in lines)
    assert " ".join(lines).count("contender") == 9
    assert sum(line.split()[:1] == ["16"] for line in lines) == 3


@pytest.mark.parametrize(
    "wrong",
    [
        ["--only", "avy"],
        ["--kernel", "matmull"],
        ["--dtype", "float16"],
        ["--sizes", "64,,127"],
        ["--sizes", "0"],
        ["--threads", "0"],
        ["--rounds", "many"],
        ["--budget", "-1"],
        ["--budget", "nan"],
        ["--json", "/no/such/folder/file.json"],
        ["--unknown"],
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
    assert "of cuBLAS without TF32" in run.stdout


@pytest.mark.avx
def test_the_whole_at_small_sizes(tmp_path) -> None:
    file = tmp_path / "benchmarks.json"
    run = run_python(
        *("-m", "benchmarks", "--only", "avx,openmp", "--sizes", "16,33", "--elements", "1000", "--budget", "0.1"),
        *("--rounds", "2", "--dtype", "float32", "--json", file),
    )
    assert run.returncode == 0, run.stdout + run.stderr
    found = json.loads(file.read_text(encoding="utf-8"))
    figures = {(each["subject"], each["ratio"]): each for each in found["figures"]}
    for subject, ratio in ("avx", "of NumPy"), ("avx 1 thread", "of the FMA peak"), ("avx", "times numpy.add a call"):
        assert figures[subject, ratio]["figure"] > 0, figures[subject, ratio]["reason"]
        assert f"{figures[subject, ratio]['figure']:.3f}" in run.stdout
    assert {each["n"] for each in found["entries"]} == {16, 33, 1000, 1024}
    assert all(len(each["seconds"]) == 2 and np.all(np.array(each["seconds"]) > 0) for each in found["entries"])
