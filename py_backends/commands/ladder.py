"""`ladder`: a kernel from plain Python to the machine's best, one idea a rung."""

from __future__ import annotations

import argparse

from py_backends.commands import common
from py_backends.harness.interruption import let_go

_FILES = "json", "png", "svg"
_BUDGET = 150.0


def add(commands: common.Commands) -> common.Parser:
    """Add the command."""
    parser = common.add_command(
        commands,
        ladder,
        name="ladder",
        help="matmul from plain Python to the machine's best, one idea a rung",
        description="Times matmul from plain Python to the machine's best, one idea a rung: what each of them gains, "
        "and how near the peak the last one comes, beside the ladder that was published in Science in 2020.",
        example="ladder --shape matmul=1024 --budget 300 --png ladder.png",
    )
    common.add_dtype(parser, default="float64")
    common.add_shape(parser)
    common.add_threads(parser)
    common.add_seed(parser)
    common.add_budget(parser, default=_BUDGET)
    common.add_files(parser, *_FILES)
    return parser


def ladder(options: argparse.Namespace) -> int:
    """Run the rungs, write files, and print the ladder."""
    common.check_files(options, *_FILES)
    from py_backends.harness.ladder import measure
    from py_backends.harness.plan import DTYPES
    from py_backends.report import table
    from py_backends.report.ladder import print_ladders
    from py_backends.report.pictures.ladder import draw

    with common.usage_errors(), common.progress() as progress:
        report = measure(
            shapes=common.shapes(options.shape),
            dtypes=DTYPES if options.dtype == [common.ALL] else options.dtype,
            threads=options.threads,
            seed=options.seed,
            budget=options.budget or _BUDGET,
            progress=progress,
            command=options.line,
        )
    written = common.write_view(report, draw, options)
    let_go()
    with table.output() as out:
        print_ladders(report, out)
    return report.exit_code() if written else report.exit_code() or 1
