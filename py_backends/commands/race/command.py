"""`race`: runs the functions of a file against one another, checks, times, and prints a table."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from py_backends.commands import _options, _outputs, _run
from py_backends.limits import LARGEST_SIZE, seconds, tolerance

HELP = "race the functions of a file against one another, on inputs that it makes"
DESCRIPTION = (
    "Runs every public function that FILE defines on what its function inputs(size) makes, each in a process of its "
    "own. Checks that all agree with the first one, or with its function reference, and times each against the first."
)
EXAMPLE = "race scan.py --size 1000000 --json r.json"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a file of Python that defines functions, and inputs")
    size = partial(_options.whole_number, least=1, most=LARGEST_SIZE)
    parser.add_argument("--size", type=size, metavar="N", help="what inputs gets (default: its own)")
    relative = "the largest error, relative to the largest element of an output (default: a bound by itself)"
    parser.add_argument("--tolerance", type=_tolerance, metavar="X", help=relative)
    hung = "time without an answer after which a function counts as hung (default: %(default)g)"
    parser.add_argument("--patience", type=seconds, metavar="SECONDS", default=30.0, help=hung)
    spent = (
        "time to load, check and time the functions; the right answer, the fewest rounds and the last check come on "
        "top (default: %(default)g)"
    )
    parser.add_argument("--budget", type=seconds, metavar="SECONDS", default=6.0, help=spent)
    _options.add(parser, "threads", *_options.RESULT_FILES)


def run(options: argparse.Namespace) -> int:
    """Race the functions, write the results, and print their table."""
    from py_backends.commands.race.table import print_report
    from py_backends.racing.race import race_file

    how = {"tolerance": options.tolerance, "threads": options.threads}
    how |= {"budget": options.budget, "patience": options.patience}
    with _run.progress() as progress:
        report = race_file(options.file, options.size, **how, progress=progress, command=options.line)
    return _outputs.show_written(report, print_report, written=_outputs.write_results(report, options))


def _tolerance(text: str) -> float:
    try:
        return tolerance(float(text))
    except ValueError:  # WrongRequest is one too
        raise argparse.ArgumentTypeError(f"takes a number from 0 to below 1, not {text!r}") from None
