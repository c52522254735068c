"""Every backend, and every file, has its turn in .ci/run."""

from __future__ import annotations

import subprocess
import sys

import pytest
from commands import CLONE
from in_turn import FILES, TURNS, in_turn, marker

from py_backends import registry


@pytest.mark.parametrize("number", [1, 7, 8, 9, 18, 31])
@pytest.mark.parametrize("first", [0, 1, 5, 1234])
def test_eight_runs_in_a_row_have_all_backends_and_each_run_has_some(number: int, first: int) -> None:
    names = [f"backend_{place}" for place in range(number)]
    runs = [in_turn(names, first + run) for run in range(TURNS)]
    assert TURNS == 8
    assert {name for run in runs for name in run} == set(names)
    assert all(1 <= len(run) <= -(-number // TURNS) for run in runs)


def test_ci_asks_for_those_of_this_commit_and_for_what_needs_no_backend() -> None:
    """It had no slow test of any backend, so that a wrong one of stdpar stayed unseen."""
    script = (CLONE / ".ci/run").read_text(encoding="utf-8")
    assert 'in_turn.py "$(git rev-list --count --first-parent HEAD)"' in script
    command = [sys.executable, CLONE / "tests/in_turn.py", "17"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=CLONE).stdout
    names = registry.backend_names()
    chosen, others = printed.removeprefix("slow and (").split(f" or {FILES[1]} and not (")
    assert chosen.split(" or ") == names[1::8]
    assert others == f"{' or '.join(names)}))\n"


def test_eight_runs_in_a_row_have_all_files(request: pytest.FixtureRequest) -> None:
    marked = {mark.name for mark in request.node.iter_markers()} & set(FILES)
    assert marked == {marker("tests/packaging/test_in_turn.py")}
    files = [path.relative_to(CLONE).as_posix() for path in (CLONE / "tests").rglob("test_*.py")]
    assert {marker(file) for file in files} == set(FILES)
