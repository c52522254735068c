"""Sweeps over sizes: made-up reports with known crossovers, what is asked for, and the tables and the picture."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from commands import run_command, run_here
from made_rows import with_work
from rich.console import Console

from py_backends import registry
from py_backends.commands.sweep import plan as sweeping
from py_backends.commands.sweep.analysis import Crossover, Sweep, sweeps
from py_backends.commands.sweep.picture import describe, draw
from py_backends.commands.sweep.plan import plan, sizes_between
from py_backends.commands.sweep.search import KERNEL, WHOLE
from py_backends.commands.sweep.table import TIME, crossover, print_report, size
from py_backends.contract import Target
from py_backends.display import style
from py_backends.errors import WrongRequest
from py_backends.harness.compare import checked_settings, run
from py_backends.harness.request import Request
from py_backends.harness.running_row import baselines, running_rows
from py_backends.harness.schedule import until_known
from py_backends.harness.sizing import LONGER_BUDGET, most_bytes, size_of
from py_backends.results.report import Control, Duration, Report, Row, Seconds, Speedup
from py_backends.system import machine
from py_backends.workers.probe import BackendTarget

SIZES = (64, 128, 256, 512)
ROUNDS = 30
FASTER, SAME, SLOWER, UNCLEAR = (0.5,), (1.0,), (2.0,), (0.5, 1.5)
"""Seconds of kernels beside the baseline's one, round by round and over again."""


def row(backend: str, at: int, kernel: Sequence[float] = SAME, whole: float = 1.0) -> Row:
    """A row of vecadd whose kernels and whole calls take so many seconds, these give or take."""
    noise = np.exp(0.002 * np.random.default_rng(at).standard_normal(ROUNDS) * (backend != "numpy"))
    made = Row("vecadd", backend, "cpu", "lecture", "float32", {"n": at}, "ok", threads=2)
    made = replace(
        made,
        seconds=Seconds(kernel=duration(kernel[0]), end_to_end=duration(whole)),
        versus=Speedup("numpy", 1.0, 1.0, 1.0, True, "same", ROUNDS, True),
        kernel_seconds=list(itertools.islice(itertools.cycle(kernel), ROUNDS)),
        end_to_end_seconds=list(map(float, whole * noise)),
    )
    return with_work(made)


def duration(seconds: float) -> Duration:
    return Duration(seconds, seconds, seconds, seconds, ROUNDS)


def control(at: int) -> Control:
    same = Speedup("numpy", 1.0, 1.0, 1.0, True, "same", ROUNDS, True)
    return Control("vecadd", "float32", {"n": at}, same, same)


def report(*rows: Row, caches: Mapping[str, int] | None = None) -> Report:
    machine = {"cpu": "Made-up", "cache_bytes": {"L1": 12 * 100, "L2": 12 * 300, "L3": 12 * 10_000}}
    if caches is not None:
        machine["cache_bytes"] = dict(caches)
    sizes = {each.shape["n"] for each in rows}
    controls = [control(at) for at in sizes]
    return Report("2026-11-21T00:00:00+00:00", "0.1.0", machine, {"seed": 1}, list(rows), control=controls)


def swept(
    kernels: Sequence[Sequence[float] | None], wholes: Sequence[float] = (2.0, 0.5, 0.5, 0.5), baseline: str = "numpy"
) -> Sweep:
    """One backend beside the baseline, with these seconds of kernels and of whole calls; None where it did not run."""
    rows = [row(baseline, at) for at in SIZES]
    rows += [
        row("other", at, kernel, whole) for at, kernel, whole in zip(SIZES, kernels, wholes, strict=True) if kernel
    ]
    (found,) = sweeps(report(*rows))
    return found


