"""The benchmarks: what they make of samples, what they take as arguments, and one small run of the whole."""

from __future__ import annotations

import json
import math
import os

import pytest
from commands import run_python
from conftest import NIGHTLY
from rich.console import Console

from benchmarks import __main__ as command
from benchmarks import goals, measure, table
from benchmarks.figures import NotMeasured, Rates, Reason, figure, mean, worst
from benchmarks.goals import CALL, KERNEL, Comparison, Conditions, Contender, Entry, Goal
from py_backends.contract import Target
from py_backends.harness.ceilings import STREAMED
from py_backends.harness.doctor import BackendTarget
from py_backends.harness.results import Ceiling, Report, Rounds, Row
from py_backends.harness.timed_ceilings import MULTIPLY_ADDS
from py_backends.report.table import print_remarks, print_section

ROUNDS = range(8)
MATMUL = Conditions("matmul", "float32")
ONE, OTHER, THIRD = (Contender(label, CALL, label) for label in ("one", "other", "third"))


def row(contender: Contender, size: int, seconds: list[float] | None, conditions: Conditions = MATMUL) -> Row:
    """A row as a comparison leaves it; without times it says who is missing."""
    shape = {"m": size, "n": size, "k": size} if conditions.kernel == "matmul" else {"n": size}
    statement = Entry(contender, size).statement(conditions)
    made = Row(conditions.kernel, contender.backend, "cpu", "tuned", conditions.dtype, shape, "ok", statement=statement)
    if seconds is None:
        made.status, made.reason, made.fix = "unavailable", f"{contender.label} is missing", "bring it"
    made.kernel_seconds = list(seconds or ())
    return made


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
    assert without_one_of_two.note == "without other (other is missing)"


def test_the_goals_are_those_of_the_issue() -> None:
    found = goals.goals()
    assert {each.backend for each in found} == set(command.BACKENDS)
    for dtype in goals.WIDE:
        asked = {(g.subject, g.what): g.asked for g in found if g.conditions[:2] == ("matmul", dtype)}
        assert asked["avx", "of the best library"] == 1.00
        assert asked["avx", "of NumPy"] == 1.15
        assert asked["avx 1 thread", "of the FMA peak"] == 0.80
        assert asked["opencl", "of NumPy, kernel"] == (0.95 if dtype == "float32" else 0.90)
        assert asked["sycl e2e", "of NumPy, end to end"] == (0.85 if dtype == "float32" else 0.80)
    means = next(each for each in found if each.what == "of the best library")
    assert [each.subject.size for each in means.comparisons] == list(goals.SIZES)


def test_the_goals_of_narrow_formats_are_those_of_their_issue() -> None:
    found = goals.goals()
    asked = {(*g.conditions[:2], g.subject, g.what): g.asked for g in found}
    libraries = {"bfloat16": 1.10, "float16": 1.50, "int8": 1.00}
    for dtype, ratio in libraries.items():
        assert asked["matmul", dtype, "avx amx", "of the best library"] == ratio
    assert asked["matmul", "bfloat16", "avx amx", "of the peak of the format"] == 0.45
    assert asked["matmul", "bfloat16", "avx amx", "of the rate at n, at n ± 1"] == 0.85
    assert asked["matmul", "bfloat16", "sycl amx", "of avx amx"] == 0.50
    assert asked["matmul", "bfloat16", "numba_cpu amx", "of avx amx"] == 0.60
    backends = "avx", "openmp", "cpp", "opencl", "pocl", "sycl", "numba_cpu"
    for dtype in ("bfloat16", "float16"):
        for who in backends:
            widening = "avx avx512" if who == "avx" else who
            assert asked["matmul", dtype, widening, "of its float32"] == 0.95
            assert asked["vecadd", dtype, who, "times its float32"] == (1.9 if who == "avx" else 1.7)
    assert not any(kernel == "vecadd" and dtype == "int8" for kernel, dtype, *_ in asked)
    (best, large) = (
        next(g for g in found if g.conditions.dtype == "float16" and g.what == what)
        for what in ("of its float32", "of the best library")
    )
    assert [each.subject.size for each in best.comparisons] == [512, 1000, 1024, 2048, 4096]
    assert [each.subject.size for each in large.comparisons] == [1024, 2048, 4096]
    assert {each.contender for each in large.comparisons[0].against} == {goals.MKL, goals.ONEDNN}


