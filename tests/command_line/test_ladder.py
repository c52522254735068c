"""The ladder: gains of each rung on made-up reports, the data of the kernels, and once through the command line."""

from __future__ import annotations

import json
import math
import re
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from commands import run_here
from made_rows import with_work, without_rounds
from page_commands import PageRuns
from rich.console import Console

from py_backends import registry
from py_backends.commands import _run
from py_backends.commands.ladder import picture
from py_backends.commands.ladder import plan as ladder
from py_backends.commands.ladder.analysis import Climb, climbs
from py_backends.commands.ladder.plan import ladders
from py_backends.commands.ladder.table import print_report
from py_backends.contract import Target
from py_backends.display import style
from py_backends.harness import compare, estimates
from py_backends.harness.plan import Plan
from py_backends.results.report import Ceiling, Duration, Rate, Report, Row, Seconds
from py_backends.workers.probe import BackendTarget

ROUNDS = 24
RATES = {
    ("python", "lecture"): 0.02,
    ("cpp", "lecture"): 1.0,
    ("openmp", "lecture"): 1.9,
    ("openmp", "tuned"): 160.0,
    ("avx", "tuned"): 180.0,
}
"""GFLOP/s of a made-up machine with a peak of 200."""


def cube(n: int) -> dict[str, int]:
    return {"m": n, "n": n, "k": n}


def row_of(backend: str, variant: str, gflops: float, n: int = 800, noise: float = 0.002, **others: Any) -> Row:
    """An `ok` row of matmul at n, asked for at 800, whose samples drift with the machine and have noise."""
    seconds = 2 * n**3 / gflops / 1e9
    generator = np.random.default_rng([len(backend), len(variant), n])
    drift = np.linspace(1, 3, ROUNDS)
    samples = seconds * drift * np.exp(generator.normal(0, noise, ROUNDS))
    made = Row("matmul", backend, "cpu", variant, "float64", cube(n), "ok", threads=2, percent_of_ceiling=gflops / 2)
    made = replace(
        made,
        seconds=Seconds(kernel=Duration(seconds, seconds, seconds, seconds, ROUNDS)),
        rate=Rate(gflops, 1.0),
        requested=cube(800) if n != 800 else None,
        kernel_seconds=samples.tolist(),
    )
    return with_work(replace(made, **others))


def moving_row(backend: str, variant: str, gbytes_per_second: float) -> Row:
    """An `ok` row of transpose without the samples of its rounds."""
    made = Row("transpose", backend, "cpu", variant, "float64", {"n": 4096, "m": 4096}, "ok", threads=2)
    kernel = 2 * 8 * 4096**2 / gbytes_per_second / 1e9
    seconds = Seconds(kernel=Duration(kernel, kernel, kernel, kernel, ROUNDS))
    return with_work(replace(made, seconds=seconds, rate=Rate(0.0, gbytes_per_second)))


def rows_of() -> list[Row]:
    """All rungs but that of the GPU; Python's at 200."""
    return [row_of(*name, rate, n=200 if name[0] == "python" else 800) for name, rate in RATES.items()]


def report_of(*rows: Row) -> Report:
    ceilings = [
        Ceiling("cpu", "multiply_adds", "float64", "avx512", 2, None, "gflops", 200.0, 199.0, 201.0),
        Ceiling("cpu", "stored_additions", "float64", "avx512", 2, 10**6, "gbytes_per_second", 50.0, 49.0, 51.0),
    ]
    return Report("2026-01-01", "0.1.0", {"cpu": "a CPU"}, {"seed": 1}, list(rows), ceilings=ceilings)


def climb_of(*rows: Row) -> Climb:
    (climb,) = climbs(report_of(*rows))
    return climb


def printed(report: Report, width: int = 120) -> str:
    out = Console(width=width, no_color=True, force_terminal=False)
    with out.capture() as captured:
        print_report(report, out)
    return captured.get()


