"""The tool that holds large changes: what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import CLONE, run_python
from net.__main__ import differences, of_a_report

from py_backends.results.report import Report

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("option", "code"), [("--help", 0), ("--hlep", 2)])
def test_an_option_is_no_folder(option: str, code: int) -> None:
    run = run_python("-m", "tests.net", option)
    assert run.returncode == code
    assert run.stdout.startswith("usage: ") == (code == 0)
    assert not Path(option).exists()


@pytest.mark.parametrize("name", ["scaling", "predict"])
def test_all_that_can_be_shown_of_a_report_is_written(name: str) -> None:
    """Each view of each report: one that lacks what a view shows does not end all others."""
    report = Report.read(CLONE / "docs" / "results" / f"{name}.json")
    written = dict([*of_a_report(name, report), *differences(name, report)])
    assert all(isinstance(content, str) for content in written.values())
    assert f"views/{name}-of-{name}-200.txt" in written
    assert f"views/judge-of-{name}-200.txt" in written
    assert any(each.startswith(f"diff/{name}-spoilt") for each in written)
