"""Scaling: laws fitted to made-up times with a known parallel part, what is asked for, and the table and picture."""

from __future__ import annotations

import argparse
import io
import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run_command, run_here
from made_rows import with_work, without_rounds
from matplotlib.figure import Figure
from rich.console import Console

from py_backends import registry
from py_backends.backend import mpi
from py_backends.commands.scaling.analysis import KINDS, STRONG, WEAK, Curve, curves
from py_backends.commands.scaling.command import _most_threads
from py_backends.commands.scaling.picture import _apart, describe, draw
from py_backends.commands.scaling.plan import plan, thread_counts
from py_backends.commands.scaling.table import name, notes, print_report
from py_backends.contract import Target
from py_backends.display import style
from py_backends.errors import WrongRequest
from py_backends.harness.compare import checked_settings, run
from py_backends.harness.running_row import running_rows
from py_backends.harness.sizing import grown
from py_backends.harness.summary import row_of
from py_backends.ranks import SERVED
from py_backends.results.report import Communication, Duration, Report, Row, Seconds
from py_backends.results.spec import Spec
from py_backends.system import machine
from py_backends.workers import probe, session
from py_backends.workers.probe import BackendTarget
from py_backends.workers.runner import Prepared, Runner

ROUNDS = 40
BASE = (100_000,)
Seconds_ = Callable[[int], float]


def amdahl(p: float) -> Seconds_:
    """Seconds of the same work on n threads."""
    return lambda n: (1 - p) + p / n


def gustafson(p: float) -> Seconds_:
    """Seconds of n times the work on n threads, where one thread takes a second for its own."""
    return lambda n: n / ((1 - p) + p * n)


def rows(
    backend: str,
    seconds: Seconds_,
    threads: Sequence[int] = (1, 2, 3, 4),
    noise: float = 0.0,
    seed: int = 0,
    *,
    weak: bool = False,
    rounds: int = ROUNDS,
) -> list[Row]:
    """Rows of one backend, as a comparison makes them; each round is slow or quick as a whole, too."""
    generator = np.random.default_rng(seed)
    drift = np.exp(0.3 * generator.standard_normal(rounds))
    made = []
    for count in threads:
        samples = seconds(count) * drift * np.exp(noise * generator.standard_normal(rounds))
        middle = float(np.median(samples))
        kernel = Duration(middle, None, None, middle, rounds)
        shape = {"n": BASE[0] * (count if weak else 1)}
        row = Row("vecadd", backend, "cpu", "tuned", "float32", shape, "ok", threads=count)
        row = replace(row, seconds=Seconds(kernel=kernel), kernel_seconds=list(map(float, samples)))
        made.append(with_work(row))
    return made


def report(*rows: Row) -> Report:
    settings = {"seed": 1, "threads": 4}
    return Report("2026-11-21T00:00:00+00:00", "0.1.0", {"cpu": "Made-up", "logical_cpus": 4}, settings, list(rows))


def only(kind: str, *rows: Row) -> Curve:
    (curve,) = [curve for curve in curves(report(*rows)) if curve.kind == kind]
    return curve