def test_a_contender_may_have_a_number_format_of_its_own() -> None:
    """Elements a second of one format over those of another, both of one run."""
    conditions, narrow = Conditions("vecadd", "bfloat16"), Contender("one", KERNEL, "one")
    wide = goals.in_float32(narrow)
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
    plan = measure._plan(conditions, [Entry(goals.AVX, 8), Entry(goals.in_float32(goals.AVX), 8)], 3)
    specs = plan.specs([BackendTarget("avx", Target("avx512"))])
    assert [(spec.dtype, spec.statement) for spec in specs] == [
        ("bfloat16", "pb.vecadd(a, b, out=c, backend='avx')"),
        ("float32", "pb.vecadd(a, b, out=c, backend='avx')"),
    ]


def test_what_no_target_multiplies_is_told_from_a_target_that_is_missing() -> None:
    float16 = Conditions("matmul", "float16")
    targets = [BackendTarget("onednn", Target("cpu", dtypes={"matmul": ("float32", "bfloat16")}))]
    assert measure._plan(float16, [Entry(goals.ONEDNN, 8)], 3).specs(targets) == []
    rates = Rates(float16, {float16: Report("now", "1", {}, {}, [])})
    assert rates.why_not(Entry(goals.ONEDNN, 8)) == Reason("onednn has no matmul in float16 here")
    assert rates.why_not(Entry(goals.AMX, 8)) == Reason("avx has no target amx here")


def test_conditions_are_shared_by_both_sides_of_a_ratio() -> None:
    """Who is held to one thread or to AVX2 is compared with others that are."""
    one_thread = [each for each in goals.goals() if each.what == "of the FMA peak"]
    assert {each.conditions.threads for each in one_thread} == {1}
    assert [each.backend for each in one_thread[:4]] == ["avx", "avx", "avx", "cpp"]
    held = [each for each in goals.goals() if each.what == "of NumPy held to AVX2"]
    assert {each.conditions.environment for each in held} == {(("OPENBLAS_CORETYPE", "Haswell"),)}


def test_statements_are_what_users_write() -> None:
    said = [Entry(who, 8).statement(MATMUL._replace(threads=2)) for who in (goals.NUMPY, goals.AVX_AVX2, goals.MKL)]
    assert said == ["np.matmul(a, b, out=c)", "pb.matmul(a, b, out=c, backend='avx', target='avx2', threads=2)", None]


def test_specs_are_of_the_first_target_that_is_there() -> None:
    there = Target("avx512")
    absent = Target("sse", available=False, reason="no such CPU", fix="buy one")
    found = [BackendTarget("avx", absent), BackendTarget("avx", there)]
    plan = measure._plan(MATMUL, [Entry(goals.AVX, 8), Entry(goals.PEAK, 8), Entry(goals.AVX_AVX2, 8)], 3)
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
    for ceiling, expected in (goals.STREAMED, 0.5), (goals.PEAK, 0.125):
        comparison = Comparison(Entry(one, 1000), (Entry(ceiling, 1000),))
        found = figure(Goal(conditions, "one", "of the ceiling", "n", (comparison,), 1.0), {conditions: report})
        assert found.value is not None
        assert found.value.value == pytest.approx(expected)


def test_what_was_interrupted_says_so() -> None:
    assert figure(goal(), {}).reason == Reason("interrupted before it ran")


def test_neighbours_are_one_off_round_sizes() -> None:
    found = [each for each in goals.goals(["float32"], [127, 256, 1000, 4096]) if each.summary == "worst"]
    pairs = {(c.subject.size, c.against[0].size) for g in found if not g.at_most for c in g.comparisons}
    assert pairs == {(255, 256), (257, 256), (999, 1000), (1001, 1000)}


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


def test_json_is_strict_and_has_every_sample() -> None:
    measurement = measured(one={8: [1.0] * 8, 16: [1.0] * 8})
    text = command.to_json([figure(goal(), measurement)], measurement)
    found = json.loads(text, parse_constant=lambda constant: pytest.fail(f"{constant} is no JSON"))
    assert found["figures"][0]["reason"] == "other is missing"
    assert found["figures"][0]["figure"] is None
    (comparison,) = found["comparisons"]
    assert comparison["under"] == {"threads": None, "environment": {}}
    assert [row["kernel_seconds"] for row in comparison["rows"][:2]] == [[1.0] * 8] * 2


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
    assert "of cuBLAS without TF32" in run.stdout


@NIGHTLY
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
