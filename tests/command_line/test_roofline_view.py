"""Rows under the roofline: on made-up reports, in words, as a picture, and once through the command line."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from commands import run_here, run_python
from made_rows import with_work
from matplotlib.colors import to_rgb
from page_commands import PageRuns
from rich.console import Console

from py_backends.commands.roofline import picture
from py_backends.commands.roofline.table import print_report, roof_name
from py_backends.display import style
from py_backends.results.report import Ceiling, Duration, Rate, Report, Rounds, Row, Seconds
from py_backends.results.roofline import percent_of_peak, point, rooflines, without_roof

pytestmark = pytest.mark.stamped

MACHINE: dict[str, Any] = {"cpu": "a CPU", "logical_cpus": 2, "cache_bytes": {"L1": 32_768, "L2": 2**20, "L3": 2**25}}
SMALL, LARGE = 12_000, 1_200_000
"""Bytes of vecadd in float32 with 1000 and 100,000 elements."""


def ceiling(kind: str, rate: float, working_set: int | None = None, **others: Any) -> Ceiling:
    unit = "gflops" if working_set is None else "gbytes_per_second"
    made = Ceiling("cpu", kind, "float32", "avx2", 2, working_set, unit, rate, 0.99 * rate, 1.01 * rate)
    return replace(made, **others)


CEILINGS = [
    ceiling("multiply_adds", 100.0),
    ceiling("multiply_adds", 30.0, instruction_set="sse"),
    ceiling("streamed_additions", 40.0, SMALL),
    ceiling("stored_additions", 120.0, SMALL),
    ceiling("streamed_additions", 24.0, LARGE),
    ceiling("stored_additions", 12.0, LARGE),
    ceiling("multiply_adds", 50.0, dtype="float64"),
]


def row_of(kernel: str, shape: dict[str, int], gflops: float, percent: float | None) -> Row:
    """An `ok` row with this rate."""
    seconds = Seconds(kernel=Duration(0.001, 0.00099, 0.00101, 0.0009, 30))
    made = Row(kernel, "openmp", "cpu", "tuned", "float32", shape, "ok", seconds=seconds, rate=Rate(gflops, 1.0))
    return with_work(replace(made, percent_of_ceiling=percent))


def vecadd(n: int, gflops: float, percent: float | None = 50.0, **others: Any) -> Row:
    return replace(row_of("vecadd", {"n": n}, gflops, percent), **others)


def matmul(n: int, gflops: float, percent: float | None = 50.0, **others: Any) -> Row:
    return replace(row_of("matmul", {"m": n, "n": n, "k": n}, gflops, percent), **others)


def report_of(*rows: Row, ceilings: list[Ceiling] | None = None, **others: Any) -> Report:
    chosen = CEILINGS if ceilings is None else ceilings
    return Report("2026-01-01", "0.1.0", MACHINE, {"seed": 1, "threads": 2}, list(rows), ceilings=chosen, **others)


def printed(report: Report, width: int = 120) -> str:
    out = Console(width=width, no_color=True, record=True, force_terminal=False)
    with out.capture() as captured:
        print_report(report, out)
    return captured.get()


class TestPoint:
    def test_of_vecadd_is_bound_by_memory(self) -> None:
        at = point(vecadd(1000, 5.0), CEILINGS)
        assert at is not None
        assert at.intensity == pytest.approx(1 / 12)
        assert (at.bound, at.percent, at.rate) == ("memory", 50.0, 5.0)
        assert at.attainable == pytest.approx(10.0)

    def test_of_matmul_is_bound_by_arithmetic(self) -> None:
        at = point(matmul(300, 50.0), CEILINGS)
        assert at is not None
        assert at.intensity == pytest.approx(300 / 6)
        assert at.bound == "arithmetic"

    @pytest.mark.parametrize(
        ("n", "bound"),
        [
            (4, "memory"),  # 4/6 FLOP/byte x 120 GB/s, in the smaller working set, is less than 100 GFLOP/s
            (6, "arithmetic"),  # 120
            (24, "arithmetic"),
        ],
    )
    def test_is_bound_by_the_lower_roof_of_its_own_working_set(self, n: int, bound: str) -> None:
        at = point(matmul(n, 1.0), CEILINGS)
        assert at is not None
        assert at.bound == bound

    def test_takes_the_better_kind_and_the_nearest_working_set(self) -> None:
        """With 24 GB/s memory binds up to 100/24 FLOP/byte, with 12 it would up to 100/12: 6 lies between."""
        n = 280  # 940,800 bytes, nearer to LARGE
        thin = row_of("matmul", {"m": n, "n": n, "k": 12}, 1.0, 50.0)  # 2 x 280 x 280 x 12 / 340,480 bytes
        at = point(thin, [replace(each, kind=each.kind.replace("additions", "copies")) for each in CEILINGS])
        assert at is not None
        assert 100 / 24 < at.intensity < 100 / 12
        assert at.bound == "arithmetic"

    def test_of_what_hardly_writes_is_held_to_reads(self) -> None:
        """A matrix times a vector: 1/2 FLOP a byte; additions of 24 GB/s would bind it at 12, reads of 400 not."""
        row = row_of("matmul", {"m": 1000, "n": 1, "k": 300}, 10.0, 50.0)
        reads = [*CEILINGS, ceiling("reads", 400.0, LARGE)]
        bounds = [at.bound for ceilings in (CEILINGS, reads) if (at := point(row, ceilings))]
        assert bounds == ["memory", "arithmetic"]

    def test_percent_of_peak_is_that_of_arithmetic_alone(self) -> None:
        assert percent_of_peak(matmul(300, 47.0, 50.0), CEILINGS) == 50.0, "by ratios within rounds"
        assert percent_of_peak(vecadd(1000, 5.0, 50.0), CEILINGS) == pytest.approx(5.0)
        assert percent_of_peak(vecadd(1000, 5.0, None), CEILINGS) is None

    def test_of_another_device_is_not_here_and_its_ceilings_are_not_the_cpus(self) -> None:
        """A GPU's peak is hundreds of times the CPU's: below it every kernel of the CPU would wait for memory."""
        gpu = [ceiling("multiply_adds", 60_000.0, device="H200"), ceiling("copies", 4000.0, device="H200")]
        row = matmul(300, 30_000.0, 50.0, backend="cuda", device="H200")
        assert point(matmul(300, 50.0), [*gpu, *CEILINGS]) == point(matmul(300, 50.0), CEILINGS)
        assert point(row, [*CEILINGS, *gpu]) is None
        assert percent_of_peak(matmul(300, 50.0, 50.0), [*gpu, *CEILINGS]) == 50.0
        assert percent_of_peak(row, [*CEILINGS, *gpu]) == pytest.approx(50.0)
        report = report_of(matmul(300, 50.0), row, ceilings=[*gpu, *CEILINGS])
        (only,) = rooflines(report)
        assert [each.rate for each in only.peaks] == [100.0, 30.0]
        (why,) = [why for _, why in without_roof(report)]
        assert "CPU's ceilings" in why

    @pytest.mark.parametrize(
        "row",
        [
            vecadd(1000, 5.0, None),
            vecadd(1000, 5.0, status="impossible"),
            vecadd(1000, 5.0, rate=None),
            vecadd(1000, 5.0, dtype="float64"),  # its bandwidths are not there
            vecadd(1000, 5.0, work=None),
        ],
        ids=["percent", "status", "rate", "dtype", "work"],
    )
    def test_is_none_for_a_row_without(self, row: Row) -> None:
        assert point(row, CEILINGS) is None


class TestWhatOnlyMoves:
    """A kernel without operations: its rate is in bytes, and its roof the bandwidth of a copy."""

    ROW = replace(row_of("transpose", {"m": 300, "n": 200}, 0.0, 25.0), rate=Rate(gflops=0.0, gbytes_per_second=10.0))
    COPIES = (ceiling("streamed_copies", 40.0, 480_000), ceiling("stored_copies", 30.0, 480_000))

    def report(self) -> Report:
        return report_of(self.ROW, vecadd(1000, 5.0), ceilings=[*CEILINGS, *self.COPIES])

    def test_has_its_place_below_copies(self) -> None:
        at = point(self.ROW, self.report().ceilings)
        assert at is not None
        assert (at.intensity, at.rate, at.attainable, at.bound) == (0.0, 10.0, 40.0, "memory")
        assert percent_of_peak(self.ROW, self.report().ceilings) == 0.0

    def test_is_printed_in_bytes(self) -> None:
        lines = printed(self.report()).splitlines()
        assert any(re.search(r"^ +copying 480 kB.* 40.0 GB/s", line) for line in lines)
        (header,) = (line for line in lines if re.search("variant +FLOP/byte +GB/s", line))
        row = lines[lines.index(header) + 1]
        assert row.split() == ["openmp", "cpu", "tuned", "0", "10.0", "40.0", "25%", "memory"]

    def test_is_a_bar_in_a_panel_of_its_own(self, tmp_path: Path) -> None:
        figure = picture.draw(self.report())
        points, shares, bars = figure.axes
        assert len(marks(points)) == 1, "vecadd"
        assert cells(shares) == {"openmp cpu tuned": ["50"]}
        assert [bar.get_width() for bar in bars.patches] == [25.0]
        style.save(figure, tmp_path / "picture.svg")
        text = (tmp_path / "picture.svg").read_text(encoding="utf-8")
        assert "25%, 10.0 GB/s" in text
        assert "transpose float32 300 x 200" in text
        assert "transpose float32 300 x 200, which only moves, is bound by DRAM" in picture.describe(self.report())

    def test_alone_has_no_panel_of_points(self) -> None:
        (bars,) = picture.draw(report_of(self.ROW, ceilings=[*CEILINGS, *self.COPIES])).axes
        assert len(bars.patches) == 1


class TestRooflines:
    def test_have_the_best_of_each_the_highest_first(self) -> None:
        (roofline,) = rooflines(report_of(vecadd(1000, 5.0), matmul(300, 50.0)))
        assert [(each.instruction_set, each.rate) for each in roofline.peaks] == [("avx2", 100.0), ("sse", 30.0)]
        assert [(each.working_set_bytes, each.rate) for each in roofline.bandwidths] == [(SMALL, 120.0), (LARGE, 24.0)]
        assert roofline.ridge(roofline.bandwidths[1]) == pytest.approx(100 / 24)
        assert [at.row.kernel for at in roofline.points] == ["vecadd", "matmul"]

    def test_are_one_a_dtype(self) -> None:
        double = [replace(each, dtype="float64") for each in CEILINGS if each.kind != "multiply_adds"]
        report = report_of(matmul(300, 5.0), matmul(300, 5.0, dtype="float64"), ceilings=CEILINGS + double)
        assert [roofline.dtype for roofline in rooflines(report)] == ["float32", "float64"]

    def test_leave_out_what_has_no_roof_and_say_why(self) -> None:
        rows = (
            matmul(300, 50.0, None, backend="cuda"),
            matmul(0, 0.0, None, backend="numpy"),
        )
        why = [reason for _, reason in without_roof(report_of(*rows, vecadd(1000, 5.0)))]
        for key, reason in zip(("the CPU", "nothing"), why, strict=True):
            assert key in reason
        unbuilt = report_of(rows[0], without_ceilings="not built; make")
        (reason,) = [reason for _, reason in without_roof(unbuilt)]
        assert reason.endswith(": not built; make")


class TestTable:
    REPORT = report_of(
        vecadd(1000, 5.0, 50.0),
        vecadd(1000, 2.0, 20.0, backend="numpy"),
        matmul(300, 70.0, 70.0),
        matmul(150, 0.02, 0.02, backend="python", requested={"m": 300, "n": 300, "k": 300}),
        matmul(300, 900.0, None, backend="cuda", target="a-gpu"),
        matmul(300, 0.0, None, backend="opencl", status="mismatch", reason="2 elements are wrong"),
    )

    def test_has_ceilings_and_points(self) -> None:
        text = printed(self.REPORT)
        assert re.search(r"peak, avx2 +100 GFLOP/s +±1\.0%", text)
        assert re.search(r"12\.0 kB \(fits L1\) +120 GB/s +±1\.0% +below 0\.83 FLOP/byte", text)
        assert re.search(r"1\.20 MB \(DRAM\) +24\.0 GB/s +±1\.0% +below 4\.17 FLOP/byte", text)
        assert re.search(r"openmp +cpu +tuned +0\.083 +5\.00 +10\.0 +50% +memory", text)
        assert re.search(r"openmp +cpu +tuned +50\.0 +70\.0 +100 +70% +arithmetic", text)
        assert re.search(r"python +cpu +tuned +\*25\.0 +0\.02 +100 +0\.02% +arithmetic", text)
        assert re.search(r"\* .*150 x 150 x 150: python cpu", text)

    def test_names_what_is_under_no_roof(self) -> None:
        below = printed(self.REPORT).partition("Under no roof")[2]
        assert "cuda a-gpu tuned (matmul float32)" in below
        assert "opencl cpu tuned (matmul float32)" in below
        assert "mismatch: 2 " in below

    def test_fits_a_narrow_terminal(self) -> None:
        text = printed(self.REPORT, 60)
        assert max(map(len, text.splitlines())) <= 60
        assert re.search(r"openmp +cpu +70\.0 +70% +arithmetic", text) or "70%  arithmetic" in text

    def test_does_without_the_sizes_of_caches(self) -> None:
        assert roof_name(ceiling("reads", 9.0, 2**28), {}) == "reading 268 MB"
        assert roof_name(ceiling("reads", 9.0, 2**28), MACHINE) == "reading 268 MB (DRAM)"
        assert roof_name(ceiling("stored_additions", 9.0, 2**22), MACHINE) == "4.19 MB (fits L3)"


class TestWhereTheDataAre:
    """A virtual machine is told of a last-level cache of the host, 480 MB of it, that others use too."""

    SHARED = {**MACHINE, "cache_bytes": {"L1": 32_768, "L2": 2**20, "L3": 480 * 2**20}}

    def printed(self, streamed: float, stored: float, machine: dict[str, Any]) -> str:
        additions = [ceiling("streamed_additions", streamed, 2**28), ceiling("stored_additions", stored, 2**28)]
        report = report_of(vecadd(1000, 5.0), ceilings=[*CEILINGS[:4], *additions])
        report.machine = machine
        return printed(report)

    def test_what_is_faster_past_the_caches_is_in_none_of_them(self) -> None:
        text = self.printed(50.0, 36.0, self.SHARED)
        assert re.search(r"268 MB \(DRAM\) +50\.0 GB/s", text)
        assert "DRAM: " in text, "what that means here"

    def test_what_is_not_faster_past_them_fits_by_reported_size(self) -> None:
        text = self.printed(50.0, 48.0, self.SHARED)
        assert re.search(r"268 MB \(fits L3\) +50\.0 GB/s", text)
        assert text.count("fits: ") == 1
        assert "DRAM" not in text

    def test_what_is_larger_than_all_caches_is_in_memory(self) -> None:
        assert re.search(r"268 MB \(DRAM\)", self.printed(50.0, 48.0, MACHINE))

    def test_the_picture_says_the_same(self) -> None:
        additions = [ceiling("streamed_additions", 20.0, 2**28), ceiling("stored_additions", 15.0, 2**28)]
        report = report_of(vecadd(1000, 5.0), ceilings=[*CEILINGS[:4], *additions])
        report.machine = self.SHARED
        text = style.svg(picture.draw(report))
        assert "DRAM 20.0 GB/s" in text
        assert "L1 120 GB/s" in text
        assert "by reported size" in text


def test_a_users_settings_of_matplotlib_change_no_picture() -> None:
    """LaTeX, which few machines have, and larger letters."""
    report = report_of(vecadd(1000, 5.0))
    plain = style.svg(picture.draw(report))
    with mpl.rc_context({"text.usetex": True, "font.size": 30.0, "axes.grid": False}):
        assert style.svg(picture.draw(report)) == plain
        assert mpl.rcParams["font.size"] == 30.0


@pytest.mark.parametrize(
    "backend", ["module://of.nobody", "module://matplotlib_inline.backend_inline", "nonsense", "svg"]
)
def test_a_users_backend_of_matplotlib_needs_not_be_there(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jupyter's, in its shells, is known to matplotlib and belongs to another package. One that is there stays."""
    monkeypatch.setenv("MPLBACKEND", backend)
    code = (
        "import os; from py_backends.display import style; style.check_library()",
        "import matplotlib; print(os.environ['MPLBACKEND'], matplotlib.rcParams['backend'] == 'svg')",
    )
    run = run_python("-c", "\n".join(code))
    assert (run.stderr, run.stdout) == ("", f"{backend} {backend == 'svg'}\n")