class TestLaws:
    @pytest.mark.parametrize("p", [-0.2, 0.0, 0.5, 0.95, 0.999, 1.0, 1.02])
    def test_amdahl_is_found_exactly_without_noise(self, p: float) -> None:
        curve = only(STRONG, *rows("one", amdahl(p)))
        assert curve.fit == pytest.approx((p, p, p), abs=1e-12)
        assert [point.speedup for point in curve.points] == pytest.approx([point.predicted for point in curve.points])
        assert curve.limit[0] == (pytest.approx(1 / (1 - p)) if p < 1 else None) or abs(p - 1) < 1e-9

    @pytest.mark.parametrize("p", [0.0, 0.7, 1.0, 1.1])
    def test_gustafson_is_found_exactly_without_noise(self, p: float) -> None:
        curve = only(WEAK, *rows("one", gustafson(p), weak=True))
        assert curve.fit == pytest.approx((p, p, p), abs=1e-12)
        assert [point.speedup for point in curve.points] == pytest.approx([1 - p + p * n for n in (2, 3, 4)])
        assert [point.predicted for point in curve.points] == pytest.approx([1 - p + p * n for n in (2, 3, 4)])

    @pytest.mark.parametrize(
        ("p", "threads"),
        [
            (0.97, (1, 2)),
            *(pytest.param(*each, marks=pytest.mark.slow) for each in ((0.6, (1, 2, 3, 4)), (0.97, (1, 2, 4, 8)))),
        ],
    )
    def test_the_interval_has_p_in_it_about_95_times_of_100(self, p: float, threads: tuple[int, ...]) -> None:
        fits = [only(STRONG, *rows("one", amdahl(p), threads, noise=0.03, seed=seed)).fit for seed in range(100)]
        inside = sum(fit.low <= p <= fit.high for fit in fits if fit.low is not None and fit.high is not None)
        assert 88 <= inside <= 99
        assert np.mean([fit.p for fit in fits]) == pytest.approx(p, abs=0.005)

    @pytest.mark.slow
    def test_the_interval_of_gustafson_has_p_in_it_about_95_times_of_100(self) -> None:
        fits = [only(WEAK, *rows("one", gustafson(0.9), noise=0.03, seed=seed, weak=True)).fit for seed in range(100)]
        inside = sum(fit.low <= 0.9 <= fit.high for fit in fits if fit.low is not None and fit.high is not None)
        assert 88 <= inside < 100

    def test_the_lecture_s_examples(self) -> None:
        """60% parallel on 4 processors gives 1.82; 95% on 32,768 about 20."""
        curve = only(STRONG, *rows("one", amdahl(0.6)))
        assert curve.points[-1].speedup == pytest.approx(1.82, abs=0.005)
        assert only(STRONG, *rows("one", amdahl(0.95))).predicted(32_768) == pytest.approx(20, abs=0.02)

    def test_few_rounds_give_no_interval(self) -> None:
        curve = only(STRONG, *rows("one", amdahl(0.9), rounds=5))
        assert (curve.fit.low, curve.fit.high, curve.limit[1:]) == (None, None, (None, None))
        assert curve.fit.p == pytest.approx(0.9)

    def test_no_parallel_part_is_said_only_where_it_is_sure(self) -> None:
        assert only(STRONG, *rows("one", amdahl(0.0), noise=0.01)).one_thread_only
        restless = only(STRONG, *rows("one", amdahl(0.0), (1, 2), noise=1.0))
        assert restless.fit.low is not None
        assert restless.fit.low < 0
        assert not restless.one_thread_only

    def test_a_backend_that_obeys_no_such_law_is_told(self) -> None:
        seconds = {1: 1.0, 2: 0.5, 3: 0.34, 4: 0.6}
        curve = only(STRONG, *rows("one", seconds.__getitem__, noise=0.01))
        assert {point.threads for point in curve.missed} >= {4}
        assert re.search("one cpu: .*misses", " ".join(notes([curve])))
        assert "tests" not in " ".join(notes([curve]))


