"""`compare`: runs the kernels everywhere, checks, times, and prints a table for each kernel; or resumes such a run."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from py_backends.commands import _options, _outputs, _run
from py_backends.errors import WrongRequest

if TYPE_CHECKING:
    from py_backends.results.report import Report

_WITH_RESUME = {"--resume", "--budget", "--launcher", *(f"--{kind}" for kind in _options.RESULT_FILES)}


HELP = "run every kernel on every backend that this machine has; check, time, print a table"
DESCRIPTION = "Runs the kernels on the same inputs everywhere, checks every result, and times each."
EXAMPLE = "compare --kernel matmul --shape matmul=1000x777x513 --dtype all --json r.json"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    _options.add(parser, *_options.COMPARISON, *_options.RESULT_FILES, budget=54.0)
    resumed = "resume an interrupted run from its --json FILE"
    parser.add_argument("--resume", type=Path, metavar="FILE", help=resumed)


def run(options: argparse.Namespace) -> int:
    """Run or resume the comparison, write its files and print its tables."""
    report = (_resumed if options.resume else _run.compared)(options)
    from py_backends.commands.compare.table import print_report

    return _outputs.show_written(report, print_report, written=_outputs.write_results(report, options))


def _resumed(options: argparse.Namespace) -> Report:
    """Resume a comparison. Results go into the resumed file, unless another one is named. Refuses unfit options."""
    given = {word.partition("=")[0] for word in shlex.split(options.line) if word.startswith("--")}
    if unfit := sorted(given - _WITH_RESUME):
        raise WrongRequest(f"--resume takes the request from {options.resume}: leave out {', '.join(unfit)}")
    options.json = options.json or options.resume
    _outputs.check(options)
    from py_backends.harness.resume import resume

    budget = options.budget if "--budget" in given else None  # that of the file
    with _run.progress() as progress:
        return resume(options.resume, budget, progress, options.line)
