"""The tool that holds large changes: what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import run_python

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("option", "code"), [("--help", 0), ("--hlep", 2)])
def test_an_option_is_no_folder(option: str, code: int) -> None:
    run = run_python("-m", "tests.net", option)
    assert run.returncode == code
    assert run.stdout.startswith("usage: ") == (code == 0)
    assert not Path(option).exists()