@pytest.mark.parametrize("kernel", ladders())
class TestData:
    def test_every_rung_is_a_text(self, kernel: str) -> None:
        for rung in (*ladders()[kernel].rungs, *ladders()[kernel].formats):
            assert rung.variant in registry.kernel_texts(kernel, rung.backend)

    def test_rungs_of_formats_are_of_texts_that_have_them(self, kernel: str) -> None:
        for rung in ladders()[kernel].formats:
            assert rung.dtype in registry.dtypes(registry.kernel_texts(kernel, rung.backend)[rung.variant])

    def test_published_figures_rise_from_1(self, kernel: str) -> None:
        published = [rung.published for rung in ladders()[kernel].rungs if rung.published is not None]
        assert published[0] == 1
        assert published == sorted(published)

    def test_published_percents_are_those_of_the_speed_ups(self, kernel: str) -> None:
        """All figures of a publication are of one machine, and of one peak: to the digits that it gives."""
        rungs = [rung for rung in ladders()[kernel].rungs if rung.published]
        last = rungs[-1]
        assert last.published is not None
        assert last.published_percent is not None
        for rung in rungs:
            assert rung.published is not None
            expected = last.published_percent * rung.published / last.published
            assert rung.published_percent == pytest.approx(expected, abs=0.006)

    def test_its_sizes_are_the_kernels(self, kernel: str) -> None:
        assert len(ladders()[kernel].sizes) == len(registry.problem(kernel).dimensions)


def test_matmul_has_the_ladder_of_leiserson_and_others() -> None:
    rungs = ladders()["matmul"].rungs
    assert [rung.published for rung in rungs] == [1, 47, 366, 6727, 62_806, None]
    assert rungs[4].published_percent == 40.45


class TestGains:
    def test_over_the_first_rung_are_of_rates_where_shapes_differ(self) -> None:
        climb = climb_of(*rows_of())
        assert [(step.row.backend, step.row.variant) for step in climb.steps] == list(RATES)
        assert climb.steps[0].over_first is None
        for step, rate in zip(climb.steps[1:], list(RATES.values())[1:], strict=True):
            assert step.over_first is not None
            assert step.over_first.speedup == pytest.approx(rate / 0.02, rel=0.005)
            assert (step.over_first.baseline, step.over_first.same_shape) == ("python", False)

    def test_over_the_rung_below_are_paired_by_rounds(self) -> None:
        """The machine becomes three times as slow: only within a round is 180 against 160 to be seen at all."""
        step = climb_of(*rows_of()).steps[-1]
        assert step.over_below is not None
        gain = step.over_below
        assert (gain.verdict, gain.same_shape, gain.rounds) == ("faster", True, ROUNDS)
        assert gain.low is not None
        assert gain.high is not None
        assert 1.11 < gain.low < 180 / 160 < gain.high < 1.14

    def test_interval_is_that_of_the_median(self) -> None:
        """1.25 times the standard error of a mean, as of normal samples, within what 24 rounds tell of it."""
        rows = [row_of("python", "lecture", 1.0, noise=0.0), row_of("cpp", "lecture", 2.0, noise=0.02)]
        gain = climb_of(*rows).steps[1].over_first
        assert gain is not None
        assert gain.low is not None
        assert gain.high is not None
        expected = 1.96 * 1.25 * 0.02 / math.sqrt(ROUNDS)
        assert math.log(gain.high / gain.low) / 2 == pytest.approx(expected, rel=0.6)
        assert gain.low < 2.0 * 1.01
        assert gain.high > 2.0 * 0.99

    def test_a_dropped_round_pairs_with_nothing(self) -> None:
        rows = rows_of()
        rows[3], rows[4] = without_rounds(rows[3], 5), without_rounds(rows[4], 6, 7)
        gain = climb_of(*rows).steps[4].over_below
        assert gain is not None
        assert gain.rounds == ROUNDS - 3

    @pytest.mark.parametrize(
        ("rate", "verdict"), [(160.4, "same"), (120.0, "slower"), (161.6, "same"), (163.3, "faster")]
    )
    def test_are_judged_by_their_intervals(self, rate: float, verdict: str) -> None:
        rows = rows_of()
        rows[4] = row_of("avx", "tuned", rate)
        gain = climb_of(*rows).steps[4].over_below
        assert gain is not None
        assert gain.verdict == verdict

    def test_of_few_rounds_are_unclear(self) -> None:
        """Five rounds have no interval yet; but they are not too few for what is ten times as fast."""
        rows = [replace(row, kernel_seconds=row.kernel_seconds[:5]) for row in rows_of()]
        assert [step.over_below.verdict for step in climb_of(*rows).steps if step.over_below] == [
            "faster",
            "unclear",
            "faster",
            "unclear",
        ]
        more = [replace(row, kernel_seconds=row.kernel_seconds[:9]) for row in rows_of()]
        assert [step.over_below.verdict for step in climb_of(*more).steps if step.over_below] == ["faster"] * 4

    def test_without_samples_are_those_of_the_medians(self) -> None:
        rows = [replace(row, kernel_seconds=[]) for row in rows_of()]
        gain = climb_of(*rows).steps[4].over_below
        assert gain is not None
        assert gain.speedup == pytest.approx(180 / 160)
        assert (gain.low, gain.high, gain.verdict) == (None, None, "unclear")

    def test_of_a_kernel_without_arithmetic_are_compared_in_what_it_moves(self) -> None:
        """Rows of 0 GFLOP/s were no rungs, so that a ladder of transpose was not shown at all."""
        names = [(rung.backend, rung.variant) for rung in registry.problem("transpose").steps[0].rungs]
        rows = [moving_row(*name, gbytes_per_second=float(at)) for at, name in enumerate(names, 1)]
        climb = climb_of(*rows)
        assert [step.row.variant for step in climb.steps] == [variant for _, variant in names]
        assert [step.over_first.speedup for step in climb.steps[1:] if step.over_first] == pytest.approx([2, 3, 4, 5])
        assert "GB/s" in printed(report_of(*rows))

    def test_percent_is_of_the_peak(self) -> None:
        assert climb_of(*rows_of()).steps[4].percent_of_peak == 90.0