DISTURBED = Rounds(taken=9, kept=9, disturbed={"others": 8})
"""Too few rounds were undisturbed, so all of them count."""


class TestUnsure:
    """avx2's vecadd at 14% of its roof beside avx512's 96%, since something else took the CPUs."""

    ROWS = (vecadd(1000, 9.6, 96.0), vecadd(1000, 1.4, 14.0, backend="avx"))

    @pytest.mark.parametrize("rounds", [DISTURBED, Rounds(taken=30, kept=8, disturbed={"steal": 22})])
    def test_figures_of_mostly_disturbed_rounds_are_marked(self, rounds: Rounds) -> None:
        text = printed(report_of(*self.ROWS, rounds=rounds))
        assert re.search(r"openmp .*~96% +memory\b", text)
        assert re.search(r"avx .*~14% +memory\b", text)
        assert re.search("~ .*other processes", text)

    @pytest.mark.parametrize("rounds", [None, Rounds(30, 30, {}), Rounds(30, 25, {"others": 5})])
    def test_others_are_not(self, rounds: Rounds | None) -> None:
        assert "~" not in printed(report_of(*self.ROWS, rounds=rounds))

    def test_a_time_that_is_hardly_known_is_marked_alone(self) -> None:
        """A median of 1 ms whose interval reaches down to 0.2 ms."""
        sure, unsure = self.ROWS
        unsure = replace(unsure, seconds=Seconds(kernel=Duration(0.001, 0.0002, 0.00101, 0.0002, 30)))
        text = printed(report_of(sure, unsure))
        assert re.search(r"avx .*~14% +memory\b", text)
        assert re.search(r"openmp .* 96% +memory\b", text)
        assert re.search("~ .*±25%", text)