class TestCrossovers:
    @pytest.mark.parametrize(
        ("kernels", "found", "words"),
        [
            ([SLOWER, SAME, FASTER, FASTER], Crossover(256, 128, 512), "from n = 256 on, not at 128"),
            ([FASTER] * 4, Crossover(64, None, 512), "from the smallest on, n = 64"),
            ([SLOWER] * 4, Crossover(None, 512, 512), "never up to n = 512"),
            ([FASTER, FASTER, SLOWER, FASTER], Crossover(512, 256, 512), "from n = 512 on, not at 256"),
            ([FASTER, FASTER, FASTER, UNCLEAR], Crossover(None, None, 512, 64), "unclear from n = 64 on"),
            ([FASTER, SLOWER, FASTER, UNCLEAR], Crossover(None, 128, 512, 256), "unclear from n = 256 on"),
            ([SLOWER, UNCLEAR, FASTER, FASTER], Crossover(256, 64, 512, 128), "from n = 256 on, perhaps from 128"),
            ([UNCLEAR, SLOWER, UNCLEAR, SLOWER], Crossover(None, 512, 512), "never up to n = 512"),
            ([SLOWER, None, FASTER, None], Crossover(256, 64, 256), "from n = 256 on, not at 64"),
            ([(0.993,)] * 4, Crossover(None, 512, 512), "never up to n = 512"),
            ([(0.95,)] * 4, Crossover(64, None, 512), "from the smallest on, n = 64"),
        ],
    )
    def test_of_the_kernel_alone(
        self, kernels: list[Sequence[float] | None], found: Crossover | None, words: str
    ) -> None:
        other = swept(kernels).lines[1]
        assert other.crossover(KERNEL) == found
        assert crossover(other.crossover(KERNEL)) == words

    def test_rounds_without_a_time_are_left_out(self) -> None:
        other = swept([(1.25, 0.0, -1.0, 1.25)] * 4).lines[1]
        assert re.fullmatch("never .*512", crossover(other.crossover(KERNEL)))

    def test_few_rounds_tell_who_loses_tenfold_and_nobody_else(self) -> None:
        rows = [row(name, at, kernel) for at in SIZES for name, kernel in (("numpy", SAME), ("far", (11.0,)))]
        rows += [row("near", at, (9.0,)) for at in SIZES]
        (found,) = sweeps(report(*(replace(each, kernel_seconds=each.kernel_seconds[:3]) for each in rows)))
        assert [line.crossover(KERNEL) for line in found.lines[1:]] == [
            Crossover(None, 512, 512),
            Crossover(None, None, 512, 64),
        ]

    @pytest.mark.parametrize(
        ("wholes", "found"),
        [
            ((2.0, 2.0, 0.5, 0.5), Crossover(256, 128, 512)),
            ((0.5, 0.5, 0.5, 0.5), Crossover(64, None, 512)),
            ((0.5, 0.5, 0.5, 1.0), Crossover(None, 512, 512)),
            ((0.5, 1.004, 0.5, 0.8), Crossover(256, 128, 512)),
        ],
    )
    def test_of_whole_calls_by_their_own_rounds(self, wholes: tuple[float, ...], found: Crossover) -> None:
        other = swept([SLOWER] * 4, wholes).lines[1]
        assert other.crossover(WHOLE) == found
        assert other.crossover(KERNEL) == Crossover(None, 512, 512)

    def test_the_baseline_beats_itself_nowhere(self) -> None:
        found = swept([FASTER] * 4)
        assert (found.baseline, found.lines[0].is_baseline) == ("numpy", True)
        assert found.lines[0].crossover(KERNEL) is None

    def test_without_a_baseline_nothing_is_compared(self) -> None:
        rows = [replace(row("other", at), versus=None) for at in SIZES]
        (found,) = sweeps(report(*rows))
        assert found.baseline is None
        assert found.lines[0].crossover(WHOLE) is None
        assert crossover(found.lines[0].crossover(WHOLE)) == "not compared"

    def test_rows_of_files_without_whole_calls_by_round(self) -> None:
        rows = [replace(row(name, at), end_to_end_seconds=[]) for name in ("numpy", "other") for at in SIZES]
        (found,) = sweeps(report(*rows))
        assert found.lines[1].crossover(WHOLE) is None
        assert found.lines[1].crossover(KERNEL) is not None


