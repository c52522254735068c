"""Writes what users see of recorded results into a folder."""

from __future__ import annotations

import io
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console

from py_backends import commands, registry
from py_backends.commands._notebook import views
from py_backends.commands._options import Parser
from py_backends.commands.report import page
from py_backends.display import files, style
from py_backends.errors import WrongRequest
from py_backends.harness.sizing import LONGER_BUDGET
from py_backends.results.report import Report, Row

CLONE = Path(__file__).parents[2]
RECORDED = CLONE / "docs" / "results"
COMMANDS = (*commands.names(), "")
PICTURES = {name: part for name in commands.names() if (part := commands.part(name, "picture"))}
WIDTHS = (60, 90, 120, 200)
STATUSES = ("mismatch", "error", "crashed", "timeout", "impossible", "skipped", "unavailable", "emulated")
WRONG = (
    "compare --kernel nosuch", "compare --backend opencll", "compare --target nosuch", "compare --dtype float13",
    "compare --shape matmul=3x4", "compare --budget 0", "compare --cache warm", "compare --resume /nowhere",
    "scaling --threads 1", "sweep --from 9 --to 3", "ladder --shape vecadd=9", "diff /nowhere /nowhere",
    "report /nowhere -o page.html", "show nosuch", "show matmul --variant nosuch",
    "compare --kernel matmull", "compare --kernel vecadd,,matmul", "compare --threads 0",
    "compare --json a --csv a", "show matmul --diff", "hello opnecl", "compar", "doctor opencl",
)  # fmt: skip
"""What ends with one line and exit code 2."""


def main(folder: Path) -> None:
    """Write everything."""
    for name, content in everything():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8", errors="backslashreplace")


def everything() -> Iterator[tuple[str, str]]:
    """Each file's name, and what it holds."""
    for command in COMMANDS:
        yield f"help/{command or 'all'}.txt", run("-m", "py_backends", *command.split(), "--help")
    for at, command in enumerate(WRONG):
        yield f"wrong/{at:02}.txt", f"{command}\n" + run("-m", "py_backends", *command.split())
    for kernel in registry.kernel_names():
        yield f"show/{kernel}.txt", run("-m", "py_backends", "show", kernel, "--variant", "all")
    reports = {path.stem: Report.read(path) for path in sorted(RECORDED.glob("*.json"))}
    for name, report in reports.items():
        for kind, spoilt in (("", report), ("-spoilt", spoil(report))):
            yield from of_a_report(f"{name}{kind}", spoilt)
        yield from differences(name, report)
    yield "pages/all.html", page.page(list(reports.items()))
    yield from names()


def of_a_report(name: str, report: Report) -> Iterator[tuple[str, str]]:
    """All that can be shown of one report."""
    yield f"files/{name}.json", report.to_json()
    yield f"files/{name}.csv", files.csv_text(report)
    yield f"files/{name}.md", files.markdown_text(report)
    yield f"pages/{name}.html", page.page([(name, report)])
    for view in views():
        show = import_module(f"py_backends.commands.{view}.table").print_report
        for width in WIDTHS:
            yield f"views/{view}-of-{name}-{width}.txt", printed(show, report, width)
    for view in PICTURES:
        yield from picture(view, name, report)


def picture(view: str, name: str, report: Report) -> Iterator[tuple[str, str]]:
    """A view's picture and its words, or why there is none."""
    module = PICTURES[view]
    try:
        figure = module.draw(report)
    except style.NothingToDraw as nothing:
        yield f"pictures/{view}-of-{name}.txt", str(nothing)
        return
    yield f"pictures/{view}-of-{name}.svg", style.svg(figure, "net")
    yield f"pictures/{view}-of-{name}.txt", module.describe(report)


def printed(show: Callable[[Any, Console], None], shown: Any, width: int) -> str:
    """What goes to a terminal of that width, colours and all; or what a view of other reports lacks in this one."""
    out = Console(file=io.StringIO(), width=width, force_terminal=True, color_system="truecolor", highlight=False)
    try:
        show(shown, out)
    except (AssertionError, KeyError) as lacking:
        return repr(lacking)
    text: str = out.file.getvalue()  # type: ignore[attr-defined]  # it is the one above
    return text