class TestRows:
    def test_rounds_that_one_of_them_lacks_do_not_count(self) -> None:
        one, two = rows("one", amdahl(0.8), (1, 2))
        one, two = without_rounds(one, 3), without_rounds(two, 5)
        two = replace(two, kernel_seconds=two.kernel_seconds[:20])
        assert only(STRONG, one, two).fit.p == pytest.approx(0.8)
        assert curves(report(one, replace(two, kernel_seconds=[None] * 5))) == []

    def test_strong_scaling_is_of_one_shape(self) -> None:
        one, two, three = rows("one", amdahl(0.8), (1, 2, 3))
        shortened = replace(two, requested=two.shape, shape={"n": 50_000})
        assert [point.threads for point in only(STRONG, one, shortened, three).points] == [3]

    def test_both_may_be_shortened_alike(self) -> None:
        both = rows("one", amdahl(0.8), (1, 2))
        curve = only(STRONG, *(replace(row, requested=row.shape, shape={"n": 50_000}) for row in both))
        assert curve.fit.p == pytest.approx(0.8)
        assert any(re.fullmatch(r"\* .*50000.*: one cpu", note) for note in notes([curve]))

    def test_weak_scaling_is_of_work_that_grows(self) -> None:
        grows, same = rows("one", gustafson(0.9), weak=True), rows("one", amdahl(0.5), (1, 2))
        found = curves(report(*grows, same[1]))
        assert [(curve.kind, len(curve.points)) for curve in found] == [(STRONG, 1), (WEAK, 3)]

    def test_what_was_not_timed_is_left_out(self) -> None:
        one, two, three = rows("one", amdahl(0.8), (1, 2, 3))
        wrong, without_samples = replace(two, status="mismatch"), replace(three, kernel_seconds=[])
        assert curves(report(one, wrong, without_samples)) == []

    def test_the_rows_of_a_comparison_on_one_number_of_threads_show_nothing(self) -> None:
        (four,) = rows("one", amdahl(0.8), (4,))
        with pytest.raises(style.NothingToDraw, match="on one thread and on more"):
            draw(report(four))


def ranks(seconds: Seconds_, of: str, kinds: Sequence[str], *, weak: bool = False) -> list[Row]:
    """Rows of ranks on 1, 2 and 4 threads, whose targets are named as `of` says; the first is of all kinds.

    Each rank sends 1000 bytes to every other, which takes a hundredth of the kernel; the least is 800.
    """
    made = []
    for row in rows("mpi", seconds, (1, 2, 4), weak=weak):
        count = row.threads or 1
        target = of.format(count)
        stands_for = list(kinds) if count == 1 else [of.format(4)]
        if target == of.format(4):
            stands_for = []
        others = int(target.split("x")[0]) - 1
        kernel = 0.0 if row.seconds is None or row.seconds.kernel is None else row.seconds.kernel.median
        told = Communication(others * kernel / 100, [1000 * others] * (others + 1), 800.0 * others)
        made.append(replace(row, target=target, communication=told, stands_for=stands_for))
    return made


KINDS_OF_RANKS = "4x1", "1x4"


def of_ranks() -> Report:
    """Ranks of one thread and one rank of many, which begin with the same row; and one that is no rank."""
    many, one = ranks(amdahl(0.99), "{}x1", KINDS_OF_RANKS), ranks(amdahl(0.9), "1x{}", KINDS_OF_RANKS)
    return report(*many, *one[1:], *rows("openmp", amdahl(0.9), (1, 2, 4)))


