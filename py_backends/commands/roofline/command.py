"""`roofline`: measures the machine's ceilings, and how far below them every row is."""

from __future__ import annotations

import argparse

from py_backends.commands import _options, _outputs, _run

HELP = "show each row under the machine's ceilings: bound by memory or by arithmetic"
DESCRIPTION = (
    "Measures the machine's ceilings of arithmetic and memory. Places every row under them by its arithmetic "
    "intensity: what limits it, and how far below the roof it is."
)
EXAMPLE = "roofline --dtype all --shape matmul=1024 --png roofline.png"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    _options.add(parser, *_options.COMPARISON, *_options.VIEW_FILES, budget=40.0)


def run(options: argparse.Namespace) -> int:
    """Run the kernels as `compare` does, write files, and print ceilings and points."""
    from py_backends.commands.roofline.picture import draw
    from py_backends.commands.roofline.table import print_report

    return _outputs.show_view(_run.compared(options), draw, print_report, options)