def differences(name: str, report: Report) -> Iterator[tuple[str, str]]:
    """What `diff` says of a report and itself, and of what became of it."""
    from py_backends.commands.diff.analysis import diff
    from py_backends.commands.diff.table import print_difference

    for kind, other in (("itself", report), ("slowed", slowed(report)), ("spoilt", spoil(report))):
        try:
            found = diff(report, other)
        except WrongRequest as nothing:
            yield f"diff/{name}-{kind}.txt", str(nothing)
            continue
        for width in WIDTHS:
            yield f"diff/{name}-{kind}-{width}.txt", printed(print_difference, found, width)


def slowed(report: Report) -> Report:
    """Some rows slower in every round, some faster, and the rest, the baselines among them, as they were."""
    made, generator = deepcopy(report), random.Random(1)
    made.created = "later"
    made.rows = [_slower(row, generator.choice((0.5, 1.0, 1.0, 1.3))) for row in made.rows]
    return made


def _slower(row: Row, factor: float) -> Row:
    if row.versus is None or row.backend == row.versus.baseline:
        return row
    figures = {name: getattr(row.versus, name) for name in ("speedup", "low", "high")}
    versus = replace(row.versus, **{name: value and value / factor for name, value in figures.items()})
    return replace(row, kernel_seconds=[each and each * factor for each in row.kernel_seconds], versus=versus)


def spoil(report: Report) -> Report:
    """Every status there is, notes, shorter shapes, rows that are gone, and rounds that were disturbed."""
    made, generator = deepcopy(report), random.Random(2)
    made.created, made.interrupted = "later still", True
    made.rows = [_spoilt(row, at, generator.randrange(12)) for at, row in enumerate(made.rows)]
    made.rows = [row for row in made.rows if generator.random() > 0.05]
    if made.rounds:
        made.rounds = replace(made.rounds, kept=made.rounds.taken // 3, disturbed={"steal": 2, "others": 3})
    return made


def _spoilt(row: Row, at: int, kind: int) -> Row:
    if kind < len(STATUSES):
        fix = LONGER_BUDGET if STATUSES[kind] == "skipped" else None
        return replace(row, status=STATUSES[kind], reason=f"reason {at % 3}", fix=fix)
    if kind == len(STATUSES):
        return replace(row, requested=row.shape, shape={name: max(1, size // 2) for name, size in row.shape.items()})
    return replace(row, note=f"note {at % 2}") if kind == len(STATUSES) + 1 else row


def names() -> Iterator[tuple[str, str]]:
    """Of all tests, cases and faults."""
    collect = ("-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider")
    yield "names/tests.txt", lines_of(run(*collect, "tests"))
    for extent in ("--quick", "--thorough"):
        suite = run(*collect, "--pyargs", "py_backends.conformance", extent)
        yield f"names/suite{extent}.txt", lines_of(suite)
    yield "names/goals.txt", run("-m", "benchmarks", "--only", "cuda,numba_cuda", "--budget", "0.1", lines=60)
    yield "names/faults.txt", run("-m", "tests.faults", "--list")


def lines_of(collected: str) -> str:
    """The tests' names, in an order that does not tell how they are run."""
    return "\n".join(sorted(line for line in collected.splitlines() if "::" in line)) + "\n"


def run(*arguments: str, lines: int | None = None) -> str:
    """What a command prints, and how it ends."""
    made = subprocess.run([sys.executable, *arguments], cwd=CLONE, capture_output=True, text=True, check=False)
    out = "\n".join(made.stdout.splitlines()[:lines])
    return f"{out}\n{made.stderr}\nexit code {made.returncode}\n"


if __name__ == "__main__":
    parser = Parser(prog="python -m tests.net", description=__doc__)
    parser.add_argument("folder", type=Path, help="what users see is written there")
    main(parser.parse_args().folder)