class TestTargetsOnOtherNumbersOfThreads:
    def test_are_one_curve_of_each_kind(self) -> None:
        found = {name(curve): curve for curve in curves(of_ranks())}
        assert set(found) == {"mpi 1x1 to 4x1", "mpi 1x1 to 1x4", "openmp cpu"}
        assert [point.row.target for point in found["mpi 1x1 to 4x1"].points] == ["2x1", "4x1"]
        assert found["mpi 1x1 to 4x1"].fit.p == pytest.approx(0.99)
        assert found["mpi 1x1 to 1x4"].fit.p == pytest.approx(0.9)

    def test_are_of_no_kind_in_other_files(self) -> None:
        """Targets of several numbers of threads, as a comparison has them: what belongs together is not guessed."""
        assert curves(report(*(replace(row, stands_for=[]) for row in of_ranks().rows if row.backend == "mpi"))) == []

    def test_are_read_again(self, tmp_path: Path) -> None:
        (tmp_path / "a.json").write_text(of_ranks().to_json(), encoding="utf-8")
        assert list(map(name, curves(Report.read(tmp_path / "a.json")))) == list(map(name, curves(of_ranks())))

    def test_are_asked_for_on_each_number(self) -> None:
        specs = self.planned([1, 2, 3, 4], self.found("4x1", "2x2", "1x4"))
        assert [(spec.target, spec.threads, spec.stands_for) for spec in specs if spec.sizes == (100,)] == [
            ("1x1", 1, ("4x1", "2x2", "1x4")),
            *(("2x1", 2, ("4x1",)), ("3x1", 3, ("4x1",)), ("4x1", 4, ())),
            *(("1x2", 2, ("2x2", "1x4")), ("2x2", 4, ()), ("1x3", 3, ("1x4",)), ("1x4", 4, ())),
        ]

    def test_run_as_what_they_are_on_so_many(self) -> None:
        found = self.found("4x1")
        running = running_rows(self.planned([1, 2], found), found, 4)
        made = list(map(row_of, running))
        assert [each.target.name for each in running] == ["1x1", "2x1", "2x1"]
        assert [(row.target, row.device, row.threads) for row in made] == [
            ("1x1", "the CPU", 1), ("2x1", "the CPU", 2), ("2x1", "the CPU", 2),
        ]  # fmt: skip
        assert [each.stands_for for each in made] == [["4x1"], ["4x1"], ["4x1"]]
        assert [each.spec for each in made] == [each.spec for each in running]

    def test_may_be_on_other_machines(self) -> None:
        found = [*self.found("4x1"), BackendTarget("openmp", Target("cpu", device="the CPU"))]
        specs = self.planned([1, 2, 4], found, cpus=2)
        assert {(spec.backend, spec.threads) for spec in specs if spec.sizes == (100,)} == {
            ("mpi", 1), ("mpi", 2), ("mpi", 4), ("openmp", 1), ("openmp", 2),
        }  # fmt: skip

    def test_that_are_missing_say_so_once(self) -> None:
        missing = [BackendTarget("mpi", Target.missing(name, "no engine")) for name in ("4x1", "1x4")]
        specs = self.planned([1, 2], missing)
        assert {spec.target for spec in specs} == {"4x1", "1x4"}

    @staticmethod
    def planned(counts: Sequence[int], found: Sequence[BackendTarget], **how: Any) -> list[Spec]:
        how |= {"variants": ["lecture"], "backends": sorted({each.backend for each in found})}
        return plan(counts, ["vecadd"], {"vecadd": [(100,)]}, **how).specs(found)

    @staticmethod
    def found(*names: str) -> list[BackendTarget]:
        """Targets of ranks of one device, as a probe tells them for 1 to 4 threads."""
        return [
            BackendTarget(
                "mpi",
                Target(each, device="the CPU", on_threads={n: mpi.Backend().on_threads(each, n) for n in range(1, 5)}),
            )
            for each in names
        ]


class TestProbedForNumbersOfThreads:
    """The way from a backend's answers, by its worker, to a target."""

    def answered(self, monkeypatch: pytest.MonkeyPatch, answer: Callable[..., Any], **of: Any) -> Target:
        kind = type(registry.backend("numpy"))
        monkeypatch.setattr(kind, "targets", lambda _: [Target("four", **of)])
        monkeypatch.setattr(kind, "on_threads", lambda _, target, threads: answer(target, threads))
        said = session.Session().targets([], "numpy", [], [1, 4])
        monkeypatch.setattr(probe.Worker, "__init__", lambda *_, **__: None)
        monkeypatch.setattr(probe.Worker, "close", lambda _: None)
        monkeypatch.setattr(probe.Worker, "ask", lambda *_, **__: json.loads(json.dumps(said)))
        ((_, target),) = probe.probe(["numpy"], (), [1, 4])
        return target

    def test_a_target_says_what_it_is_on_so_many(self, monkeypatch: pytest.MonkeyPatch) -> None:
        target = self.answered(monkeypatch, lambda target, threads: {"four": {1: "one", 4: None}}[target][threads])
        assert target.on_threads == {1: "one", 4: None}

    def test_one_that_is_always_itself_says_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.answered(monkeypatch, lambda target, _: target).on_threads == {}

    def test_one_that_is_missing_is_not_asked(self, monkeypatch: pytest.MonkeyPatch) -> None:
        target = self.answered(monkeypatch, lambda *_: 1 / 0, available=False, reason="gone")
        assert (target.reason, target.on_threads) == ("gone", {})

    def test_an_answer_that_is_no_name_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(TypeError, match=r"on_threads\(\) returns 7, which is no name"):
            self.answered(monkeypatch, lambda *_: 7)


