"""`timeline`: where the time of one call goes, phase by phase."""

from __future__ import annotations

import argparse

from py_backends.commands import arguments, common, outputs

_BUDGET = 40.0


def add(commands: arguments.Commands) -> arguments.Parser:
    """Add the command."""
    parser = arguments.add_command(
        commands,
        timeline,
        name="timeline",
        help="the phases of one call of each backend: where the time of an offload goes",
        description="Times upload, launch, kernel, download and release of one call of each backend, and what comes "
        "once before all calls: preparing, and the first launch.",
        example="timeline --kernel vecadd --backend numpy,opencl,sycl --png timeline.png",
    )
    arguments.add_comparison(parser, budget=_BUDGET)
    arguments.add_files(parser, *outputs.VIEW_FILES)
    return parser


def timeline(options: argparse.Namespace) -> int:
    """Run the kernels as `compare` does, write files and print the phases of their calls."""
    outputs.check(options, *outputs.VIEW_FILES)
    from py_backends.report.pictures.timeline import draw
    from py_backends.report.timeline import print_timeline

    return outputs.show_view(common.compared(options), draw, print_timeline, options)
