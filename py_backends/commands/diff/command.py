"""`diff`: compares two result files row by row."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "compare two result files row by row: faster, slower, new or lost"
DESCRIPTION = "Compares two runs row by row, by speed-ups over the baseline: times drift between runs."
EXAMPLE = "diff old.json new.json --fail-on slower"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument("old", type=Path, metavar="OLD", help="a file that compare --json wrote")
    parser.add_argument("new", type=Path, metavar="NEW", help="such a file of a later run")
    parser.add_argument(
        "--fail-on",
        choices=["slower", "unclear"],
        metavar="slower|unclear",
        help="exit with 1 if a row is slower, or was ok and no longer is; unclear: also if one could not be judged",
    )


def run(options: argparse.Namespace) -> int:
    """Compare two result files row by row."""
    from py_backends.commands.diff.analysis import diff as compared
    from py_backends.commands.diff.table import print_difference
    from py_backends.display import console
    from py_backends.results.report import Report

    difference = compared(Report.read(options.old), Report.read(options.new))
    with console.output() as out:
        print_difference(difference, out)
    unclear = options.fail_on == "unclear" and difference.is_unclear()
    return int(unclear or (options.fail_on is not None and difference.is_worse()))
