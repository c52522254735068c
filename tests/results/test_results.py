"""Result files: strict JSON with every field that scripts rely on, views that hold every row, whole files or none."""

from __future__ import annotations

import csv
import datetime
import errno
import json
import math
import os
import stat
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
from conftest import Comparison
from made_rows import with_work

from py_backends import registry
from py_backends.display import remarks
from py_backends.display.files import csv_text, markdown_text
from py_backends.errors import WrongRequest
from py_backends.number_formats import DTYPES
from py_backends.results.report import FUNCTIONS, Check, Communication, Duration, Rate, Report, Row, Seconds
from py_backends.system.files import check_writable, write_whole

NUMBER = (int, float)
BOUND = (int, float, type(None))
INTERVAL = {"median": NUMBER, "low": BOUND, "high": BOUND}
ROW = {
    "kernel": str, "backend": str, "target": str, "variant": str, "dtype": str, "shape": dict, "status": str,
    "reason": (str, type(None)), "note": (str, type(None)),
    "check": (dict, type(None)), "seconds": (dict, type(None)), "rate": (dict, type(None)),
}  # fmt: skip
CHECK = {"passed": bool, "rule": str, "error_over_bound": BOUND, "relative_error": BOUND}
SECONDS = {
    "prepare": BOUND, "upload": BOUND, "download": BOUND,
    "kernel": (dict, type(None)), "end_to_end": (dict, type(None)),
}  # fmt: skip
RATE = {"gflops": NUMBER, "gbytes_per_second": NUMBER}
MACHINE = {
    "cpu": str, "isa": list, "logical_cpus": int, "memory_bytes": int, "os": str, "python": str, "packages": dict,
}  # fmt: skip
SETTINGS = {"seed": int, "threads": int, "budget_seconds": NUMBER, "command": str}
WHOLE = {
    "schema_version": int, "created": str, "package_version": str, "machine": dict, "settings": dict, "rows": list,
}  # fmt: skip
STATUSES = {
    "ok", "emulated", "mismatch", "unavailable", "skipped", "error", "crashed", "timeout", "impossible",
}  # fmt: skip


def assert_fields(found: Any, expected: dict[str, Any]) -> None:
    """Every expected field is there with its type; there may be others."""
    for name, types in expected.items():
        assert name in found
        assert isinstance(found[name], types), f"{name} is {found[name]!r}"
        assert types is bool or not isinstance(found[name], bool), f"{name} is {found[name]!r}"


class TestRanks:
    """What they tell one another, in results and in what is made of them."""

    SAID = "communication takes 5.0% of the kernel: a rank sends 4,000,000 bytes"
    TOLD = Communication(1e-4, [3_000_000, 4_000_000], 3_200_000.0, [1e-4, 5e-5], [1e-3, 2e-3])

    def report(self, told: Communication | None = TOLD, **of: Any) -> Report:
        kernel = Duration(2e-3, None, None, 2e-3, 3)
        row = Row("vecadd", "mpi", "2x1", "tuned", "float32", {"n": 9}, "ok", note="by avx")
        row = replace(row, seconds=Seconds(kernel=kernel), communication=told)
        return Report("2026-11-21T00:00:00+00:00", "0.1.0", {"cpu": "Made-up"}, {}, [replace(with_work(row), **of)])

    def test_are_read_as_they_were_written(self, tmp_path: Path) -> None:
        (tmp_path / "a.json").write_text(self.report(stands_for=["4x1"]).to_json(), encoding="utf-8")
        assert Report.read(tmp_path / "a.json") == self.report(stands_for=["4x1"])

    def test_are_read_from_files_that_tell_less(self, tmp_path: Path) -> None:
        content = json.loads(self.report().to_json())
        (row,) = content["rows"]
        del row["stands_for"], row["communication"]["seconds_by_rank"], row["communication"]["kernel_by_rank"]
        (tmp_path / "a.json").write_text(json.dumps(content), encoding="utf-8")
        assert Report.read(tmp_path / "a.json") == self.report(
            replace(self.TOLD, seconds_by_rank=[], kernel_by_rank=[])
        )

    @pytest.mark.parametrize(
        ("told", "note"),
        [
            (TOLD, f"; {SAID}, 1.25 times what some rank must"),
            (replace(TOLD, least_bytes=None), f"; {SAID}"),
            (Communication(0.0, [0, 0], 0.0), "; its ranks send nothing"),
            (None, ""),
        ],
    )
    def test_are_noted_below_the_table(self, told: Communication | None, note: str) -> None:
        (remark,) = remarks.notes(self.report(told))
        assert (remark.subject, remark.text) == ("mpi 2x1", f"by avx{note}")

    @pytest.mark.parametrize(
        ("sent", "least", "over"),
        [([3, 4], 3.2, 1.25), ([0, 0], 3.2, None), ([3, 4], 0.0, None), ([3, 4], None, None), ([], 1.0, None)],
    )
    def test_send_so_much_more_than_they_have_to(
        self, sent: list[int], least: float | None, over: float | None
    ) -> None:
        assert Communication(0.0, sent, least).over_bound == over

    def test_communicate_for_a_part_of_a_kernel(self) -> None:
        assert self.report().rows[0].communicating == pytest.approx(0.05)
        assert self.report(replace(self.TOLD, seconds=1.0)).rows[0].communicating == 1, "medians of other launches"
        assert self.report(None).rows[0].communicating is None
        assert self.report(seconds=None).rows[0].communicating is None
        nothing = Seconds(kernel=Duration(0.0, None, None, 0.0, 3))
        assert self.report(seconds=nothing).rows[0].communicating == 0


