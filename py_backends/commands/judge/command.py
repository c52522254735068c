"""`judge`: one file of anybody's as a source of a kernel that is here: is it right, and how fast?"""

from __future__ import annotations

import argparse
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from py_backends.commands import _options, _outputs, _run
from py_backends.errors import BackendUnavailable, WrongRequest
from py_backends.limits import gigabytes, seconds

if TYPE_CHECKING:
    from py_backends.results.report import Report

HELP = "judge one source file of anybody's: is it right, how fast is it, and how far from the ceiling?"
DESCRIPTION = (
    "Takes a file as a further source of a kernel. It has this project's form, or a comment says how it is called: "
    "// py-backends: sgemm(m, n, k, alpha=1, a, b, beta=0, c), grid ceil(n / 32) x ceil(m / 32), block 32 x 32. "
    "Tries it by the conformance suite, then times it beside lecture, tuned and libraries. "
    "Exits with 1 if it is wrong, and with 2 if it cannot be judged."
)
EXAMPLE = "judge matmul sgemm.cu"
_EVERY = "those that it takes"
_ANY_SEED = "another one each time, which --json has"
_SEEDS = 2**32
"""One of so many is drawn: a file could hold the result of a known one."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument("kernel", metavar="KERNEL", help="a kernel's name, or the path of its folder")
    parser.add_argument("file", metavar="FILE", type=Path, help="the source: .cu, .cl, .cpp or .py")
    parser.add_argument("--backend", metavar="NAME", help="its model, for files that may be of several")
    parser.add_argument("--target", metavar="NAME", help="where it runs (default: the first that is there)")
    parser.add_argument("--call", metavar="TEXT", help="how its function is called, as in the comment")
    own = {"shape": "the kernel's own", "dtype": _EVERY, "seed": _ANY_SEED}
    _options.add(parser, "dtype", "shape", "threads", "seed", "json", **own)
    parser.set_defaults(seed=None)
    help_of = (
        "time for the comparison; the suite before it, the fewest rounds and the last check come on top "
        "(default: %(default)g)"
    )
    parser.add_argument("--budget", metavar="SECONDS", type=seconds, default=20.0, help=help_of)
    help_of = "a case without an answer after this time counts as hung (default: %(default)g)"
    parser.add_argument("--patience", metavar="SECONDS", type=seconds, default=30.0, help=help_of)
    help_of = "a worker that takes more memory is ended (default: half of what is free)"
    parser.add_argument("--memory", metavar="GB", type=gigabytes, help=help_of)


def run(options: argparse.Namespace) -> int:
    """Judge the file, write the results, and print the answer."""
    from py_backends.commands.judge import table

    report = _judged(options)
    written = _outputs.write_results(report, options)
    return _outputs.show_written(report, table.print_report, written=written)


def _judged(options: argparse.Namespace) -> Report:
    """The results. Raises WrongRequest, with one line, for what cannot be judged here."""
    from py_backends.commands.judge import source
    from py_backends.commands.judge.judging import Judging
    from py_backends.harness.compare import checked_settings

    given = source.checked(options.kernel, options.file, options.backend, options.call)
    seed = secrets.randbelow(_SEEDS) if options.seed is None else options.seed
    settings = checked_settings(options.threads, seed, options.budget, command=options.line)
    shapes = _run.shapes(options.shape)
    if others := [kernel for kernel in shapes if kernel != given.kernel]:
        raise WrongRequest(f"a shape is given for {others[0]}, and {given.kernel} is judged")
    dtypes = None if options.dtype == [_EVERY] else _run.dtypes(options.dtype)
    try:
        with source.added(given) as found, _run.progress() as shown:
            judging = Judging(given, found, options.target, dtypes, shapes, settings, shown)
            return judging.run(options.patience, options.memory)
    except BackendUnavailable as missing:
        fix = f"; to change that: {missing.fix}" if missing.fix else ""
        raise WrongRequest(f"{given.backend} is not there: {missing.reason}{fix}") from missing
