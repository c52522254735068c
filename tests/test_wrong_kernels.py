"""Wrong kernels and dying workers are caught by the whole harness, through the command line.

A scratch clone gets backends that are wrong on purpose: two files each, and nothing else to edit, which
is the promise of CONTRIBUTING.md to those who add a backend.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import CLONE

MISMATCHES = {
    "drops_the_last_element": "1 of 509 elements are wrong, the first at [508]: nan",
    "skips_its_tail": "13 of 509 elements are wrong, the first at [496]: 0",
    "lacks_a_barrier": "elements are wrong",
    "waits_not": "509 of 509 elements are wrong",
    "is_stale_after_the_first_call": "509 of 509 elements are wrong",
    "is_wrong_when_repeated": "1 of 509 elements are wrong",
    "writes_one_too_many": "it wrote past the end of its output",
}
DEATHS = {
    "raises_when_prepared": ("error", "RuntimeError: the compiler says no"),
    "raises": ("error", "ArithmeticError: as expected"),
    "writes_to_its_input": ("crashed", "SIGSEGV"),
    "dies_of_sigkill": ("crashed", "SIGKILL (out of memory?)"),
    "aborts": ("crashed", "SIGABRT during 'sample'; it last wrote: free(): invalid pointer"),
    "exits": ("crashed", "exited with code 3"),
    "hangs": ("timeout", "no answer to 'sample' within 3 s"),
    "gone_when_opened": ("unavailable", "it went away"),
    "dies_when_probed": ("unavailable", "SIGSEGV"),
    "runs_out_of_memory": ("skipped", "the device has 0 bytes"),
}
HARMLESS = ["talks"]

SHORT_PATIENCE = """
import sys
import py_backends.harness.workers as workers
from py_backends.__main__ import main
workers.ANSWER_WITHIN = 3.0
sys.exit(main())
"""


@pytest.fixture(scope="module")
def scratch_clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the clone with a backend for every fault."""
    clone = tmp_path_factory.mktemp("clone")
    for folder in ("py_backends", "kernels"):
        shutil.copytree(CLONE / folder, clone / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(CLONE / "CMakeLists.txt", clone)
    for fault in [*MISMATCHES, *DEATHS, *HARMLESS, "swaps_its_operands"]:
        shutil.copy(CLONE / "tests" / "wrong_backends.py", clone / "py_backends" / f"{fault}.py")
        for kernel in ("vecadd", "matmul"):
            lecture = clone / "kernels" / kernel / "lecture"
            shutil.copy(lecture / "numpy.py", lecture / f"{fault}.py")
    return clone


def compare(clone: Path, *backends: str, kernel: str = "vecadd", shape: str = "vecadd=509") -> tuple[int, list[Any]]:
    """Run `compare` in the clone; its exit code and rows."""
    results = clone / "results.json"
    options = ["--kernel", kernel, "--shape", shape, "--backend", ",".join(("numpy", *backends))]
    run = subprocess.run(
        [sys.executable, "-c", SHORT_PATIENCE, "compare", *options, "--budget", "4", "--json", str(results)],
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
    assert MISMATCHES[fault] in row["reason"]
    assert row["seconds"] is None or row["seconds"]["kernel"] is None, "a wrong result has no speed"


def test_swapped_operands_of_matmul_are_a_mismatch(scratch_clone: Path) -> None:
    code, rows = compare(scratch_clone, "swaps_its_operands", kernel="matmul", shape="matmul=33")
    assert (code, rows_by_backend(rows)["swaps_its_operands"]["status"]) == (1, "mismatch")


@pytest.fixture(scope="module")
def dead_rows(scratch_clone: Path) -> dict[str, Any]:
    code, rows = compare(scratch_clone, *DEATHS)
    assert code == 1
    return rows_by_backend(rows)


@pytest.mark.parametrize("fault", DEATHS)
def test_a_worker_that_ends_is_a_row_that_says_how(dead_rows: dict[str, Any], fault: str) -> None:
    status, words = DEATHS[fault]
    row = dead_rows[fault]
    assert row["status"] == status
    assert words in row["reason"]
    assert row["check"] is None


def test_what_a_driver_prints_does_no_harm(scratch_clone: Path) -> None:
    code, rows = compare(scratch_clone, "talks")
    assert (code, rows_by_backend(rows)["talks"]["status"]) == (0, "ok")