class TestOfARealRun:
    def test_it_is_strict_json_of_one_object(self, comparison: Comparison) -> None:
        def refuse(constant: str) -> NoReturn:
            raise AssertionError(f"{constant} is not JSON")

        result = json.loads(comparison.json.read_text(encoding="utf-8"), parse_constant=refuse)
        assert_fields(result, WHOLE)
        assert result["schema_version"] == 2

    def test_it_says_when_where_and_how_it_was_taken(self, comparison: Comparison) -> None:
        result = comparison.result
        created = datetime.datetime.fromisoformat(result["created"])
        assert created.utcoffset() == datetime.timedelta(0)
        assert_fields(result["machine"], MACHINE)
        assert all(isinstance(name, str) for name in result["machine"]["isa"])
        assert result["machine"]["logical_cpus"] == len(os.sched_getaffinity(0))
        assert result["machine"]["packages"]["numpy"]
        assert_fields(result["settings"], SETTINGS)
        assert (result["settings"]["seed"], result["settings"]["budget_seconds"]) == (3, 4)
        assert result["settings"]["threads"] == result["machine"]["logical_cpus"]
        assert result["settings"]["command"].startswith("py-backends compare --backend cublas,numba_cuda,")

    def test_every_row_has_every_field(self, comparison: Comparison) -> None:
        for row in comparison.rows:
            assert_fields(row, ROW)
            assert list(row["shape"]) == {"vecadd": ["n"], "matmul": ["m", "n", "k"]}[row["kernel"]]
            assert row["status"] in STATUSES
            assert row["dtype"] in DTYPES
            if row["check"]:
                assert_fields(row["check"], CHECK)
            if row["rate"]:
                assert_fields(row["rate"], RATE)
            if row["seconds"]:
                assert_fields(row["seconds"], SECONDS)
            for name in ("kernel", "end_to_end"):
                if row["seconds"] and row["seconds"][name]:
                    assert_fields(row["seconds"][name], INTERVAL)

    def test_every_kind_of_row_is_among_them(self, comparison: Comparison) -> None:
        """Else the tests below would show nothing of it."""
        statuses = Counter(row["status"] for row in comparison.rows)
        assert statuses["ok"] >= 6, "numpy and python alone make 6: matmul in two dtypes, vecadd in one"
        assert statuses["skipped"] >= 4

    def test_each_combination_is_one_row(self, comparison: Comparison) -> None:
        names = ("kernel", "backend", "target", "variant", "dtype")
        rows = Counter((*(row[name] for name in names), tuple(row["shape"].values())) for row in comparison.rows)
        assert set(rows.values()) == {1}

    def test_a_reason_stands_wherever_the_status_is_not_ok(self, comparison: Comparison) -> None:
        for row in comparison.rows:
            assert bool(row["reason"]) == (row["status"] != "ok"), row

    def test_rows_that_ran_were_checked(self, comparison: Comparison) -> None:
        rules = {"vecadd": "bitwise", "matmul": "componentwise"}
        for row in comparison.rows:
            if row["status"] in {"ok", "emulated"}:
                assert row["check"]["passed"]
                assert row["check"]["rule"] == rules[row["kernel"]]
                most = 0 if row["kernel"] == "vecadd" else 1
                assert 0 <= row["check"]["error_over_bound"] <= most
            else:
                assert row["check"] is None

    def test_rows_that_are_right_have_all_phases(self, comparison: Comparison) -> None:
        for row in comparison.rows:
            if row["status"] != "ok":
                continue
            seconds = row["seconds"]
            assert all(seconds[phase] >= 0 for phase in ("prepare", "upload", "download"))
            for duration in (seconds["kernel"], seconds["end_to_end"]):
                assert 0 < duration["minimum"] <= duration["median"]
                assert 1 <= duration["samples"] <= 30
                few = duration["samples"] < 6
                assert (duration["low"] is None, duration["high"] is None) == (few, few)
                assert few or duration["minimum"] <= duration["low"] <= duration["median"] <= duration["high"]

    def test_what_did_not_run_or_has_no_device_was_not_timed(self, comparison: Comparison) -> None:
        for row in comparison.rows:
            if row["status"] != "ok":
                assert row["rate"] is None
                assert row["seconds"] is None or (row["seconds"]["kernel"], row["seconds"]["end_to_end"]) == (
                    None,
                    None,
                )

    def test_rates_follow_from_the_median(self, comparison: Comparison) -> None:
        for row in comparison.rows:
            if row["status"] == "ok":
                problem, sizes = registry.problem(row["kernel"]), list(row["shape"].values())
                flops = 2 * sizes[0] * sizes[1] * sizes[2] if row["kernel"] == "matmul" else sizes[0]
                seconds = row["seconds"]["kernel"]["median"]
                assert row["rate"]["gflops"] == pytest.approx(flops / seconds / 1e9)
                *inputs, output = map(math.prod, problem.shapes(sizes))
                wide = {"float16": 4, "bfloat16": 4, "int8": 4} if row["kernel"] == "matmul" else {}
                width = {"float32": 4, "float64": 8, "float16": 2, "bfloat16": 2, "int8": 1}[row["dtype"]]
                moved = width * sum(inputs) + wide.get(row["dtype"], width) * output
                assert row["rate"]["gbytes_per_second"] == pytest.approx(moved / seconds / 1e9)