class TestPoints:
    def test_rates_are_of_the_kernel_and_of_the_whole(self) -> None:
        point = swept([SAME] * 4).lines[1].points[0]
        assert point.rate(KERNEL) == pytest.approx(64 * 12 / 1e9)
        assert point.rate(WHOLE) == pytest.approx(64 * 12 / 2 / 1e9)

    def test_a_shortened_row_is_no_point(self) -> None:
        rows = [row("numpy", at) for at in SIZES]
        rows[3] = replace(rows[3], requested={"n": 4096})
        (found,) = sweeps(report(*rows))
        assert found.sizes == [64, 128, 256]

    def test_what_failed_and_oblong_shapes_are_no_points(self) -> None:
        rows = [row("numpy", at) for at in SIZES]
        rows[0] = replace(rows[0], status="mismatch")
        oblong = replace(rows[1], kernel="matmul", shape={"m": 2, "n": 3, "k": 4})
        (found,) = sweeps(report(*rows, *[oblong] * 5))
        assert (found.asked.kernel, found.sizes) == ("vecadd", [128, 256, 512])

    def test_two_sizes_are_no_sweep(self) -> None:
        with pytest.raises(style.NothingToDraw, match="three sizes"):
            draw(report(row("numpy", 64), row("numpy", 128)))

    def test_other_threads_make_another_sweep(self) -> None:
        one = [replace(row("numpy", at), threads=1) for at in SIZES]
        found = sweeps(report(*one, *(row("numpy", at) for at in SIZES)))
        assert [each.asked.threads for each in found] == [1, 2]

    def test_caches_stand_where_all_arrays_fill_them(self) -> None:
        assert swept([SAME] * 4).caches == {"L1": 100, "L2": 300, "L3": 10_000}
        assert size_of(registry.problem("matmul"), "float64", 3 * 8 * 10**2) == 10
        assert size_of(registry.problem("matmul"), "float64", 3 * 8 * 10**2 - 1) == 9


