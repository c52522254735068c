"""`py-backends race FILE`: the functions that a file defines, on what its `inputs` makes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from commands import CLONE, run_here
from conftest import after_a_change
from written_files import made

pytestmark = pytest.mark.stamped

SCAN = """
import numpy as np
from numpy import sort

def inputs(size=1000):
    return np.random.default_rng(1).standard_normal(size)

def cumsum(x):
    return np.cumsum(x)

class Scan:
    pass

def _helper(x):
    return x

def accumulate(x):
    return np.add.accumulate(_helper(x))
"""


@after_a_change("py_backends/racing", "py_backends/commands/race")
def test_it_prints_a_table_and_writes_results(tmp_path: Path) -> None:
    """Of two races, `diff` tells the functions by their names. No race is resumed. It has the name of its file."""
    file, old, new = made(tmp_path, {"sums.py": SCAN}) / "sums.py", tmp_path / "old.json", tmp_path / "new.json"
    run = run_here("race", file, "--budget", "2", "--json", old, "--csv", tmp_path / "r.csv")
    assert (run.returncode, run.stderr) == (0, "")
    assert "vs cumsum()" in run.stdout
    report = json.loads(old.read_text())
    assert [(row["kernel"], row["backend"], row["shape"]) for row in report["rows"]] == [
        ("sums", "cumsum()", {"size": 1000}),
        ("sums", "accumulate()", {"size": 1000}),
    ]
    assert run_here("race", file, "--budget", "2", "--json", new).returncode == 0
    difference = run_here("diff", old, new)
    assert (difference.returncode, difference.stderr) == (0, "")
    assert "accumulate()" in difference.stdout
    old.write_text(json.dumps(report | {"interrupted": True}))
    resumed = run_here("compare", "--resume", old)
    assert resumed.returncode == 2
    assert "was a race" in resumed.stderr


@pytest.mark.parametrize("command", ["race", "judge"])
def test_the_help_says_what_comes_on_top_of_a_budget(command: str) -> None:
    said = " ".join(run_here(command, "--help").stdout.split())
    assert "the fewest rounds and the last check come on top" in said


@after_a_change("py_backends/racing", "py_backends/commands/race")
def test_its_reference_judges_all(tmp_path: Path) -> None:
    """A reference that fails ends the race. Of a wrong function the exit code is that of a comparison."""
    file = made(tmp_path, {"scan.py": SCAN + "\ndef reference(x):\n    return np.cumsum(x) + 1\n"}) / "scan.py"
    run = run_here("race", file, "--size", "10", "--budget", "0.5")
    assert (run.returncode, run.stdout.count("mismatch: 10 of 10")) == (1, 2)
    assert re.search("^race ", run.stdout, re.MULTILINE), "its file has the name of a kernel"


@after_a_change("py_backends/racing", "py_backends/reference.py")
def test_a_bound_that_is_wider_than_the_values_calls_nothing_right(tmp_path: Path) -> None:
    """Zero is within the bound of such a sum. A tolerance takes its place, and one of two functions is wrong."""
    text = """
import numpy as np

def inputs(size=100_000):
    return np.random.default_rng(3).standard_normal(size).astype(np.float32)

def total(x):
    return x.sum()

def nothing(x):
    return np.float32(0)
"""
    file = made(tmp_path, {"sums.py": text}) / "sums.py"
    run = run_here("race", file, "--budget", "0.5", "--json", tmp_path / "r.json")
    assert (run.returncode, run.stderr) == (2, "")
    assert "all are right" not in run.stdout
    assert "--tolerance X, in Python tolerance=X" in " ".join(run.stdout.split())
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["settings"]["bound_width"] > 1
    assert all("nobody knows whether it is right" in row["note"] for row in report["rows"])
    assert [row["status"] for row in report["rows"]] == ["ok", "ok"]
    run = run_here("race", file, "--budget", "0.5", "--tolerance", "1e-3")
    assert (run.returncode, run.stdout.count("mismatch: ")) == (1, 1)


FAULTS = {
    "no such file": (None, (), "is no file of Python"),
    "no function": (
        SCAN.replace("def cumsum", "def _c").replace("def accumulate", "def _a"),
        (),
        "no function to race",
    ),
    "no inputs": (SCAN.replace("def inputs", "def outputs"), (), "has no function inputs"),
    "no size": (SCAN.replace("size=1000", "size"), (), "give --size N"),
    "a size that nothing takes": (SCAN.replace("size=1000", "").replace("(size)", "(5)"), ("--size", "4"), "leave out"),
    "it raises": (SCAN + "\nraise OSError('no disk')\n", (), "cannot be run: OSError: no disk"),
    "it exits": (SCAN + "\nraise SystemExit(4)\n", (), "exited with code 4"),
    "no Python": ("def (", (), "cannot be run: SyntaxError"),
    "a reference that dies": (SCAN + "\ndef reference(x):\n    raise SystemExit(5)\n", (), "exited with code 5"),
    "no tolerance": (SCAN, ("--tolerance", "2"), "takes a number from 0"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_file_that_cannot_be_raced_is_one_line(fault: str, tmp_path: Path) -> None:
    text, options, words = FAULTS[fault]
    made(tmp_path, {} if text is None else {"scan.py": text})
    run = run_here("race", tmp_path / "scan.py", *options, "--budget", "1")
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (2, "", 1)
    assert words in run.stderr


def test_the_example_of_the_page_agrees() -> None:
    run = run_here("race", CLONE / "examples" / "own_code" / "scan.py", "--size", "10000", "--budget", "2")
    assert (run.returncode, run.stderr) == (0, "")
    assert "2 rows ran, and all are right" in run.stdout
