"""Standard output that is full, closed or has lost its reader: one line at most, no traceback, and results are kept."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands import CLONE, LONGEST, Finished, environment

from py_backends.results.report import Report, Row

pytestmark = pytest.mark.slow

FULL, CLOSED = ">/dev/full", ">&-"
QUICK = ("--kernel", "vecadd", "--shape", "vecadd=509", "--backend", "numpy", "--budget", "1")
BUFFERED, UNBUFFERED = "", "1"


def run_into(where: str, *arguments: str | Path, unbuffered: str = BUFFERED) -> Finished:
    """Run the command line with its streams redirected as a shell writes it.

    Python meets a full device at a write where it does not buffer, and else when it ends.
    """
    command = [sys.executable, "-m", "py_backends", *map(str, arguments)]
    return subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {where}', "sh", *command],
        cwd=CLONE,
        env=environment(PYTHONUNBUFFERED=unbuffered),
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )


def assert_not_written(run: Finished, why: str) -> None:
    """One line tells that standard output, and not a file, has not taken all."""
    (line,) = run.stderr.splitlines()
    assert (run.returncode, "standard output" in line) == (1, True)
    assert line.endswith(why)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    path = tmp_path / "results.json"
    row = Row("vecadd", "numpy", "cpu", "lecture", "float32", {"n": 1}, "ok")
    path.write_text(Report("now", "0", {}, {}, [row]).to_json())
    return path


def arguments_of(command: str, results: Path) -> list[str | Path]:
    return {
        "show": ["show", "vecadd", "--backend", "numpy"],
        "doctor": ["doctor"],
        "diff": ["diff", results, results],
        "report": ["report", results, "-o", "-"],
        "compare": ["compare", *QUICK],
        "timeline": ["timeline", *QUICK],
        "help": ["compare", "--help"],
    }[command]


@pytest.mark.parametrize("unbuffered", [BUFFERED, UNBUFFERED], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("command", ["show", "diff", "report", "doctor"])
def test_a_full_device_is_one_line(command: str, unbuffered: str, results: Path) -> None:
    run = run_into(FULL, *arguments_of(command, results), unbuffered=unbuffered)
    assert_not_written(run, os.strerror(errno.ENOSPC))


def test_a_full_device_is_seen_when_help_is_printed(results: Path) -> None:
    run = run_into(FULL, *arguments_of("help", results))
    assert_not_written(run, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("command", ["compare", "timeline"])
def test_results_are_kept_though_the_table_is_lost(command: str, results: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    run = run_into(FULL, *arguments_of(command, results), "--json", kept)
    assert_not_written(run, os.strerror(errno.ENOSPC))
    assert [row["status"] for row in json.loads(kept.read_text())["rows"]] == ["ok"]


@pytest.mark.parametrize("command", ["show", "diff", "doctor", "help"])
def test_closed_output_is_as_the_null_device(command: str, results: Path) -> None:
    run = run_into(CLOSED, *arguments_of(command, results))
    assert run.returncode == 0
    assert "Traceback" not in run.stderr
    assert run.stderr == "" or command == "help"  # which argparse shows there instead


def test_a_page_that_nobody_gets_is_a_failure(results: Path) -> None:
    run = run_into(CLOSED, *arguments_of("report", results))
    assert_not_written(run, "closed")


@pytest.mark.parametrize("closed", [CLOSED, "<&- >&- 2>&-"], ids=["output", "all three"])
def test_results_are_written_where_streams_are_closed(closed: str, results: Path, tmp_path: Path) -> None:
    """No file and no worker's channel gets the number of a closed stream, and what libraries print."""
    kept = tmp_path / "kept.json"
    run = run_into(closed, *arguments_of("compare", results), "--json", kept)
    assert (run.returncode, run.stderr) == (0, "")
    assert [row["status"] for row in json.loads(kept.read_text())["rows"]] == ["ok"]


def test_a_reader_that_has_seen_enough_is_told_nothing() -> None:
    """As `show matmul | head` has it."""
    ours, theirs = os.pipe()
    os.close(ours)
    command = [sys.executable, "-m", "py_backends", "show", "vecadd"]
    run = subprocess.run(
        command, cwd=CLONE, env=environment(), stdout=theirs, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(theirs)
    assert (run.returncode, run.stderr) == (1, "")