class TestRungs:
    def test_take_the_fastest_target(self) -> None:
        rows = [*rows_of(), row_of("avx", "tuned", 50.0, target="sse"), row_of("avx", "tuned", 190.0, target="avx512")]
        assert climb_of(*rows).steps[-1].row.target == "avx512"

    def test_take_the_most_threads(self) -> None:
        rows = [*rows_of(), row_of("avx", "tuned", 300.0, target="alone", threads=1)]
        assert climb_of(*rows).steps[-1].row.target == "cpu"

    def test_that_were_not_timed_are_named_with_the_reason(self) -> None:
        rows = rows_of()
        rows[1] = replace(rows[1], status="crashed", reason="it ended by SIGSEGV", seconds=None, rate=None)
        unavailable = replace(rows[1], backend="cuda", variant="tuned", status="unavailable", reason="no NVIDIA driver")
        climb = climb_of(*rows, unavailable)
        reasons = [(rung.backend, reason) for rung, reason in climb.missing]
        assert reasons == [("cpp", "it ended by SIGSEGV"), ("cuda", "no NVIDIA driver")]
        below = climb.steps[1].over_below
        assert below is not None
        assert (climb.steps[1].row.backend, below.baseline) == ("openmp", "python")

    def test_without_the_first_one_nothing_is_over_it(self) -> None:
        climb = climb_of(*rows_of()[1:])
        assert [step.over_first for step in climb.steps] == [None] * 4
        assert "not requested" in climb.missing[0][1]

    def test_baseline_stands_beside(self) -> None:
        climb = climb_of(*rows_of(), row_of("numpy", "lecture", 150.0))
        assert len(climb.steps) == 5
        (baseline,) = climb.baselines
        assert baseline.rung is None
        assert baseline.over_first is not None
        assert baseline.over_first.speedup == pytest.approx(7500, rel=0.01)

    def test_shapes_and_dtypes_are_ladders_of_their_own(self) -> None:
        single = [replace(row, dtype="float32") for row in rows_of()]
        vecadd = Row("vecadd", "cpp", "cpu", "tuned", "float64", {"n": 9}, "ok")
        found = climbs(report_of(*rows_of(), *single, row_of("cpp", "lecture", 3.0, shape=cube(100)), vecadd))
        assert [(climb.dtype, climb.shape["m"], len(climb.steps)) for climb in found] == [
            ("float64", 800, 5),
            ("float32", 800, 5),
            ("float64", 100, 1),
        ]


def narrow_rows() -> list[Row]:
    """Fewer bits on the target of the rung below, and on a matrix unit."""
    return [
        row_of("avx", "tuned", 200.0, dtype="bfloat16", target="avx512"),
        row_of("avx", "tuned", 2000.0, dtype="bfloat16", target="amx"),
    ]