@pytest.mark.parametrize(
    ("target", "on_each"),
    [
        ("4x1", ["1x1", "2x1", "3x1", "4x1", "5x1", "6x1", "7x1", "8x1"]),
        ("1x4", ["1x1", "1x2", "1x3", "1x4", "1x5", "1x6", "1x7", "1x8"]),
        ("2x2", ["1x1", "1x2", None, "2x2", None, "3x2", None, "4x2"]),
        ("2x3", ["1x1", "1x2", "1x3", None, None, "2x3", None, None]),
    ],
)
def test_ranks_on_each_number_of_threads(target: str, on_each: list[str | None]) -> None:
    assert [mpi.Backend().on_threads(target, count) for count in range(1, 9)] == on_each


def test_ranks_of_a_launcher_are_as_many_as_it_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SERVED, "2x4:/nowhere")
    on_each = [mpi.Backend().on_threads(target, 8) for target in ("4x1", "2x4", "1x4")]
    assert on_each == [None, "2x4", None]
    assert _most_threads(argparse.Namespace(threads=None, launcher=None), 1) == 8


def test_more_threads_than_cpus_take_a_launcher() -> None:
    assert _most_threads(argparse.Namespace(threads=64, launcher="srun -n {ranks}"), 2) == 64
    assert _most_threads(argparse.Namespace(threads=None, launcher="srun -n {ranks}"), 2) == 2
    with pytest.raises(WrongRequest, match="scaling to 64 threads needs as many CPUs, but there are 2"):
        _most_threads(argparse.Namespace(threads=64, launcher=None), 2)


@pytest.mark.parametrize("threads", [None, 1, 2])
def test_one_cpu_cannot_scale_whatever_is_asked_for(threads: int | None) -> None:
    """The advice was a circle: 2 threads or more, then 1."""
    with pytest.raises(WrongRequest, match="there is one CPU: run it where there are more"):
        _most_threads(argparse.Namespace(threads=threads, launcher=None), 1)


FOUND = [
    BackendTarget("openmp", Target(name, device=device, available=name != "missing", reason="gone"))
    for name, device in (("best", "the CPU"), ("other", "the CPU"), ("third", "another"), ("missing", "the CPU"))
]


