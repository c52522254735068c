"""`diff`: two result files, row by row."""

from __future__ import annotations

import argparse
from pathlib import Path

from py_backends.commands import _arguments, _common


def add(commands: _arguments.Commands) -> _arguments.Parser:
    """Add the command."""
    parser = _arguments.add_command(
        commands,
        diff,
        name="diff",
        help="two result files, row by row: what became faster or slower, what came and went",
        description="Compares two runs row by row, by their speed-ups over the baseline: times of two runs drift.",
        example="diff old.json new.json --fail-on slower",
    )
    parser.add_argument("old", type=Path, metavar="OLD", help="written by compare --json")
    parser.add_argument("new", type=Path, metavar="NEW", help="written by a later one")
    parser.add_argument(
        "--fail-on",
        choices=["slower"],
        metavar="slower",
        help="end with 1 where a row is slower, or was right and timed and is not any more",
    )
    return parser


def diff(options: argparse.Namespace) -> int:
    """Compare two result files row by row."""
    from py_backends.harness.diff import diff as compared
    from py_backends.harness.results import Report
    from py_backends.report import table
    from py_backends.report.diff import print_difference

    with _common.usage_errors():
        difference = compared(Report.read(options.old), Report.read(options.new))
    with table.output() as out:
        print_difference(difference, out)
    return int(options.fail_on == "slower" and difference.is_worse())
