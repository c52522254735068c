"""`roofline`: measures the machine's ceilings, and how far below them every row is."""

from __future__ import annotations

import argparse

from py_backends.commands import _arguments, _common, _outputs

COMMAND = _arguments.Command(
    help="show each row under the machine's ceilings: bound by memory or by arithmetic",
    description="Measures the machine's ceilings of arithmetic and memory. Places every row under them by "
    "its arithmetic intensity: what limits it, and how far below the roof it is.",
    example="roofline --dtype all --shape matmul=1024 --png roofline.png",
    options=(*_arguments.COMPARISON, *_arguments.VIEW_FILES),
    defaults={"budget": 40.0},
)


def roofline(options: argparse.Namespace) -> int:
    """Run the kernels as `compare` does, write files, and print ceilings and points."""
    from py_backends.report.pictures.roofline import draw
    from py_backends.report.roofline import print_rooflines

    return _outputs.show_view(_common.compared(options), draw, print_rooflines, options)
