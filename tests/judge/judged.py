"""Runs the command on a planted file, and reads what it wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from commands import Finished, run_command, run_here
from conftest import after_a_change

OF_JUDGE = after_a_change("py_backends/commands/judge", "py_backends/conformance")
_LONGEST = 600
"""Seconds. A suite of attention, whose programs Triton interprets one after another, takes two minutes."""


class Answer(NamedTuple):
    run: Finished
    judgement: dict[str, Any]
    rows: list[dict[str, Any]]
    settings: dict[str, Any]

    @property
    def code(self) -> int:
        return self.run.returncode

    @property
    def failing(self) -> dict[str, Any]:
        return self.judgement["failing"] or {}


def judge(
    folder: Path,
    name: str,
    text: str,
    *options: str | Path,
    kernel: str | Path = "matmul",
    dtype: str | None = "float32",
) -> Answer:
    """Judge a file of this name and text, timed briefly at a small shape. `dtype`: None for all that it takes."""
    file, results = folder / name, folder / "results.json"
    file.write_text(text)
    quick = *(() if dtype is None else ("--dtype", dtype)), "--budget", "2", "--json", results
    run = run_command("judge", kernel, file, *quick, *options, longest=_LONGEST)
    report = json.loads(results.read_text()) if results.exists() else {"judgement": {}, "rows": [], "settings": {}}
    return Answer(run, report["judgement"], report["rows"], report["settings"])


def refused(*arguments: str | Path) -> str:
    """The one line with which the command refuses."""
    run = run_here("judge", *arguments)
    assert (run.returncode, run.stdout) == (2, ""), run
    assert run.stderr.count("\n") == 1
    return run.stderr
