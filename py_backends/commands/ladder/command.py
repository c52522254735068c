"""`ladder`: times a kernel from plain Python to the machine's best, rung by rung."""

from __future__ import annotations

import argparse

from py_backends.commands import _options, _outputs, _run

HELP = "time matmul from plain Python to the machine's best, rung by rung"
DESCRIPTION = (
    "Times matmul from plain Python to the machine's best, rung by rung. Shows what each rung gains, and how "
    "near the peak the last one comes, beside the ladder published in Science in 2020."
)
EXAMPLE = "ladder --shape matmul=1024 --budget 300 --png ladder.png"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    _options.add(parser, "dtype", dtype="float64")
    one_of = parser.add_mutually_exclusive_group()
    one_of.add_argument(
        "--formats",
        action="store_true",
        help="add the rungs of fewer bits, and the matrix unit made for them",
    )
    one_of.add_argument(
        "--steps",
        action="store_true",
        help="climb the steps from lecture to tuned instead, one idea each, of every kernel that has steps",
    )
    # vecadd has no ladder, so the help leaves it out.
    own = {"shape": "matmul=1000x777x513 (M x N x K)", "budget": 150.0}
    _options.add(parser, "shape", "threads", "seed", "budget", *_options.VIEW_FILES, **own)


def run(options: argparse.Namespace) -> int:
    """Run the rungs, write files, and print the ladder."""
    from py_backends.commands.ladder.picture import draw
    from py_backends.commands.ladder.plan import plan
    from py_backends.commands.ladder.table import print_report

    dtypes = _run.dtypes(options.dtype)
    planned = plan(_run.shapes(options.shape), dtypes, formats=options.formats, steps=options.steps)
    return _outputs.show_view(_run.run_planned(planned, options), draw, print_report, options)