class TestFormats:
    """Rungs in narrower formats."""

    def test_are_on_top_of_those_of_their_backend(self) -> None:
        gpu = row_of("cuda", "tuned", 9000.0)
        (climb,) = climbs(report_of(*rows_of(), gpu, *narrow_rows()))
        assert [step.row.target for step in climb.steps[-4:]] == ["cpu", "avx512", "amx", "cpu"]
        assert [step.rung.idea for step in climb.steps[-4:] if step.rung] == [
            *("intrinsics", "fewer bits", "matrix unit", "GPU")
        ]
        matrix_unit = climb.steps[-2]
        assert matrix_unit.over_below is not None
        assert matrix_unit.over_below.speedup == pytest.approx(10, rel=0.01)
        assert matrix_unit.over_first is not None
        assert matrix_unit.over_first.speedup == pytest.approx(2000 / 0.02, rel=0.01)

    def test_stand_with_the_reason_where_there_is_no_unit(self) -> None:
        bits, unit = narrow_rows()
        unit = replace(unit, status="unavailable", reason="this CPU lacks AMX-BF16", seconds=None, rate=None)
        climb = climb_of(*rows_of(), bits, unit)
        assert [(rung.idea, why) for rung, why in climb.missing if rung.dtype] == [
            ("matrix unit", "this CPU lacks AMX-BF16")
        ]
        text = printed(report_of(*rows_of(), bits, unit), width=150)
        assert re.search(r"fewer bits, bfloat16 +avx avx512 +tuned +800 +200 ", text)
        assert re.search(r"avx tuned \(matrix unit, bfloat16\): .*AMX-BF16", text)

    def test_are_not_missed_where_nobody_asked_for_them(self) -> None:
        assert not [rung for rung, _ in climb_of(*rows_of()).missing if rung.dtype]

    def test_are_on_wider_ladders_alone(self) -> None:
        single, half = ([replace(row, dtype=dtype) for row in rows_of()] for dtype in ("float32", "float16"))
        found = climbs(report_of(*rows_of(), *single, *half, *narrow_rows()))
        assert [(climb.dtype, len(climb.steps)) for climb in found] == [("float64", 7), ("float32", 7), ("float16", 5)]

    def test_a_ladder_in_their_format_is_one(self) -> None:
        own = [replace(row, dtype="bfloat16") for row in rows_of()[:4]]
        found = climbs(report_of(*rows_of(), *own, *narrow_rows()))
        assert [(climb.dtype, len(climb.steps)) for climb in found] == [("float64", 7), ("bfloat16", 5)]
        assert found[1].steps[-1].row.target == "amx", "the fastest that has it"

    def test_are_named_in_the_picture(self) -> None:
        words = picture.describe(report_of(*rows_of(), *narrow_rows()))
        assert "matrix unit, bfloat16 avx tuned: " in words


def found_on(backend: str, *targets: Target) -> list[BackendTarget]:
    return [BackendTarget(backend, target) for target in targets]


FOUND = [
    *found_on("avx", Target.missing("avx512", "no such registers"), Target("avx2"), Target("sse")),
    *found_on("cuda", Target("emulated", emulated=True, reason="no driver", fix="get one")),
    *found_on("cpp", Target("cpu")),
]


