"""`ladder`: times a kernel from plain Python to the machine's best, rung by rung."""

from __future__ import annotations

import argparse

from py_backends.commands import _arguments, _common, _outputs
from py_backends.commands._arguments import own

COMMAND = _arguments.Command(
    help="time matmul from plain Python to the machine's best, rung by rung",
    description="Times matmul from plain Python to the machine's best, rung by rung. Shows what each rung "
    "gains, and how near the peak the last one comes, beside the ladder published in Science in"
    " 2020.",
    example="ladder --shape matmul=1024 --budget 300 --png ladder.png",
    options=(
        "dtype",
        [
            own(
                "--formats",
                action="store_true",
                help="add the rungs of fewer bits: bfloat16, and the matrix unit made for it",
            ),
            own(
                "--steps",
                action="store_true",
                help="climb the steps from lecture to tuned instead, one idea each, of every kernel that has steps",
            ),
        ],
        *("shape", "threads", "seed", "budget", *_arguments.VIEW_FILES),
    ),
    # vecadd has no ladder, so the help leaves it out.
    defaults={"dtype": "float64", "shape": "matmul=1000x777x513 (M x N x K)", "budget": 150.0},
)


def ladder(options: argparse.Namespace) -> int:
    """Run the rungs, write files, and print the ladder."""
    from py_backends.harness.ladder import plan
    from py_backends.report.ladder import print_ladders
    from py_backends.report.pictures.ladder import draw

    dtypes = _common.dtypes(options.dtype)
    planned = plan(_common.shapes(options.shape), dtypes, formats=options.formats, steps=options.steps)
    return _outputs.show_view(_common.run_planned(planned, options), draw, print_ladders, options)
