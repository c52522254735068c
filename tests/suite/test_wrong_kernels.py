"""Wrong kernels and dying workers are caught by the whole harness, through the command line.

A scratch clone gets backends that are wrong on purpose: two files each, and nothing else to edit, which
is the promise of docs/develop/backend.md to those who add one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import copy_clone
from conftest import found
from faults import scratch
from faults.seen import FAILURES, MISMATCHES, OF_COMPARE
from faults.table import planted_by

from py_backends.number_formats import DTYPES
from py_backends.registry import kernel_texts

pytestmark = [
    pytest.mark.slow,
    pytest.mark.stamped("py_backends/harness", "py_backends/results", "py_backends/workers"),
]

NARROW, SWAPPED = "sums_in_the_inputs_format", "swaps_its_operands"

UNAVAILABLE = {name for name, _ in found()} - {name for name, target in found() if target.available}

WITH_PATIENCE = """
import sys
import py_backends.workers.process as workers
from py_backends.__main__ import main
workers.ANSWER_WITHIN = float(sys.argv.pop(1))
sys.exit(main())
"""


@pytest.fixture(scope="module")
def scratch_clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the clone with a backend for every fault."""
    clone = copy_clone(tmp_path_factory.mktemp("clone"))
    scratch.backends(clone, [*MISMATCHES, *FAILURES, *OF_COMPARE], ["vecadd", "matmul"])
    return clone


def compare(clone: Path, *backends: str, kernel: str = "vecadd", shape: str = "vecadd=509") -> tuple[int, list[Any]]:
    """Run `compare` of the baseline and these backends in the clone; its exit code and rows."""
    names = ",".join(("numpy", *backends))
    return run_compare(clone, "--kernel", kernel, "--shape", shape, "--backend", names, patience=3)


def run_compare(clone: Path, *options: str, patience: float = 120) -> tuple[int, list[Any]]:
    results = clone / "results.json"
    run = subprocess.run(
        [
            sys.executable,
            "-c",
            WITH_PATIENCE,
            str(patience),
            "compare",
            "--budget",
            "4",
            *options,
            "--json",
            str(results),
        ],
        cwd=clone,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert results.exists(), run.stderr
    rows = json.loads(results.read_text())["rows"]
    results.unlink()
    return run.returncode, rows


def rows_by_backend(rows: list[Any]) -> dict[str, Any]:
    """The rows by backend, once the baseline's is seen to stand as if nothing had happened."""
    by_backend = {row["backend"]: row for row in rows}
    assert by_backend["numpy"]["status"] == "ok"
    assert by_backend["numpy"]["seconds"]["kernel"]["samples"] >= 1
    return by_backend


@pytest.fixture(scope="module")
def wrong_rows(scratch_clone: Path) -> dict[str, Any]:
    code, rows = compare(scratch_clone, *MISMATCHES)
    assert code == 1
    return rows_by_backend(rows)


@pytest.mark.parametrize("fault", MISMATCHES)
def test_a_wrong_kernel_is_a_mismatch(wrong_rows: dict[str, Any], fault: str) -> None:
    row = wrong_rows[fault]
    assert (row["status"], row["check"]["passed"]) == ("mismatch", False)
    n = row["shape"]["n"]
    words = MISMATCHES[fault].format(n=n, last=n - 1, begin=n // 16 * 16, tail=n % 16)
    assert words in row["reason"]
    assert row["seconds"] is None or row["seconds"]["kernel"] is None, "a wrong result has no speed"


def test_swapped_operands_and_sums_in_a_narrow_format_are_mismatches(scratch_clone: Path) -> None:
    options = "--kernel", "matmul", "--shape", "matmul=65", "--dtype", "all", "--backend", f"numpy,{NARROW},{SWAPPED}"
    code, rows = run_compare(scratch_clone, *options)
    found = {(row["backend"], row["dtype"]): row["status"] for row in rows}
    assert code == 1
    for dtype in DTYPES:
        assert found.pop(("numpy", dtype)) == "ok"
        assert found.pop((NARROW, dtype)) == ("ok" if dtype in {"float32", "float64"} else "mismatch")
        assert found.pop((SWAPPED, dtype)) == "mismatch"
    assert not found


@pytest.fixture(scope="module")
def dead_rows(scratch_clone: Path) -> dict[str, Any]:
    code, rows = compare(scratch_clone, *FAILURES)
    assert code == 1
    return rows_by_backend(rows)


@pytest.mark.parametrize("fault", FAILURES)
def test_a_worker_that_ends_is_a_row_that_says_how(dead_rows: dict[str, Any], fault: str) -> None:
    status, words = FAILURES[fault]
    row = dead_rows[fault]
    assert row["status"] == status
    assert words in row["reason"]
    assert row["check"] is None or status == "impossible"


def test_a_figure_above_the_roofline_is_impossible(scratch_clone: Path) -> None:
    """Its result is right, and no work is left to the download: only the ceiling tells."""
    options = "--kernel", "vecadd", "--shape", "vecadd=1000003", "--backend", "numpy,computes_only_once"
    for budget in "4", "40":  # on a busy machine the first may have too few rounds to be certain
        code, rows = run_compare(scratch_clone, *options, "--budget", budget)
        row, numpy = (rows_by_backend(rows)[name] for name in ("computes_only_once", "numpy"))
        if row["status"] == "impossible":
            break
    assert (code, row["status"]) == (1, "impossible"), json.dumps(row)
    assert "its kernel" in row["reason"]
    assert row["check"]["passed"]
    assert row["percent_of_ceiling"] > 200
    assert numpy["status"] == "ok", "whatever a busy machine makes of its share of the ceiling"


def test_a_broken_device_breaks_no_other_row(scratch_clone: Path) -> None:
    code, rows = run_compare(scratch_clone, "--backend", "breaks_its_device", "--shape", "matmul=9")
    assert code == 1
    assert [(row["kernel"], row["status"]) for row in rows] == [("matmul", "error"), ("vecadd", "ok")]
    assert rows[0]["reason"] == "RuntimeError: an illegal address / was reached"


@pytest.mark.nightly
def test_one_changed_operator_is_seen_and_changes_no_other_row(tmp_path: Path) -> None:
    copy_clone(tmp_path)
    changes = planted_by("wrong_kernels")
    for change in changes:
        change.plant(tmp_path)
    code, rows = run_compare(
        tmp_path, "--variant", "lecture", "--shape", "matmul=37x41x43", "--shape", "vecadd=521", "--budget", "20"
    )
    changed = {(change.text.kernel, change.text.backend) for change in changes}
    ran = [row for row in rows if row["status"] != "unavailable" and kernel_texts(row["kernel"], row["backend"])]
    assert code == 1
    for row in ran:
        wrong = (row["kernel"], row["backend"]) in changed
        expected = {"mismatch", "crashed"} if wrong else {"ok"}
        assert row["status"] in expected, row
    assert {backend for _, backend in changed} - {row["backend"] for row in ran} <= UNAVAILABLE