class TestPicture:
    REPORT = report_of(
        *(vecadd(1000, 5.0 + at / 50, 50.0 + at / 5, backend=f"backend_{at}") for at in range(7)),
        *(matmul(300, 70.0 - at / 50, 70.0 - at / 50, backend=f"backend_{at}") for at in range(7)),
    )

    @pytest.mark.filterwarnings("error")
    def test_has_names_percents_and_units(self, tmp_path: Path) -> None:
        path = tmp_path / "picture.svg"
        style.save(picture.draw(self.REPORT), path)
        text = path.read_text(encoding="utf-8")
        for words in ("GFLOP/s", "arithmetic intensity in FLOP/byte", "avx2 100 GFLOP/s", "L1 120 GB/s"):
            assert words in text
        shares = picture.draw(self.REPORT).axes[1]
        of_vecadd, of_matmul = self.REPORT.rows[:7], self.REPORT.rows[7:]
        assert cells(shares) == {
            f"{one.backend} cpu tuned": [f"{one.percent_of_ceiling:.0f}", f"{other.percent_of_ceiling:.0f}"]
            for one, other in zip(of_vecadd, of_matmul, strict=True)
        }, "from left to right"
        assert heads(shares) == ["vecadd L1 1000", "matmul arithmetic 300"]

    def test_every_mark_stands_at_its_own_intensity_and_rate(self) -> None:
        """7 rows of one rate, nearly: none is moved aside, where its intensity would be another."""
        axes, _ = picture.draw(self.REPORT).axes
        drawn = sorted((line.get_xdata()[0], line.get_ydata()[0]) for line in marks(axes))
        expected = [
            (1 / 12 if row.kernel == "vecadd" else 50.0, row.rate.gflops) for row in self.REPORT.rows if row.rate
        ]
        assert np.array(drawn) == pytest.approx(np.array(sorted(expected)))

    def test_kernels_are_named_above_their_marks_and_not_upon_each_other(self) -> None:
        """Three kernels whose best marks are at nearly one place."""
        near = [
            row_of("nbody", {"m": 130, "n": 130}, 70.5, 70.0),
            row_of("attention", {"m": 300, "d": 300, "n": 300}, 71.0, 70.0),
        ]
        figure = picture.draw(replace(self.REPORT, rows=[*self.REPORT.rows, *near]))
        figure.draw_without_rendering()
        axes, shares = figure.axes
        found = {text.get_text(): text.get_window_extent() for text in axes.texts}
        assert {"vecadd", "matmul", "nbody", "attention"} < set(found)
        assert len(axes.texts) == len(found), "each name once"
        for name, box in found.items():
            assert not any(box.overlaps(other) for each, other in found.items() if each != name), name
        highest = max(mark.get_ydata()[0] for mark in marks(axes) if mark.get_xdata()[0] > 1)
        assert found["matmul"].y0 > axes.transData.transform((50.0, highest - 2))[1]
        assert {mark.get_window_extent().y1 < box.y1 for mark in marks(shares) for box in found.values()} == {True}

    def test_a_figure_that_is_not_to_be_relied_on_is_hollow(self, tmp_path: Path) -> None:
        figure = picture.draw(replace(self.REPORT, rounds=DISTURBED))
        assert {line.get_fillstyle() for line in marks(figure.axes[0])} == {"none"}
        style.save(figure, tmp_path / "picture.svg")
        text = (tmp_path / "picture.svg").read_text(encoding="utf-8")
        assert text.count("other processes") == 1, "one line says it"
        assert cells(figure.axes[1])["backend_6 cpu tuned"] == ["51", "70"], "and no mark at each figure"
        assert {line.get_fillstyle() for line in marks(picture.draw(self.REPORT).axes[0])} == {"full"}

    def test_a_time_that_is_hardly_known_is_marked_alone(self) -> None:
        unsure = replace(self.REPORT.rows[0], seconds=Seconds(kernel=Duration(0.001, 0.0002, 0.00101, 0.0002, 30)))
        axes, shares = picture.draw(replace(self.REPORT, rows=[unsure, *self.REPORT.rows[1:]])).axes
        assert sorted(line.get_fillstyle() for line in marks(axes)) == ["full"] * 13 + ["none"]
        assert cells(shares)["backend_0 cpu tuned"] == ["~50", "70"]
        assert "hollow" in axes.get_title(loc="left")

    def test_a_level_of_memory_has_one_line_and_those_alike_are_one(self) -> None:
        """Bandwidths of 120, 100, 80, 60, 50 and 48 GB/s in L1, and two of L2, of which 112 is the higher one."""
        rates = enumerate((100.0, 80.0, 60.0, 50.0, 48.0), start=2)
        more = [ceiling("stored_additions", rate, SMALL * at) for at, rate in rates]
        more += [ceiling("reads", 112.0, 10**6), ceiling("reads", 90.0, 2 * 10**6), ceiling("reads", 10.0, 10**9)]
        axes, _ = picture.draw(report_of(vecadd(1000, 5.0), ceilings=[*CEILINGS[:4], *more])).axes
        assert [text.get_text() for text in axes.texts if "GB/s" in text.get_text()] == [
            "L1, L2 112 to 120 GB/s",
            "DRAM 10.0 GB/s",
        ]
        rising = [line for line in axes.lines if line.get_ydata()[0] < line.get_ydata()[-1]]
        assert [line.get_ydata()[0] / line.get_xdata()[0] for line in rising] == pytest.approx([120.0, 10.0])

    def test_without_the_sizes_of_caches_a_level_is_a_size(self) -> None:
        report = replace(report_of(vecadd(1000, 5.0), ceilings=CEILINGS[:4]), machine={})
        axes, shares = picture.draw(report).axes
        assert [text.get_text() for text in axes.texts if "GB/s" in text.get_text()] == ["12.0 kB 120 GB/s"]
        assert heads(shares) == ["vecadd 12.0 kB 1000"]

    def test_of_many_shapes_has_the_largest(self) -> None:
        rows = [vecadd(1000 * at, 5.0 + at, 50.0 + at) for at in range(1, 10)]
        _, shares = picture.draw(report_of(*rows)).axes
        assert cells(shares) == {"openmp cpu tuned": ["59"]}

    def test_is_described_in_words(self) -> None:
        text = picture.describe(self.REPORT)
        assert re.search(r"100 GFLOP/s .*24\.0 to 120 GB/s", text)
        assert re.search(r"vecadd float32 1000, .*0\.083 .*L1: backend_6 .*51%", text)

    @pytest.mark.parametrize(
        ("report", "words"),
        [
            (report_of(), "no row was timed on a device whose ceilings were measured"),
            (report_of(matmul(300, 9.0, None)), "no row was timed on a device whose ceilings were measured"),
            (report_of(matmul(300, 9.0, None), without_ceilings="not built; make"), "not built; make"),
            (report_of(matmul(300, 9.0), ceilings=[]), "no row was timed on a device whose ceilings"),
        ],
        ids=["no rows", "a GPU", "not built", "no ceilings"],
    )
    def test_says_what_is_missing(self, report: Report, words: str) -> None:
        for view in (picture.draw, picture.describe):
            with pytest.raises(style.NothingToDraw, match=words):
                view(report)