class TestPlans:
    @pytest.mark.parametrize(
        ("most", "counts"),
        [(2, [1, 2]), (8, [1, 2, 3, 4, 5, 6, 7, 8]), (9, [1, 2, 4, 8, 9]), (64, [1, 2, 4, 8, 16, 32, 64])],
    )
    def test_numbers_of_threads(self, most: int, counts: list[int]) -> None:
        assert thread_counts(most) == counts

    @pytest.mark.parametrize("times", [1, 2, 3, 7, 64])
    @pytest.mark.parametrize("sizes", [(521, 509, 499), (1024, 1024, 1024), (64, 2000, 33)])
    def test_work_grows_with_the_threads(self, sizes: tuple[int, ...], times: int) -> None:
        problem = registry.problem("matmul")
        shape = grown(problem, sizes, times)
        assert problem.work(shape) / problem.work(sizes) == pytest.approx(times, rel=0.02)
        assert max(a / b for a, b in zip(shape, sizes, strict=True)) < 1.05 * times ** (1 / 3) + 0.02
        assert grown(registry.problem("vecadd"), (1001,), times) == (1001 * times,)

    def test_no_size_grows_beyond_what_the_kernel_takes(self) -> None:
        """`predict` takes a thousand times the work of a comparison, for kernels of any number of ranks."""
        problem = registry.problem("histogram")
        (most,) = problem.largest_sizes.values()
        assert grown(problem, (most // 2,), 1000) == (most,)

    def test_each_shape_is_asked_for_on_the_threads_that_it_is_for(self) -> None:
        specs = plan([1, 2, 3], ["vecadd"], {"vecadd": [(100,)]}, variants=["tuned"]).specs(FOUND[:1])
        asked = [(*spec.sizes, spec.threads) for spec in specs]
        assert asked == [(100, 1), (100, 2), (100, 3), (200, 2), (300, 3)]

    def test_of_several_targets_for_one_device_the_first_is_taken(self) -> None:
        def targets(**how: bool) -> set[str]:
            return {spec.target for spec in plan([1, 2], ["vecadd"], {"vecadd": [(100,)]}, **how).specs(FOUND)}

        assert targets() == {"best", "third", "missing"}
        assert targets(every_target=True) == {"best", "other", "third", "missing"}

    def test_no_work_cannot_be_shared(self) -> None:
        with pytest.raises(WrongRequest, match="no work"):
            plan([1, 2], ["vecadd"], {"vecadd": [(0,)]})


def printed(report: Report, width: int = 120) -> str:
    text = io.StringIO()
    print_report(report, Console(file=text, width=width))
    return " ".join(text.getvalue().split())


def line(report: Report, who: str) -> str:
    """The first line of a table that begins with these names, two blanks between its figures."""
    text = io.StringIO()
    print_report(report, Console(file=text, width=200))
    lines = (re.sub(r"\s{2,}", "  ", each.strip()) for each in text.getvalue().splitlines())
    return next(each for each in lines if each.replace("  ", " ").startswith(who))


class TestShown:
    def whole(self, threads: Sequence[int] = (1, 2, 3, 4)) -> Report:
        return report(
            *rows("good", amdahl(0.97), threads, noise=0.01),
            *rows("good", gustafson(0.97), threads, noise=0.01, weak=True)[1:],
            *rows("alone", amdahl(0.0), threads, noise=0.01),
            *rows("superlinear", amdahl(1.05), threads, noise=0.01),
        )

    def test_the_table_says_p_and_the_limit(self) -> None:
        text = printed(self.whole())
        assert "vecadd float32 100000 strong: " in text
        assert "Amdahl: speed-up = 1 / ((1 - p) + p / n)" in text
        assert "Gustafson: " in text
        assert "0.97" in text
        assert "none (p above 1)" in text
        assert "describe superlinear cpu" in text
        assert "parallel: alone cpu" in text
        assert "cannot test" not in text

    def test_the_table_says_how_well_threads_are_spent(self) -> None:
        text = printed(report(*rows("good", amdahl(0.9), (1, 2, 4))), width=200)
        assert "n = 4 efficiency p (95% interval)" in text
        assert " 77%  0.900" in line(report(*rows("good", amdahl(0.9), (1, 2, 4))), "good cpu")
        assert "communication" not in text

    def test_the_table_says_what_ranks_tell_one_another(self) -> None:
        text = printed(of_ranks(), width=200)
        assert "efficiency communication sent / bound p (95% interval)" in text
        assert " 97%  3.0%  1.25x  0.990 (" in line(of_ranks(), "mpi 1x1 to 4x1")
        assert " 77%  0.0%  -  0.900 (" in line(of_ranks(), "mpi 1x1 to 1x4")
        assert " 77%  0.900 (" in line(of_ranks(), "openmp cpu"), "which has no ranks"
        assert "a rank sends" not in text, "in a note of each row"

    def test_a_narrow_terminal_tells_targets_apart(self) -> None:
        text = printed(of_ranks(), 100)
        assert "mpi 1x1 to 4x1" in text
        assert "1.25x" in text
        assert "predicted limit" not in text

    def test_two_points_cannot_test_the_law(self) -> None:
        text = printed(self.whole((1, 2)))
        assert "cannot test" in text
        assert "every point" not in text

    @pytest.mark.parametrize("width", [40, 80])
    def test_a_narrow_terminal_keeps_backend_and_p(self, width: int) -> None:
        text = printed(self.whole(), width)
        assert "p (95% interval)" in text
        assert "superlinear" in text

    def test_the_picture_has_its_labels(self) -> None:
        text = style.svg(draw(self.whole()))
        for label in ("threads", "speed-up over one thread", "scaled speed-up over one thread", "good cpu: 3.6"):
            assert label in text
        assert "extrapolated, not" in text
        assert "good cpu" in describe(self.whole())

    def test_no_law_is_drawn_beyond_n_times_the_speed_on_n_threads(self) -> None:
        """p = 1.009, which two noisy points may give, would lead to 44 times on 32 threads."""
        figure = draw(report(*rows("superlinear", amdahl(1.009), (1, 2)), *rows("good", amdahl(0.9), (1, 2))))
        axes = figure.axes[0]
        drawn = {
            (line.get_linestyle(), max(line.get_xdata())): line for line in axes.lines if line.get_linestyle() != "None"
        }
        assert set(drawn) == {(":", 8), ("-", 2), ("--", 8)}
        dashed = [line for line in axes.lines if line.get_linestyle() == "--"]
        assert [max(line.get_ydata()) for line in dashed] == [pytest.approx(1 / (0.1 + 0.9 / 8))], "that of p = 0.9"
        text = style.svg(figure)
        assert re.search(r"superlinear cpu: 2\.02x .*101%.* p = 1\.009 .*: not extrapolated", text)
        assert "limit 10.0x" in text
        assert "not extrapolated" in describe(self.whole())

    def test_weak_scaling_is_not_extrapolated(self) -> None:
        axes = draw(report(*rows("good", gustafson(0.9), (1, 2), weak=True))).axes[1]
        assert max(max(line.get_xdata()) for line in axes.lines if line.get_linestyle() != "None") == 2

    def test_the_picture_says_at_which_shape_rows_ran(self) -> None:
        shortened = [replace(row, requested=dict.fromkeys(row.shape, 10**7)) for row in rows("good", amdahl(0.9))]
        assert re.search(r"good cpu at \d+: 3\.", style.svg(draw(report(*shortened))))

    @pytest.mark.parametrize(("counts", "curves"), [([2], 10), ([2, 3, 4, 5, 6, 7, 8], 10), ([2, 4, 8], 3)])
    def test_points_stand_nearer_to_their_own_number_of_threads(self, counts: list[int], curves: int) -> None:
        for kind in KINDS:
            half = 2 ** (_apart(counts, curves, kind) * (curves - 1) / 2)
            assert all(fewer * half < more / half for fewer, more in pairwise([1, *counts]))

    def test_the_picture_has_a_panel_of_what_ranks_tell_one_another(self) -> None:
        figure = draw(of_ranks())
        strong, _, panel, _ = figure.axes
        (line,) = panel.lines
        assert list(line.get_xdata()) == [1, 2, 4]
        assert list(line.get_ydata()) == pytest.approx([0, 1, 3]), "one rank of several threads tells nobody anything"
        assert panel.get_ylim()[1] >= 5
        (label,) = panel.get_legend_handles_labels()[1]
        assert re.fullmatch(r"mpi 1x1 to 4x1: 3\.0% .*1\.25x .*bound", label)
        assert f"communication of {label.replace(':', ' takes')}" in describe(of_ranks())
        colour = {text: mark[0].get_color() for mark, text in zip(*strong.get_legend_handles_labels(), strict=True)
                  if text.startswith("mpi 1x1 to 4x1")}  # fmt: skip
        assert list(colour.values()) == [line.get_color()]

    def test_the_picture_has_no_such_panel_without_ranks(self) -> None:
        assert len(draw(self.whole()).axes) == 2
        silent = replace(of_ranks(), rows=[replace(row, communication=None) for row in of_ranks().rows])
        assert len(draw(silent).axes) == 2

    def test_what_has_no_bound_is_not_compared_with_one(self) -> None:
        added = of_ranks()
        for at, row in enumerate(added.rows):
            if row.communication:
                told = replace(row.communication, bytes_sent=[0, 0], least_bytes=0.0)
                added.rows[at] = replace(row, communication=told)
        (label,) = {text for axes in draw(added).axes[2:] for text in axes.get_legend_handles_labels()[1]
                    if "4x1" in text}  # fmt: skip
        assert ("3.0%" in label, "bound" in label) == (True, False)

    def test_a_picture_of_weak_scaling_alone(self) -> None:
        figure: Figure = draw(report(*rows("good", gustafson(0.9), weak=True)))
        assert "scaled" in style.svg(figure)


@pytest.mark.numpy
@pytest.mark.parametrize(
    ("prepared", "reason"),
    [
        (Prepared(0.0, "a note", on_cpu=False), "it does not run on the CPU, so it has no number of threads"),
        (Prepared(0.0, "its driver cannot use 1 of its 2 threads", obeys_threads=False), "its driver cannot use 1"),
        (Prepared(0.0, None, obeys_threads=False), "it ignores the number"),
    ],
)
def test_what_does_not_run_on_that_many_cpus_is_skipped_and_says_so(
    prepared: Prepared, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Runner, "prepare", lambda *_: prepared)
    asked = plan([1, 2], ["vecadd"], {"vecadd": [(100,)]}, backends=["numpy"], dtypes=("float32",))
    found = run(asked, checked_settings(budget=2))
    assert [(row.threads, row.status) for row in found.rows] == [(1, "skipped"), (2, "skipped"), (2, "skipped")]
    assert all(reason in (row.reason or "") for row in found.rows)


def test_wrong_usage() -> None:
    several = machine.cpus() > 1
    for arguments, words in [
        (["--threads", "1"], "--threads 2 or more" if several else "there is one CPU"),
        (["--threads", str(machine.cpus() + 1)], f"there are {machine.cpus()}" if several else "there is one CPU"),
        (["--kernel", "matmull"], "did you mean 'matmul'"),
        (["--shape", "matmul=0"], "no work"),
        (["--shape", "vecadd=5"], "not among the requested kernels"),
    ]:
        refused = run_here("scaling", *arguments)
        assert refused.returncode == 2
        assert words in refused.stderr
        assert refused.stderr.count("\n") == 1


@pytest.mark.nightly
@pytest.mark.numpy
@pytest.mark.openmp
@pytest.mark.skipif(machine.cpus() < 2, reason="scaling takes 2 CPUs")
def test_a_real_run(tmp_path: Path) -> None:
    files = [tmp_path / f"scaling.{kind}" for kind in ("json", "png", "svg")]
    options = [option for file in files for option in (f"--{file.suffix[1:]}", file)]
    asked = ("--backend", "numpy,openmp", "--threads", "2", "--shape", "matmul=128", "--budget", "60")
    ended = run_command("scaling", *asked, *options)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "cannot test" in " ".join(ended.stdout.split())
    found = curves(Report.read(files[0]))
    assert {(curve.row.backend, curve.kind) for curve in found} == {
        (backend, kind) for backend in ("numpy", "openmp") for kind in (STRONG, WEAK)
    }
    assert all(math.isfinite(curve.fit.p) for curve in found)
    assert files[1].read_bytes().startswith(b"\x89PNG")
    assert "speed-up" in files[2].read_text(encoding="utf-8")
    resumed = run_command("compare", "--resume", files[0])
    assert resumed.returncode == 2


@pytest.mark.nightly
@pytest.mark.mpi
@pytest.mark.skipif(machine.cpus() < 2, reason="scaling takes 2 CPUs")
def test_a_real_run_of_ranks(tmp_path: Path) -> None:
    asked = ("--backend", "mpi", "--threads", "2", "--shape", "matmul=128", "--budget", "60", "--json", "a.json")
    ended = run_command("scaling", *asked[:-1], tmp_path / asked[-1])
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found = {(name(curve), curve.kind): curve for curve in curves(Report.read(tmp_path / asked[-1]))}
    assert set(found) == {(f"mpi 1x1 to {last}", kind) for last in ("2x1", "1x2") for kind in KINDS}
    (point,) = found["mpi 1x1 to 2x1", STRONG].points
    assert point.row.communication is not None
    assert point.row.communication.over_bound == pytest.approx(1.28, abs=0.03)
    assert len(point.row.communication.kernel_by_rank) == 2
    assert [f"{each}x1" for each in (1, 2)] == [found["mpi 1x1 to 2x1", STRONG].row.target, point.row.target]