class TestRequests:
    @pytest.mark.parametrize(
        ("first", "last", "sizes"),
        [
            (64, 64, [64]),
            (64, 127, [64]),
            (64, 512, [64, 128, 256, 512]),
            (100, 450, [100, 200, 400]),
            (2**6, 2**17, [2**power for power in range(6, 18)]),
            (2**6, 2**18, [2**power for power in range(6, 19, 2)]),
            (2**6, 2**29, [2**power for power in range(6, 30, 3)]),
        ],
    )
    def test_sizes(self, first: int, last: int, sizes: list[int]) -> None:
        assert sizes_between(first, last) == sizes

    def test_no_size_at_all(self) -> None:
        with pytest.raises(WrongRequest, match="no size from 64 to 32"):
            sizes_between(64, 32)

    def test_the_largest_size_fits_into_memory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        problem = registry.problem("matmul")
        monkeypatch.setattr(machine, "free_memory", lambda: 12 * 6 * 2 * 1024**2)
        assert sweeping.largest_size(problem, "float32", 60) == 1024
        assert sweeping.largest_size(problem, "float64", 60) == 512

    def test_a_longer_budget_reaches_a_larger_size(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """To make and check 2^26 elements takes a third of a minute, which the answers need."""
        problem = registry.problem("vecadd")
        monkeypatch.setattr(machine, "free_memory", lambda: 2**40)
        assert [sweeping.largest_size(problem, "float32", seconds) for seconds in (40, 60, 600)] == [
            2**23, 2**24, 2**27,
        ]  # fmt: skip

    def test_a_budget_without_end_reaches_what_memory_allows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(machine, "free_memory", lambda: 2**20 * 6 * 2)
        assert most_bytes(1e305) == 2**20

    def test_all_dimensions_have_the_size_and_keep_it(self) -> None:
        planned = plan(["matmul"], {"matmul": [8, 16]}, dtypes=("float32",))
        specs = planned.specs([BackendTarget("numpy", Target("cpu"))])
        assert [spec.sizes for spec in specs] == [(8, 8, 8), (16, 16, 16)]
        assert not planned.shorten
        assert planned.schedule is until_known, "sizes that are named have rounds at all of them"
        assert plan(["matmul"], {"matmul": [8]}, search=True).schedule is not until_known

    def test_each_row_has_the_baseline_of_its_own_size(self) -> None:
        found = [BackendTarget("numpy", Target("cpu")), BackendTarget("cpp", Target("cpu"))]
        planned = plan(["matmul", "vecadd"], {"matmul": [8, 16], "vecadd": [8]}, backends=["numpy", "cpp"])
        assert baselines(running_rows(planned.specs(found), found, 2)) == {1: 0, 3: 2, 5: 4}
        assert baselines(running_rows(planned.specs(found[1:]), found, 2)) == {}

    @pytest.mark.parametrize("timed_only", [False, True])
    def test_what_is_emulated_is_not_there_for_who_needs_times(self, timed_only: bool) -> None:
        found = [BackendTarget("cuda", Target("emulated", emulated=True, reason="no driver", fix="get one"))]
        specs = Request(["vecadd"], ["cuda"]).specs(found)
        (planned,) = running_rows(specs, found, 2, timed_only=timed_only)
        assert (planned.text is None) == timed_only
        told = ("unavailable", "no driver", "get one") if timed_only else ("skipped", None, None)
        assert (planned.status, planned.reason, planned.fix) == told


def whole() -> Report:
    rows = [row("numpy", at, SAME) for at in SIZES]
    rows += [row("quick", at, FASTER if at > 128 else SLOWER, 0.5 if at > 256 else 3.0) for at in SIZES]
    return report(*rows)


def printed(width: int = 120, figure: str = "rate") -> str:
    text = io.StringIO()
    print_report(whole(), Console(file=text, width=width), figure)
    return text.getvalue()


class TestShown:
    def test_tables_of_both_measures_and_crossovers(self) -> None:
        text = " ".join(printed().split())
        assert "vecadd float32 2 threads kernel alone GB/s" in text
        assert "vecadd float32 2 threads whole calls" in text
        assert re.search("quick cpu lecture from n = 256 .*128 from n = 512 .*256", text)
        assert "1.00 s" not in text

    def test_what_takes_too_long_is_one_line_for_many_sizes(self) -> None:
        long = [replace(row("slow", at), status="skipped", fix=LONGER_BUDGET, reason="long") for at in (512, 2**20)]
        text = io.StringIO()
        print_report(report(*whole().rows, *long), Console(file=text, width=120))
        assert "512, 2²⁰: slow cpu" in text.getvalue()
        assert "Not run" not in text.getvalue()

    def test_that_a_size_had_but_a_look_is_no_news(self) -> None:
        looked = whole()
        few = "3 of the 6 samples that an interval needs"
        for at, note in enumerate((few, f"built for a debugger; {few}")):
            looked.rows[at] = replace(looked.rows[at], note=note)
        text = io.StringIO()
        print_report(looked, Console(file=text, width=120))
        assert "built for a debugger" in text.getvalue()
        assert "samples" not in text.getvalue()

    def test_times_instead_of_rates(self) -> None:
        text = printed(figure=TIME)
        assert "1.00 s" in text

    def test_a_narrow_terminal_keeps_the_first_and_the_last_size(self) -> None:
        lines = [line.split() for line in printed(width=34).splitlines()]
        header = next(line for line in lines if line[:1] == ["backend"])
        assert (header[-1], "64" in header) == ("512", True)
        assert "128" not in header

    def test_sizes_are_written_as_people_do(self) -> None:
        assert [size(each) for each in (64, 1000, 8192, 16_384, 2**20, 2**20 + 1)] == [
            "64", "1000", "8192", "2¹⁴", "2²⁰", "1048577",
        ]  # fmt: skip

    @pytest.mark.parametrize("figure", ["rate", "time"])
    def test_the_picture_has_its_labels(self, figure: str) -> None:
        text = style.svg(draw(whole(), figure))
        for label in ("kernel alone", "upload and download counted", "size: elements of a vector", "quick cpu"):
            assert label in text
        assert "certainly faster" in text
        assert ("GB/s" if figure == "rate" else "one run") in text

    def test_a_ring_is_where_it_becomes_certain_and_says_so(self) -> None:
        """At 128 it may be faster, but this run cannot tell: the ring is around 256."""
        rows = [row("numpy", at) for at in SIZES]
        rows += [row("other", at, kernel) for at, kernel in zip(SIZES, (SLOWER, UNCLEAR, FASTER, FASTER), strict=True)]
        axes = draw(report(*rows)).axes[0]
        (ring,) = [line for line in axes.lines if "faster" in str(line.get_label())]
        assert list(ring.get_xdata()) == [256]
        assert str(ring.get_label()).endswith(" numpy")
        assert re.search("other cpu: kernel from n = 256 .*128", describe(report(*rows)))

    def test_caches_among_the_sizes_are_marked(self) -> None:
        text = style.svg(draw(whole()))
        assert ("L1" in text, "L2" in text, "L3" in text) == (True, True, False)
        assert "this cache" in text
        assert "L1" not in style.svg(draw(replace(whole(), machine={})))

    def test_a_line_far_below_the_others_is_told_in_the_legend(self) -> None:
        seconds = Seconds(kernel=duration(2000.0), end_to_end=duration(2000.0))
        slow = [replace(row("slow", at, SLOWER), seconds=seconds) for at in SIZES]
        text = style.svg(draw(report(*whole().rows, *slow)))
        assert "slow cpu: below, " in text
        assert "quick cpu: below" not in text
        assert "below, " not in style.svg(draw(report(*whole().rows, *slow), "time"))

    def test_the_picture_in_words(self) -> None:
        assert re.search("quick cpu: kernel .*256 .*128; whole .*512 .*256", describe(whole()))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--sizes", "64,0"], "from 1 to"),
        (["--sizes", "64,,128"], "single commas"),
        (["--sizes", "64", "--to", "128"], "leave out --from and --to"),
        (["--from", "128", "--to", "64"], "no size from 128 to 64"),
        (
            ["--kernel", "histogram", "--from", str(2**31), "--to", str(2**32)],
            "histogram does not take the shape 2147483648",
        ),
        (["--dtype", "flot32"], "unknown dtype"),
        (["--kernel", "matmull"], "did you mean 'matmul'"),
        (["--values", "speed"], "--values"),
    ],
)
def test_wrong_usage(arguments: list[str], words: str) -> None:
    ran = run_here("sweep", *arguments)
    assert ran.returncode == 2
    assert words in ran.stderr
    assert ran.stderr.count("\n") == 1


