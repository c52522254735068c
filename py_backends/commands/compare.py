"""`compare`: runs the kernels everywhere, checks, times, and prints a table for each kernel; or resumes such a run."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from py_backends.commands import _arguments, _common, _outputs
from py_backends.errors import WrongRequest

if TYPE_CHECKING:
    from py_backends.harness.results import Report

_BUDGET = 45.0
_FILES = ("json", "csv", "markdown")
_WITH_RESUME = {"--resume", "--budget", "--launcher", *(f"--{kind}" for kind in _FILES)}


def add(commands: _arguments.Commands) -> _arguments.Parser:
    """Add the command."""
    parser = _arguments.add_command(
        commands,
        compare,
        name="compare",
        help="run every kernel on every backend that this machine has; check, time, print a table",
        description="Runs the kernels on the same inputs everywhere, checks every result, and times each.",
        example="compare --kernel matmul --shape matmul=1000x777x513 --dtype all --json r.json",
    )
    _arguments.add_options(parser, *_arguments.COMPARISON, *_FILES, budget=_BUDGET)
    parser.set_defaults(budget=None)  # None: not given, and --resume takes that of the file
    parser.add_argument("--resume", type=Path, metavar="FILE", help="resume an interrupted run from its --json FILE")
    return parser


def compare(options: argparse.Namespace) -> int:
    """Run or resume the comparison, write its files and print its tables."""
    if options.resume:
        _check_resume(options)
    else:
        options.budget = options.budget or _BUDGET
    _outputs.check(options, *_FILES)
    from py_backends.report import table

    report = (_resumed if options.resume else _common.compared)(options)
    return _outputs.show_written(report, table.print_report, written=_outputs.write_results(report, options))


def _resumed(options: argparse.Namespace) -> Report:
    from py_backends.harness.resume import resume

    with _common.progress() as progress:
        return resume(options.resume, options.budget, progress, options.line)


def _check_resume(options: argparse.Namespace) -> None:
    """Refuse options that do not fit --resume. Results go into the resumed file, unless another one is named."""
    given = {word.partition("=")[0] for word in shlex.split(options.line) if word.startswith("--")}
    if unfit := sorted(given - _WITH_RESUME):
        raise WrongRequest(f"--resume takes the request from {options.resume}: leave out {', '.join(unfit)}")
    options.json = options.json or options.resume