class TestTable:
    """What the command prints, in a pipe."""

    def test_in_a_pipe_there_is_no_progress_and_no_colour(self, comparison: Comparison) -> None:
        run = comparison.run
        assert run.stderr == ""
        assert "\x1b[" not in run.stdout
        assert "\r" not in run.stdout
        assert not [line for line in run.stdout.splitlines() if line != line.rstrip() or len(line) > 120]

    def test_the_table_has_every_row_and_a_verdict(self, comparison: Comparison) -> None:
        printed = [line.split() for line in comparison.run.stdout.splitlines()]
        for row in comparison.rows:
            names = [row["backend"], row["target"]] + ([row["variant"]] if row["status"] in {"ok", "emulated"} else [])
            assert [line for line in printed if line[: len(names)] == names], names
        ran = sum(row["status"] in {"ok", "emulated"} for row in comparison.rows)
        assert comparison.run.stdout.splitlines()[-1].startswith(f"{ran} rows ran")


class TestViews:
    def test_csv_holds_every_row_and_figure(self, comparison: Comparison) -> None:
        with comparison.csv.open(newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
        assert len(lines) == len(comparison.rows)
        for line, row in zip(lines, comparison.rows, strict=True):
            figures = dict(leaves(row))
            for shape in "shape", "requested":
                assert line.pop(shape) == "x".join(str(size) for size in (row[shape] or {}).values())
            for column, text in line.items():
                value = figures.pop(column, None)
                assert text == ("" if value is None else str(value)), column
            shapes = {f"{shape}.{name}" for shape in ("shape", "requested") for name in row["shape"]}
            left = {column for column, value in figures.items() if value is not None}
            in_json_alone = {"kernel_seconds", "end_to_end_seconds", "stands_for"}
            in_json_alone |= {column for column in left if column.startswith("communication.")}
            assert left <= shapes | in_json_alone | {"seconds.end_to_end.minimum", "seconds.end_to_end.samples"}

    def test_markdown_holds_every_row(self, comparison: Comparison) -> None:
        text = comparison.markdown.read_text(encoding="utf-8")
        tables, _, not_run = text.partition("## Not run")
        assert not_run
        lines = tables.splitlines()
        timed = [tuple(line.split(" | ")[:3]) for line in lines if line.startswith("| ") and "---" not in line]
        timed = [(first.removeprefix("| "), *others) for first, *others in timed if first != "| backend"]
        others = Counter(line.removeprefix("- ").partition(":")[0] for line in lines if line.startswith("- "))
        rows = comparison.rows
        assert Counter(timed) == Counter(named(row) for row in rows if row["status"] == "ok")
        assert others == Counter(" ".join(named(row)) for row in rows if row["status"] == "emulated")
        for row in rows:
            if row["status"] in {"skipped", "unavailable"}:
                assert f"- {row['backend']} {row['target']}" in not_run
                assert row["reason"] in not_run

    def test_what_would_break_a_table_does_not(self) -> None:
        reason = 'a, "b"\nc | d * e'
        wrong = Row("vecadd", "numpy", "cpu", "lecture", "float32", {"n": 1}, "error", reason=reason)
        report = Report("now", "0", {}, {}, [wrong])
        (line,) = csv.DictReader(csv_text(report).splitlines(keepends=True))
        assert line["reason"] == reason
        (shown,) = [line for line in markdown_text(report).splitlines() if line.startswith("- numpy")]
        assert shown.endswith(r'error: a, "b" c \| d \* e')

    @pytest.mark.parametrize(("clock", "said"), [(1.2, False), (9.0, True)])
    def test_a_launch_that_takes_longer_than_its_kernel_is_told(self, clock: float, said: bool) -> None:
        kernel, by_clock = (Duration(1e-6 * median, None, None, 1e-6, 3) for median in (1.0, clock))
        report = report_of("ok", seconds=Seconds(kernel=kernel, clock=by_clock), rate=Rate(1.0, 1.0))
        words = "timed by the device's events; by the host's clock, with launch and wait: numpy cpu 9.00 µs"
        assert (words in markdown_text(report)) is said


def named(row: Any) -> tuple[str, str, str]:
    return row["backend"], row["target"], row["variant"]


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every figure with the way to it: `seconds.kernel.median`."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from leaves(part, f"{path}.{name}" if path else name)
    else:
        yield path, value


def report_of(*statuses: str, interrupted: bool = False, **others: Any) -> Report:
    """A report with a row of each status, which all have these other fields."""
    rows = [Row("vecadd", "numpy", "cpu", "lecture", "float32", {"n": 1}, status, **others) for status in statuses]
    return Report("now", "0", {}, {}, rows, interrupted=interrupted)


class TestExitCode:
    @pytest.mark.parametrize(
        ("statuses", "code"),
        [
            (["ok"], 0),
            (["emulated"], 0),
            (["ok", "skipped", "unavailable", "emulated"], 0),
            (["skipped", "unavailable"], 1),
            ([], 1),
            *((["ok", bad], 1) for bad in ("mismatch", "error", "crashed", "timeout", "impossible")),
        ],
    )
    def test_follows_from_the_rows(self, statuses: list[str], code: int) -> None:
        assert report_of(*statuses).exit_code() == code
        assert report_of(*reversed(statuses)).exit_code() == code

    def test_of_a_race_that_did_not_reach_a_function_is_that_of_what_was_not_judged(self) -> None:
        for statuses, code in ((["ok", "ok"], 0), (["ok", "skipped"], 2), (["mismatch", "skipped"], 1)):
            report = report_of(*statuses)
            report.settings[FUNCTIONS] = {}
            assert report.exit_code() == code

    @pytest.mark.parametrize("statuses", [["ok"], ["mismatch"], []])
    def test_of_an_interruption_comes_first(self, statuses: list[str]) -> None:
        assert report_of(*statuses, interrupted=True).exit_code() == 130


def test_by_kernel_each_row_comes_with_its_kernel() -> None:
    rows = [Row(kernel, "numpy", "cpu", "lecture", "float32", {"n": n}, "ok") for n in (1, 2) for kernel in "ba"]
    report = report_of()
    report.rows = rows
    assert list(report.by_kernel()) == [("b", [rows[0], rows[2]]), ("a", [rows[1], rows[3]])]


class TestJsonOfObjects:
    def test_what_is_not_there_is_null(self) -> None:
        (row,) = json.loads(report_of("skipped").to_json())["rows"]
        assert (row["check"], row["seconds"], row["rate"], row["note"]) == (None, None, None, None)

    def test_few_samples_have_no_bounds(self) -> None:
        report = report_of("ok", seconds=Seconds(kernel=Duration(2.0, None, None, 1.0, 5)))
        (row,) = json.loads(report.to_json())["rows"]
        kernel = {"median": 2.0, "low": None, "high": None, "minimum": 1.0, "samples": 5}
        assert row["seconds"] == {
            "prepare": None,
            "upload": None,
            "download": None,
            "kernel": kernel,
            "end_to_end": None,
            "first_launch": None,
            "clock": None,
            "release": None,
        }

    @pytest.mark.parametrize("figure", [float("nan"), float("inf"), -float("inf")])
    def test_what_json_has_no_word_for_is_refused(self, figure: float) -> None:
        checked = report_of("ok", check=Check(False, "componentwise", figure))
        rated = report_of("ok", rate=Rate(figure, 1.0))
        for report in (checked, rated):
            with pytest.raises(ValueError, match="not JSON compliant"):
                report.to_json()


class TestWriteWhole:
    def test_replaces_what_was_there(self, tmp_path: Path) -> None:
        path = tmp_path / "results.json"
        path.write_text("old and longer")
        write_whole(path, "new")
        assert path.read_text() == "new"
        assert list(tmp_path.iterdir()) == [path]

    def test_makes_files_that_others_may_read(self, tmp_path: Path) -> None:
        before = os.umask(0o022)
        try:
            write_whole(tmp_path / "results.json", "new")
            assert os.umask(0o022) == 0o022, "the mask is as it was"
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / "results.json").stat().st_mode) == 0o644

    def test_leaves_the_old_file_where_the_text_cannot_be_written(self, tmp_path: Path) -> None:
        path = tmp_path / "results.json"
        path.write_text("old")
        with pytest.raises(UnicodeEncodeError):
            write_whole(path, "begins well" * 10_000 + "\ud800")
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path], "no temporary file stays behind"

    def test_leaves_the_old_file_where_the_disk_fails(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: Any) -> NoReturn:
            raise OSError(28, "No space left on device")

        path = tmp_path / "results.json"
        path.write_text("old")
        monkeypatch.setattr(os, "replace", fail)
        with pytest.raises(OSError, match="No space left"):
            write_whole(path, "new")
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]

    @pytest.mark.parametrize("number", [errno.EBUSY, errno.EACCES, errno.EROFS])
    def test_writes_in_place_what_cannot_be_replaced(
        self, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A file that is mounted, as into a container, or that lies in a folder of others."""

        def fail(*_: Any, **__: Any) -> NoReturn:
            raise OSError(number, os.strerror(number))

        path = tmp_path / "results.json"
        path.write_text("old and longer")
        monkeypatch.setattr(os, "replace", fail)
        monkeypatch.setattr(tempfile, "NamedTemporaryFile", fail)
        check_writable(path)
        write_whole(path, "new")
        assert path.read_text() == "new"
        assert list(tmp_path.iterdir()) == [path]
        with pytest.raises(WrongRequest, match="cannot be written to"):
            check_writable(tmp_path / "other.json")

    def test_a_link_stays_and_what_it_points_to_is_written(self, tmp_path: Path) -> None:
        target, link = tmp_path / "target.json", tmp_path / "link.json"
        target.write_text("old")
        link.symlink_to(target)
        write_whole(link, "new")
        assert link.is_symlink()
        assert target.read_text() == "new"

    def test_what_is_no_regular_file_is_written_to_and_stays(self) -> None:
        write_whole(Path("/dev/null"), "new")
        assert Path("/dev/null").is_char_device()

    def test_a_missing_folder_is_an_error_of_the_system(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            write_whole(tmp_path / "missing" / "results.json", "new")
