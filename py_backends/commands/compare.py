"""`compare`: runs the kernels everywhere, checks, times, and prints a table a kernel; or goes on with such a run."""

from __future__ import annotations

import argparse
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from py_backends.commands import common
from py_backends.harness.interruption import let_go

if TYPE_CHECKING:
    from py_backends.harness.compare import Progress
    from py_backends.harness.results import Report

_WITH_RESUME = {"--resume", "--budget", "--json", "--csv", "--markdown"}


def add(commands: common.Commands) -> common.Parser:
    """Add the command."""
    parser = common.add_command(
        commands,
        compare,
        name="compare",
        help="run every kernel on every backend that this machine has; check, time, print a table",
        description="Runs the kernels on the same inputs everywhere, checks that all agree, and times each.",
        example="compare --kernel matmul --shape matmul=1000x777x513 --dtype all --json r.json",
    )
    common.add_names(
        parser, ("kernel", "all"), ("backend", "all"), ("target", "all"), ("variant", "tuned, else lecture")
    )
    common.add_dtype(parser)
    common.add_shape(parser)
    common.add_threads(parser)
    common.add_seed(parser)
    common.add_budget(parser, default=45)
    common.add_cache(parser)
    common.add_files(parser, "json", "csv", "markdown")
    parser.add_argument(
        "--resume", type=Path, metavar="FILE", help="go on with what is missing in an interrupted run's --json FILE"
    )
    return parser


def compare(options: argparse.Namespace) -> int:
    """Run the comparison, or what is missing of one, write its files and print its tables."""
    if options.resume:
        _check_resume(options)
    paths = [path for path in (options.json, options.csv, options.markdown) if path]
    for path in paths:
        common.check_writable(path)
    if len(set(paths)) < len(paths):
        raise common.UsageError("--json, --csv and --markdown name one file: name one for each")
    from py_backends.report import table

    with common.usage_errors(), common.progress() as progress:
        report = _resumed(options, progress) if options.resume else _compared(options, progress)
    written = _write_results(report, options)
    let_go()
    with table.output() as out:
        table.print_report(report, out)
    return report.exit_code() if written else report.exit_code() or 1


def _compared(options: argparse.Namespace, progress: Progress | None) -> Report:
    from py_backends.harness.compare import compare as run
    from py_backends.harness.plan import DTYPES

    return run(
        kernels=common.names(options.kernel),
        backends=common.names(options.backend),
        targets=common.names(options.target),
        variants=options.variant,
        dtypes=DTYPES if options.dtype == [common.ALL] else options.dtype,
        shapes=common.shapes(options.shape),
        threads=options.threads,
        seed=options.seed,
        **({} if options.budget is None else {"budget": options.budget}),
        cache=options.cache,
        progress=progress,
        command=options.line,
    )


def _resumed(options: argparse.Namespace, progress: Progress | None) -> Report:
    from py_backends.harness.resume import resume

    return resume(options.resume, options.budget, progress, options.line)


def _check_resume(options: argparse.Namespace) -> None:
    """The file says what was asked for; the results go into it, where no other is named."""
    given = {word.partition("=")[0] for word in shlex.split(options.line) if word.startswith("--")}
    if unfit := sorted(given - _WITH_RESUME):
        raise common.UsageError(
            f"--resume takes what was asked for from {options.resume}: leave out {', '.join(unfit)}"
        )
    options.json = options.json or options.resume


def _write_results(report: Report, options: argparse.Namespace) -> bool:
    """Write the files that were asked for, each whether or not the others could be."""
    from py_backends.report import files

    writers = {options.json: files.write_json, options.csv: files.write_csv, options.markdown: files.write_markdown}
    written = [common.written(path, partial(write, report)) for path, write in writers.items() if path]
    return all(written)