@pytest.mark.nightly
@pytest.mark.numpy
@pytest.mark.openmp
def test_a_real_run(tmp_path: Path) -> None:
    files = [tmp_path / f"sweep.{kind}" for kind in ("json", "png", "svg")]
    options = [option for file in files for option in (f"--{file.suffix[1:]}", file)]
    asked = ("--kernel", "vecadd", "--backend", "numpy,openmp", "--from", "64", "--to", "1024", "--budget", "60")
    ran = run_command("sweep", *asked, *options)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (found,) = sweeps(Report.read(files[0]))
    assert found.sizes == [64, 128, 256, 512, 1024]
    assert [line.backend for line in found.lines] == ["numpy", "openmp"]
    assert all(len(point.row.end_to_end_seconds) == len(point.row.kernel_seconds) for point in found.lines[1].points)
    assert "than numpy" in ran.stdout
    assert files[1].read_bytes().startswith(b"\x89PNG")
    assert "GB/s" in files[2].read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.numpy
def test_what_a_search_never_came_to_is_left_out() -> None:
    """It is right, but has no times: a row of it would look as if it had been measured."""
    asked = replace(
        plan(["vecadd"], {"vecadd": [64, 128]}, backends=["numpy"]),
        rounds=2,
        schedule=lambda groups: groups[1].sampled,
    )
    (only,) = run(asked, checked_settings(budget=20)).rows
    assert (only.status, only.shape, len(only.kernel_seconds)) == ("ok", {"n": 128}, 2)


@pytest.mark.slow
@pytest.mark.python
def test_what_takes_too_long_is_skipped_and_not_shortened(tmp_path: Path) -> None:
    path = tmp_path / "sweep.json"
    ran = run_command("sweep", "--backend", "python", "--sizes", "8,16,32,4096", "--budget", "3", "--json", path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    *small, large = Report.read(path).rows
    assert {each.status for each in small} == {"ok"}
    assert (large.status, large.shape["n"], large.requested) == ("skipped", 4096, None)
    assert "budget" in (large.reason or "")