class TestManyKernels:
    """Shares of the roof, models by kernels, in the table and in the picture."""

    ROWS = (
        row_of("nbody", {"m": 130, "n": 130}, 70.5, 70.0),
        replace(row_of("nbody", {"m": 130, "n": 130}, 30.5, 30.0), target="sse"),
        matmul(300, 80.0, 80.0),
        matmul(300, 80.4, 80.4, backend="avx"),
        matmul(150, 0.02, 0.02, backend="python", requested={"m": 300, "n": 300, "k": 300}),
        vecadd(1000, 5.0, 50.0),
        vecadd(1000, 0.4, 4.0, backend="python"),
        vecadd(1000, 9.6, 96.0, backend="avx"),
        TestWhatOnlyMoves.ROW,
    )
    EXPECTED = {"openmp": ["25", "50", "80", "70"], "avx": ["-", "96", "80", "-"], "python": ["-", "4.0", "*<0.1", "-"]}

    def report(self, **others: Any) -> Report:
        return report_of(*self.ROWS, ceilings=[*CEILINGS, *TestWhatOnlyMoves.COPIES], **others)

    def shares(self, report: Report) -> list[list[str]]:
        lines = printed(report).partition("shares  float32")[2].splitlines()[1:]
        return [re.split(r" {2,}", line.strip()) for line in lines]

    def test_are_columns_and_models_by_their_best_rows(self) -> None:
        head, bound, at, nearest, *rows = self.shares(self.report())
        assert at == ["at sizes", "300x200", "1000", "300", "130"]
        assert head == ["transpose", "vecadd", "matmul", "nbody"], "by arithmetic intensity"
        assert bound == ["bound by", "DRAM", "L1", "arithmetic", "arithmetic"]
        assert nearest == ["nearest", "openmp", "avx", "openmp, avx", "openmp"], "both of two that read alike"
        assert {name: shares for name, *shares in rows[:3]} == self.EXPECTED

    def test_what_binds_is_said_of_the_largest_sizes_that_ran(self) -> None:
        """A smaller shape may lie in a nearer cache, and the nearest row of all may have run there."""
        asked = {"n": 10**7}
        rows = [vecadd(1000, 9.0, 90.0, requested=asked), vecadd(10**5, 0.4, 20.0, backend="avx", requested=asked)]
        report = report_of(*rows, *self.ROWS[:3], self.ROWS[-1], ceilings=[*CEILINGS, *TestWhatOnlyMoves.COPIES])
        assert "vecadd DRAM *100000" in heads(picture.draw(report).axes[1])
        assert "vecadd DRAM 100000" in heads(
            picture.draw(replace(report, rows=[*report.rows[2:], vecadd(10**5, 0.4)])).axes[1]
        )

    def test_the_ceilings_are_one_a_level(self) -> None:
        text = printed(self.report()).partition("transpose")[0]
        assert re.findall(r"^  (L1|L2|L3|DRAM) +(\S+) GB/s", text, flags=re.MULTILINE) == [
            ("L1", "120"), ("DRAM", "40.0"),
        ]  # fmt: skip

    def test_the_picture_says_the_same(self) -> None:
        axes, shares = picture.draw(self.report()).axes
        assert cells(shares) == self.EXPECTED
        assert heads(shares) == [
            "transpose DRAM 300x200",
            "vecadd L1 1000",
            "matmul arithmetic 300",
            "nbody arithmetic 130",
        ]
        assert len(marks(axes)) == 7, "the best of each model, for each kernel over FLOP/byte"
        assert len(marks(shares)) == 3
        assert [mark.get_alpha() for mark in axes.lines if mark.get_marker() != "None"].count(0.4) == 1, (
            "of python's 150"
        )
        assert "in the table alone, since they compute nothing: transpose" in axes.get_title(loc="left")
        framed = {(patch.get_x() + 0.5, patch.get_y() + 0.5) for patch in shares.patches if not patch.get_fill()}
        assert framed == {(0, 0), (1, 1), (2, 0), (2, 1), (3, 0)}

    def test_a_model_has_the_same_mark_whichever_is_fastest(self) -> None:
        slower = replace(self.ROWS[5], rate=Rate(0.1, 1.0), percent_of_ceiling=1.0), *self.ROWS[6:]
        found = []
        for rows in (self.ROWS, (*slower, *self.ROWS[2:5])):
            shares = picture.draw(report_of(*rows, ceilings=[*CEILINGS, *TestWhatOnlyMoves.COPIES])).axes[1]
            names = [label.get_text() for label in shares.get_yticklabels()]
            found.append((names, {names[int(mark.get_ydata()[0])]: mark.get_color() for mark in marks(shares)}))
        (names, ours), (others_names, others) = found
        assert names != others_names
        assert ours == others

    def test_a_cell_can_be_read_on_its_colour(self) -> None:
        """WCAG 2 asks for a contrast of 4.5 for small letters."""
        of_all = [vecadd(1000, at / 10, float(at), backend=f"backend_{at}") for at in range(1, 101, 3)]
        report = report_of(*of_all, matmul(300, 80.0), row_of("nbody", {"m": 130, "n": 130}, 70.5, 70.0))
        _, shares = picture.draw(report).axes
        filled = [patch for patch in shares.patches if patch.get_fill()]
        inks = [text.get_color() for text in shares.texts if text.get_text() not in ("-", shares.texts[-1].get_text())]
        for patch, ink in zip(filled, inks, strict=True):
            assert contrast(patch.get_facecolor(), ink) >= 4.5

    def test_a_disturbed_run_says_so_in_one_line(self) -> None:
        report = self.report(rounds=DISTURBED)
        assert {name: shares for name, *shares in self.shares(report)[4:7]} == self.EXPECTED
        assert printed(report).count("far off") == 1
        figure = picture.draw(report)
        assert style.svg(figure).count("other processes") == 1
        assert cells(figure.axes[1]) == self.EXPECTED
        assert all(patch.get_fill() for patch in figure.axes[1].patches), "none is framed: the order says nothing"
        assert "other processes" not in style.svg(picture.draw(self.report()))

    def test_a_disturbed_run_does_not_tell_memory_by_its_bandwidths(self) -> None:
        """Stores past the caches may then seem faster wherever the data lie."""
        small = [ceiling("streamed_additions", 400.0, SMALL), *CEILINGS[:2], *CEILINGS[3:]]
        assert rooflines(report_of(vecadd(1000, 5.0), ceilings=small))[0].from_memory == {SMALL, LARGE}
        assert rooflines(report_of(vecadd(1000, 5.0), ceilings=small, rounds=DISTURBED))[0].from_memory == set()

    def test_narrow_terminals_keep_the_names_and_the_first_kernels(self) -> None:
        text = printed(self.report(), 40).partition("shares  float32")[2]
        assert max(map(len, text.splitlines())) <= 40
        assert re.search(r"^  avx +- +96", text, flags=re.MULTILINE)


