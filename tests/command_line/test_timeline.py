"""The timeline: phases of made-up rows, in a table, as a picture and in words; and once through the command line."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import run_command, run_here
from page_commands import PageRuns
from rich.console import Console

from py_backends.commands.timeline import picture
from py_backends.commands.timeline.table import columns, print_report
from py_backends.display import style
from py_backends.results.report import Communication, Duration, Report, Row, Seconds
from py_backends.results.timeline import LAUNCH, MOST_LANES, PHASES, Call, Lane, timelines

N = {"n": 1000}


def duration(seconds: float) -> Duration:
    return Duration(seconds, 0.99 * seconds, 1.01 * seconds, 0.98 * seconds, 30)


OFFLOADED = Seconds(
    prepare=2.0,
    upload=3e-3,
    download=1e-3,
    kernel=duration(4e-3),
    end_to_end=duration(12e-3),
    first_launch=2.5,
    clock=duration(5e-3),
    release=1e-3,
)
IN_PLACE = Seconds(prepare=1e-5, upload=0.0, download=0.0, kernel=duration(2e-3), end_to_end=duration(2.1e-3))


def row(backend: str, seconds: Seconds | None = OFFLOADED, **others: Any) -> Row:
    made = Row("vecadd", backend, "cpu", "tuned", "float32", N, "ok", seconds=seconds, threads=2)
    return replace(made, **others)


def report(*rows: Row) -> Report:
    return Report("2026-11-21T00:00:00+00:00", "0.1.0", {"cpu": "Made-up"}, {"seed": 1}, list(rows))


def printed(report: Report, width: int = 120) -> str:
    out = io.StringIO()
    print_report(report, Console(file=out, width=width, no_color=True))
    return out.getvalue()


class TestPhases:
    def test_add_up_and_say_what_is_not_the_kernel(self) -> None:
        ((call,),) = [each.calls for each in timelines(report(row("opencl")))]
        assert list(call.phases) == list(PHASES)
        assert call.phases[LAUNCH] == pytest.approx(1e-3), "by the clock, without what the events say"
        assert sum(call.phases.values()) == pytest.approx(10e-3)
        assert call.outside == pytest.approx(1 - 4 / 12), "of the call as it was measured"
        assert call.once == {"prepare": 2.0, "first launch": 2.5}

    def test_that_were_not_measured_are_not_there(self) -> None:
        ((call,),) = [each.calls for each in timelines(report(row("openmp", IN_PLACE)))]
        assert list(call.phases) == ["upload", "kernel", "download"]
        assert call.once == {"prepare": 1e-5}
        assert call.outside == pytest.approx(1 - 2 / 2.1)

    def test_and_the_rest_are_the_call_that_was_measured(self) -> None:
        ((call,),) = [each.calls for each in timelines(report(row("opencl")))]
        assert (call.total, call.rest) == (12e-3, pytest.approx(2e-3))

    def test_of_a_call_that_took_less_than_they_leave_no_rest(self) -> None:
        """Medians of different launches: a kernel of 2 ms in calls of 1.9 ms."""
        ((call,),) = [
            each.calls for each in timelines(report(row("cpp", replace(IN_PLACE, end_to_end=duration(1.9e-3)))))
        ]
        assert (call.total, call.rest, call.outside) == (1.9e-3, 0, 0)

    def test_are_the_call_where_no_whole_one_was_measured(self) -> None:
        ((call,),) = [each.calls for each in timelines(report(row("opencl", replace(OFFLOADED, end_to_end=None))))]
        assert (call.total, call.rest) == (pytest.approx(10e-3), 0)

    def test_a_clock_below_the_events_costs_nothing(self) -> None:
        seconds = replace(OFFLOADED, clock=duration(3.9e-3))
        ((call,),) = [each.calls for each in timelines(report(row("opencl", seconds)))]
        assert call.phases[LAUNCH] == 0

    def test_of_a_kernel_in_no_time_have_no_share(self) -> None:
        nothing = replace(IN_PLACE, kernel=duration(0.0), end_to_end=duration(0.0))
        ((call,),) = [each.calls for each in timelines(report(row("openmp", nothing)))]
        assert (call.total, call.outside) == (0, 0)


def test_a_line_names_what_an_earlier_run_compiled() -> None:
    text = printed(report(row("opencl", kept=True), row("sycl", kept=True), row("cpp", IN_PLACE)))
    assert "earlier run compiled: opencl cpu, sycl cpu" in text
    assert "earlier run" not in printed(report(row("opencl")))


TWO_RANKS = Communication(6e-4, [8, 8], 8.0, seconds_by_rank=[4e-4, 6e-4], kernel_by_rank=[3.6e-3, 4e-3])


def of_ranks(told: Communication = TWO_RANKS, seconds: Seconds = OFFLOADED) -> Row:
    return row("mpi", seconds, target="2x1", communication=told)


def call_of(row: Row) -> Call:
    ((call,),) = [each.calls for each in timelines(report(row))]
    return call


class TestLanes:
    def test_are_of_ranks(self) -> None:
        call = call_of(of_ranks())
        assert call.lanes == call.some_lanes == [Lane(0, 3.6e-3, 4e-4), Lane(1, 4e-3, 6e-4)]
        assert [lane.computing for lane in call.lanes] == pytest.approx([3.2e-3, 3.4e-3])

    @pytest.mark.parametrize(
        "told",
        [
            None,
            Communication(0.0, [0], 0.0, [0.0], [4e-3]),
            Communication(6e-4, [8, 8], 8.0),
            Communication(6e-4, [8, 8], 8.0, [4e-4, 6e-4], []),
        ],
    )
    def test_are_none_of_one_rank_and_in_files_that_do_not_tell(self, told: Communication | None) -> None:
        assert call_of(row("mpi", communication=told)).lanes == []

    def test_of_many_ranks_are_some_from_the_slowest_to_the_quickest(self) -> None:
        kernels = [3e-3 + 1e-5 * ((7 * rank) % 64) for rank in range(64)]
        call = call_of(of_ranks(Communication(1e-4, [8] * 64, 8.0, [1e-4] * 64, kernels)))
        assert len(call.lanes) == 64
        shown = [lane.kernel for lane in call.some_lanes]
        assert (len(shown), shown[0], shown[-1]) == (MOST_LANES, max(kernels), min(kernels))
        assert shown == sorted(shown, reverse=True)
        assert all(kernels[lane.rank] == lane.kernel for lane in call.some_lanes)
        assert "8 of 64 ranks" in " ".join(printed(report(call.row)).split())

    def test_communication_that_took_longer_than_the_kernel_leaves_nothing(self) -> None:
        """Medians of different launches."""
        (lane, _) = call_of(of_ranks(replace(TWO_RANKS, seconds_by_rank=[5e-3, 0.0]))).lanes
        assert lane.computing == 0
        assert "rank 0 3.60 ms (100%)" in printed(report(of_ranks(replace(TWO_RANKS, seconds_by_rank=[5e-3, 0.0]))))

    def test_of_a_kernel_in_no_time_have_no_share(self) -> None:
        told = Communication(0.0, [0, 0], 0.0, [0.0, 0.0], [0.0, 0.0])
        assert "rank 0 0 ns (0%)" in printed(report(of_ranks(told)))


class TestTimelines:
    def test_have_the_quickest_first_and_smaller_shapes_last(self) -> None:
        small = row("python", IN_PLACE, shape={"n": 10}, requested=N)
        (each,) = timelines(report(small, row("opencl"), row("openmp", IN_PLACE)))
        assert [call.row.backend for call in each.calls] == ["openmp", "opencl", "python"]
        assert [call.shortened for call in each.calls] == [False, False, True]

    def test_are_one_for_each_thing_that_was_asked_for(self) -> None:
        rows = [row("numpy"), row("numpy", threads=1), row("numpy", dtype="float64"), row("numpy", shape={"n": 7})]
        asked = [each.asked for each in timelines(report(*rows))]
        assert [(each.dtype, each.sizes, each.threads) for each in asked] == [
            ("float32", (1000,), 2),
            ("float32", (1000,), 1),
            ("float64", (1000,), 2),
            ("float32", (7,), 2),
        ]

    def test_leave_out_what_has_no_time(self) -> None:
        without = [row("cuda", status="emulated"), row("avx", None), row("sycl", Seconds(prepare=1.0))]
        assert timelines(report(*without)) == []


class TestTable:
    def test_has_every_phase_in_its_unit(self) -> None:
        ((call,),) = [each.calls for each in timelines(report(row("opencl")))]
        said = {column.title: column.cells[0] for column in columns([call])}
        assert said == {
            "backend": "opencl", "target": "cpu", "variant": "tuned", "upload": "3.00 ms", "launch": "1.00 ms",
            "kernel": "4.00 ms", "download": "1.00 ms", "release": "1.00 ms", "rest": "2.00 ms",
            "end to end": "12.0 ms", "not kernel": "67%", "prepare": "2.00 s", "first launch": "2.50 s",
        }  # fmt: skip

    def test_marks_smaller_shapes(self) -> None:
        text = printed(report(row("opencl"), row("python", IN_PLACE, shape={"n": 10}, requested=N)))
        assert "*2.00 ms" in text
        assert re.search(r"\* .*10: python cpu", text)

    def test_keeps_what_matters_on_a_narrow_terminal(self) -> None:
        text = printed(report(row("opencl")), width=60)
        header = next(line for line in text.splitlines() if line.startswith("  backend"))
        assert [word in header for word in ("backend", "kernel", "end to end", "not kernel")] == [True] * 4
        assert "first launch" not in header
        assert max(map(len, text.splitlines())) <= 60

    def test_says_what_was_not_run(self) -> None:
        text = printed(
            report(row("opencl"), row("cuda", None, status="unavailable", reason="no driver", fix="buy one"))
        )
        assert "Not run" in text
        assert "no driver" in text
        assert "buy one" in text
        assert "1 row ran" in text

    def test_says_what_each_rank_does(self) -> None:
        text = printed(report(of_ranks(), row("openmp", IN_PLACE)))
        assert re.search(r"mpi 2x1, .*: rank 0 3\.60 ms \(11%\), rank 1 4\.00 ms \(15%\)", text)
        assert "rank" not in printed(report(row("openmp", IN_PLACE)))


class TestPicture:
    def test_bars_are_the_phases_and_the_rest_and_end_with_the_measured_call(self) -> None:
        axes = picture.draw(report(row("opencl"), row("openmp", IN_PLACE))).axes[0]
        opencl = [(0, 3), (3, 1), (4, 4), (8, 1), (9, 1), (10, 2)]
        assert bars(axes) == [(0, 0), (0, 2), (2, 0), (2, 0.1), *opencl], "in ms, the quickest above"
        assert [round(x, 6) for x in ends(axes)] == [2.1, 12]
        assert [text.get_text() for text in axes.texts] == ["2.10 ms", "12.0 ms"]
        assert axes.get_xlabel().endswith(" ms")
        assert [label.get_text() for label in axes.get_yticklabels()] == ["openmp cpu", "opencl cpu"]

    def test_what_comes_once_stands_apart_on_a_scale_of_decades(self) -> None:
        figure = picture.draw(report(row("opencl"), row("openmp", IN_PLACE)))
        once = figure.axes[1]
        assert once.get_xscale() == "log"
        assert {line.get_label(): list(line.get_xdata()) for line in once.lines} == {
            "prepare (once)": [1e-5, 2.0],
            "first launch (once)": [2.5],
        }

    def test_a_call_that_would_dwarf_the_others_is_drawn_shorter_and_says_so(self) -> None:
        """6 s: half of it upload, a third kernel, the rest download; all three are seen, in these proportions."""
        slow = Seconds(upload=3.0, kernel=duration(2.0), download=1.0, end_to_end=duration(6.0))
        axes = picture.draw(report(row("opencl"), row("openmp", IN_PLACE), row("python", slow))).axes[0]
        assert re.fullmatch("python cpu\n.*scale", [label.get_text() for label in axes.get_yticklabels()][-1])
        assert axes.texts[-1].get_text() == "6.00 s"
        assert bars(axes)[-3:] == [(0, 6), (6, 4), (10, 2)], "as long as the longest of the others, 12 ms"
        assert max(ends(axes)) == pytest.approx(12)
        strokes = [line for line in axes.lines if line.get_color() == "white"]
        assert [[round(y) for y in line.get_ydata()] for line in strokes] == [[2, 2]] * 2, "across the third bar"

    def test_the_others_are_to_scale(self) -> None:
        axes = picture.draw(report(row("opencl"), row("openmp", IN_PLACE))).axes[0]
        assert "scale" not in " ".join(label.get_text() for label in axes.get_yticklabels())
        assert not [line for line in axes.lines if line.get_color() == "white"]

    def test_of_many_shapes_has_the_largest(self) -> None:
        figure = picture.draw(report(*(row("opencl", shape={"n": 10**power}) for power in range(1, 9))))
        titles = [axes.get_title(loc="left") for axes in figure.axes]
        assert [title for title in titles if title] == ["vecadd  float32  100000000  2 threads"]

    def test_variants_of_one_backend_are_told_apart(self) -> None:
        figure = picture.draw(report(row("opencl"), row("opencl", variant="lecture"), row("sycl")))
        names = {label.get_text() for label in figure.axes[0].get_yticklabels()}
        assert names == {"opencl cpu tuned", "opencl cpu lecture", "sycl cpu"}

    def test_nothing_reaches_beyond_its_edges(self, tmp_path: Path) -> None:
        figure = picture.draw(report(row("opencl"), row("openmp", IN_PLACE)))
        style.save(figure, tmp_path / "timeline.png")
        (legend,) = figure.legends
        named = [text.get_text().split()[0] for text in legend.get_texts()]
        assert named == ["upload", "launch", "kernel", "download", "release", "rest", "call", "prepare", "first"]
        around = figure.get_tightbbox()
        width, height = figure.get_size_inches()
        assert around.x0 >= 0
        assert around.y0 >= 0
        assert around.x1 <= width
        assert around.y1 <= height

    def test_lanes_stand_below_their_call_and_begin_with_the_kernel(self) -> None:
        figure = picture.draw(report(of_ranks(), row("openmp", IN_PLACE)))
        axes, once = figure.axes[0], figure.axes[1]
        names = {label.get_text(): at for label, at in zip(axes.get_yticklabels(), axes.get_yticks(), strict=True)}
        assert list(names) == ["openmp cpu", "mpi 2x1", "rank 0", "rank 1"]
        assert list(names.values()) == sorted(names.values()), "downwards, as the axis goes"
        lanes = [bar for bar in axes.patches if bar.get_y() > names["mpi 2x1"]]
        assert [(round(bar.get_x(), 6), round(bar.get_width(), 6)) for bar in lanes] == [
            *((4, 3.2), (7.2, 0.4)),
            *((4, 3.4), (7.4, 0.6)),
        ]
        assert {text.get_text() for text in axes.texts} == {"2.10 ms", "12.0 ms", "11%", "15%"}
        marks = [list(line.get_ydata()) for line in once.lines if line.get_label() == "first launch (once)"]
        assert marks == [[names["mpi 2x1"]]], "beside its call, not a lane"
        assert any("communication" in text.get_text() for text in figure.legends[0].get_texts())

    def test_lanes_of_a_call_that_is_drawn_shorter_are_as_short(self) -> None:
        slow = replace(OFFLOADED, kernel=duration(4.0), end_to_end=duration(6.0), clock=None, upload=1.0)
        told = Communication(1.0, [8, 8], 8.0, [1.0, 1.0], [4.0, 4.0])
        axes = picture.draw(report(row("opencl"), row("openmp", IN_PLACE), of_ranks(told, slow))).axes[0]
        assert any(re.fullmatch("mpi 2x1\n.*scale", label.get_text()) for label in axes.get_yticklabels())
        assert bars(axes)[-4:] == [(2, 6), (8, 2)] * 2, "6 s are drawn as long as 12 ms"

    def test_is_said_in_words(self) -> None:
        words = picture.describe(report(row("opencl"), row("openmp", IN_PLACE)))
        assert "vecadd  float32  1000  2 threads" in words
        assert re.search(r"opencl cpu tuned .*12\.0 ms, 67%", words)
        words = picture.describe(report(of_ranks()))
        assert "11% of rank 0, 15% of rank 1" in words

    def test_can_be_of_kernels_in_no_time(self) -> None:
        nothing = Seconds(upload=0.0, download=0.0, kernel=duration(0.0), end_to_end=duration(0.0))
        assert "0 ns" in style.svg(picture.draw(report(row("numpy", nothing))))

    def test_says_that_there_is_nothing_to_draw(self) -> None:
        with pytest.raises(style.NothingToDraw, match="no row was timed"):
            picture.draw(report(row("cuda", None, status="unavailable")))


def bars(axes: Any) -> list[tuple[float, float]]:
    """Where each part of a bar begins, and how long it is."""
    return [(round(bar.get_x(), 6), round(bar.get_width(), 6)) for bar in axes.patches]


def ends(axes: Any) -> list[float]:
    """Where the lines stand that end a measured call."""
    return [line.get_xdata()[0] for line in axes.lines if line.get_label() == "call as measured"]


@pytest.mark.numpy
@pytest.mark.openmp
@pytest.mark.slow
def test_the_command_prints_and_writes_all(page_runs: PageRuns) -> None:
    ran = page_runs("py-backends timeline")
    lines = [line.split()[:2] for line in ran.first.stdout.splitlines() if re.match(r"  \w", line)]
    (first, second) = (at for at, line in enumerate(lines) if line == ["backend", "target"])
    for at in (first, second):
        assert sorted(lines[at + 1 : at + 3]) == [["numpy", "cpu"], ["openmp", "cpu"]]
    rows = json.loads((ran.folder / "timeline.json").read_text(encoding="utf-8"))["rows"]
    assert {row["status"] for row in rows} == {"ok"}
    assert (ran.folder / "timeline.png").read_bytes().startswith(b"\x89PNG")
    assert "one call" in (ran.folder / "timeline.svg").read_text(encoding="utf-8")


@pytest.mark.slow
def test_where_nothing_was_timed_there_is_no_picture(tmp_path: Path) -> None:
    """Nothing fits a budget of no time: the table is printed, and one line says why there is no picture."""
    run = run_command(
        *("timeline", "--kernel", "vecadd", "--backend", "numpy", "--shape", "vecadd=1", "--budget", "0.0000001"),
        *("--png", tmp_path / "timeline.png"),
    )
    assert run.returncode == 1
    (line,) = run.stderr.splitlines()
    assert "no picture: " in line
    assert list(tmp_path.iterdir()) == []


def test_two_files_of_one_name_are_wrong_usage(tmp_path: Path) -> None:
    run = run_here("timeline", "--json", tmp_path / "a.svg", "--svg", tmp_path / "a.svg")
    assert run.returncode == 2
    assert re.search("--json .*--svg .*same file", run.stderr)