class TestPlan:
    """What a ladder asks the comparison for."""

    def test_is_the_rungs_and_the_baseline(self) -> None:
        plan = ladder.plan({}, ["float64"])
        rungs = {(rung.backend, rung.variant) for rung in ladders()["matmul"].rungs}
        specs = plan.specs([each for backend in plan.backends for each in found_on(backend, Target("cpu"))])
        assert {(spec.backend, spec.variant) for spec in specs} == rungs | {("numpy", "lecture")}
        assert {(spec.kernel, spec.dtype, spec.sizes) for spec in specs} == {("matmul", "float64", (800, 800, 800))}

    def test_takes_other_shapes(self) -> None:
        plan = ladder.plan({"matmul": [(9, 9, 9), (8, 7, 6)]}, ["float32", "float64"])
        assert {spec.sizes for spec in plan.specs(FOUND)} == {(9, 9, 9), (8, 7, 6)}

    def test_takes_of_each_backend_the_first_target_that_is_there(self) -> None:
        plan = ladder.plan({}, ["float64"])
        specs = plan.specs(FOUND)
        targets = {spec.backend: [each.target for each in specs if each.backend == spec.backend] for spec in specs}
        assert set(targets["avx"]) == {"avx512", "avx2"}, "of what is missing it says so"
        assert set(targets["cpp"]) == {"cpu"}
        assert plan.timed_only

    @pytest.mark.parametrize("dtypes", [["float64"], ["float64", "bfloat16"]])
    def test_takes_narrower_formats_where_they_are_asked_for(self, dtypes: list[str]) -> None:
        unit = found_on("avx", Target("amx", dtypes={"matmul/tuned": ("bfloat16",)}))
        plan = ladder.plan({"matmul": [(9, 9, 9)]}, dtypes, formats=True)
        specs = plan.specs([*unit, *FOUND])
        narrow = {spec.target for spec in specs if (spec.backend, spec.dtype) == ("avx", "bfloat16")}
        assert narrow == {"amx", "avx512", "avx2"}, "of what is missing it says so"
        assert len(specs) == len(set(specs))
        others = {spec.backend for spec in specs if spec.dtype == "bfloat16"} - {"avx"}
        assert bool(others) is ("bfloat16" in dtypes)
        assert {spec.sizes for spec in specs} == {(9, 9, 9)}

    @pytest.mark.parametrize(("dtype", "formats"), [("float64", False), ("float16", True)])
    def test_takes_no_format_that_is_not_narrower(self, dtype: str, formats: bool) -> None:
        plan = ladder.plan({}, [dtype], formats=formats)
        assert {spec.dtype for spec in plan.specs(FOUND)} == {dtype}

    def test_needs_fewer_runs_so_that_slow_rows_keep_larger_shapes(self) -> None:
        plan = ladder.plan({}, ["float64"])
        runs, usual = plan.runs, Plan([], lambda _: []).runs
        assert runs < usual
        target = SimpleNamespace(emulated=False)
        rows: list[Any] = [
            SimpleNamespace(spec=row_of(name, "lecture", 1.0).spec, target=target, controls=True)
            for name in ("cpp", "numpy")
        ]
        cpp, numpy = rows
        assert (estimates._runs(cpp, runs), estimates._runs(numpy, runs)) == (runs, 3 * runs)
        numpy.controls = False
        assert estimates._runs(numpy, runs) == runs, "a row like any other"

    def test_cannot_be_resumed_since_a_request_would_ask_for_more(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(compare, "run", lambda _plan, settings, _progress: replace(report_of(), settings=settings))
        options = Namespace(threads=2, seed=1, budget=1.0, line="py-backends ladder")  # there is no --cache
        report = _run.run_planned(ladder.plan({}, ["float64"]), options)
        assert (report.settings["threads"], report.settings["cache"]) == (2, "hot")
        assert "request" not in report.settings


class TestTable:
    def test_says_all_of_a_rung(self) -> None:
        text = printed(report_of(*rows_of(), row_of("numpy", "lecture", 150.0)))
        assert "python at 200" in text
        assert re.search(r"plain loops +python cpu +lecture +200 +0\.02 +0\.01% +1 +1 *$", text, re.MULTILINE)
        assert re.search(r"intrinsics +avx cpu +tuned +800 +180 +90% +\d,\d\d\d ±0\.\d%", text)
        assert re.search(r"±0\.\d% +1\.12x faster ±0\.\d% +62,806 \(40\.45%\)", text)
        assert re.search(r"to compare with +numpy cpu +lecture +800 +150 +75%", text)
        assert re.search(r"200, .*: python lecture", text)
        assert "cuda tuned (GPU)" in text
        assert "on 18 cores" in " ".join(text.split())

    def test_at_one_shape_says_nothing_of_shapes(self) -> None:
        rows = [row_of("python", "lecture", 0.02), *rows_of()[1:]]
        text = printed(report_of(*rows))
        assert "over python  " in text
        assert "by rate" not in text

    def test_names_what_went_wrong(self) -> None:
        wrong = row_of("avx", "tuned", 1.0, status="mismatch", reason="3 elements are wrong")
        assert re.search(r"wrong\n +avx cpu tuned +mismatch: 3 ", printed(report_of(wrong)))

    def test_fits_a_narrow_terminal(self) -> None:
        text = printed(report_of(*rows_of()), 64)
        assert max(map(len, text.splitlines())) <= 64
        assert re.search(r"intrinsics .*\d,\d\d\d ±0\.\d% +1\.12x faster", text)


class TestPicture:
    REPORT = report_of(*rows_of(), row_of("numpy", "lecture", 150.0))

    @pytest.mark.filterwarnings("error")
    def test_has_both_ladders_and_units(self, tmp_path: Path) -> None:
        path = tmp_path / "picture.svg"
        style.save(picture.draw(self.REPORT), path)
        text = path.read_text(encoding="utf-8")
        for words in ("times as fast as python at 200", "measured here", "published", "numpy: 7,", "intrinsics"):
            assert words in text
        assert re.search(r"\d,\d\d\dx, 90% of peak, 180 GFLOP/s", text)
        assert "62,806x, 40% of peak" in text
        assert ">47x, 0.03% of peak<" in text
        assert "on 18 cores" in text

    def test_bars_end_at_their_figures(self) -> None:
        (axes,) = picture.draw(self.REPORT).axes
        ends = sorted(round(bar.get_x() + bar.get_width()) for bar in axes.patches)
        climb = climb_of(*self.REPORT.rows)
        measured = [round(step.over_first.speedup) if step.over_first else 1 for step in climb.steps]
        assert ends == sorted([*measured, 1, 47, 366, 6727, 62_806])
        assert axes.get_xscale() == "log"

    def test_words_stay_within_and_apart(self) -> None:
        figure = picture.draw(self.REPORT)
        figure.draw_without_rendering()
        (axes,) = figure.axes
        boxes = [words.get_window_extent() for words in axes.texts]
        assert len(boxes) == 10
        assert all(box.x1 <= axes.get_window_extent().x1 for box in boxes)
        assert not any(one.overlaps(other) for at, one in enumerate(boxes) for other in boxes[:at])

    def test_is_described_in_words(self) -> None:
        text = picture.describe(self.REPORT)
        assert re.search(r"python lecture: 1x, 0\.01%.* 0\.02 GFLOP/s .*: 1\)", text)
        assert "published: 62,806 (40.45%)" in text

    @pytest.mark.parametrize("rows", [[], rows_of()[:1], rows_of()[1:]], ids=["none", "one", "not the first"])
    def test_needs_the_first_rung_and_another(self, rows: list[Row]) -> None:
        for view in (picture.draw, picture.describe):
            with pytest.raises(style.NothingToDraw, match="its first rung and one more have to be timed"):
                view(report_of(*rows))


@pytest.mark.slow
@pytest.mark.slow
def test_the_command_prints_and_writes_all(page_runs: PageRuns) -> None:
    ran = page_runs("py-backends ladder --svg")
    assert re.search(r"plain loops +python cpu +lecture +48 ", ran.first.stdout)
    results = json.loads((ran.folder / "ladder.json").read_text(encoding="utf-8"))
    assert results["settings"]["command"].startswith("py-backends ladder")
    assert {row["dtype"] for row in results["rows"]} == {"float64"}
    names = [(row["backend"], row["variant"]) for row in results["rows"] if row["status"] == "ok"]
    assert len(names) == len(set(names)), "one target of each"
    assert {("python", "lecture"), ("cpp", "lecture"), ("numpy", "lecture")} <= set(names)
    assert ("cpp", "tuned") not in names
    assert all(row["reason"] for row in results["rows"] if row["status"] != "ok")
    assert (ran.folder / "ladder.png").read_bytes().startswith(b"\x89PNG")
    assert "measured here" in (ran.folder / "ladder.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--shape vecadd=100", "vecadd has no ladder: leave out its shape"),
        ("--shape matmull=100", "did you mean 'matmul'?"),
        ("--dtype float8", "unknown dtype 'float8'"),
        ("--svg /proc/picture.svg", "/proc cannot be written to"),
        ("--budget 0", "above 0"),
        ("--threads 999999999", "a whole number from 1 to 4096"),
        ("--kernel matmul", "unknown arguments: --kernel matmul"),
    ],
)
def test_wrong_usage_ends_with_2(options: str, words: str) -> None:
    run = run_here("ladder", *options.split())
    assert (run.returncode, run.stdout) == (2, "")
    assert words in run.stderr
    assert len(run.stderr.splitlines()) == 1