def contrast(*colours: Any) -> float:
    """The contrast of two colours, by WCAG 2."""

    def luminance(colour: Any) -> float:
        parts = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in to_rgb(colour)]
        return float(np.dot(parts, [0.2126, 0.7152, 0.0722]))

    darker, lighter = sorted(map(luminance, colours))
    return (lighter + 0.05) / (darker + 0.05)


def cells(axes: Any) -> dict[str, list[str]]:
    """The heat map in words: what stands beside each name, from left to right."""
    names = [label.get_text() for label in axes.get_yticklabels()]
    found = [(text.get_position(), text.get_text()) for text in axes.texts if "\n" not in text.get_text()]
    return {name: [words for (_, y), words in sorted(found) if y == at] for at, name in enumerate(names)}


def heads(axes: Any) -> list[str]:
    """The heads of the columns of a heat map."""
    return [label.get_text().replace("\n", " ") for label in axes.get_xticklabels()]


def marks(axes: Any) -> list[Any]:
    """The rows' marks, without the lines of the roofs."""
    return [line for line in axes.lines if line.get_marker() != "None"]


@pytest.mark.slow
def test_the_command_prints_and_writes_all(page_runs: PageRuns) -> None:
    ran = page_runs("py-backends roofline")
    assert "bound by" in ran.first.stdout
    assert re.search(r"numpy +cpu +lecture .*% +memory", ran.first.stdout)
    report = Report.read(ran.folder / "roofline.json")
    assert len(rooflines(report)[0].points) == 4
    assert str(report.settings["command"]).startswith("py-backends roofline")
    assert (ran.folder / "roofline.png").read_bytes().startswith(b"\x89PNG")
    assert "numpy cpu lecture" in (ran.folder / "roofline.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--kernel matmull", "did you mean 'matmul'?"),
        ("--png /proc/picture.png", "/proc cannot be written to"),
        ("--json same.svg --svg same.svg", "name one for each"),
        ("--budget 0", "above 0"),
        ("results.json", "unknown arguments: results.json"),
    ],
)
def test_wrong_usage_ends_with_2(options: str, words: str) -> None:
    run = run_here("roofline", *options.split())
    assert (run.returncode, run.stdout) == (2, "")
    assert words in run.stderr
    assert len(run.stderr.splitlines()) == 1
