"""`timeline`: shows where the time of one call goes, phase by phase."""

from __future__ import annotations

import argparse

from py_backends.commands import _options, _outputs, _run

HELP = "show where the time of one call goes: the phases of an offload"
DESCRIPTION = (
    "Times upload, launch, kernel, download and release of one call of each backend. Also times what comes "
    "once before all calls: preparing, and the first launch."
)
EXAMPLE = "timeline --kernel vecadd --backend numpy,opencl,sycl --png timeline.png"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    _options.add(parser, *_options.COMPARISON, *_options.VIEW_FILES, budget=40.0)


def run(options: argparse.Namespace) -> int:
    """Run the kernels as `compare` does, write files and print the phases of their calls."""
    from py_backends.commands.timeline.picture import draw
    from py_backends.commands.timeline.table import print_report

    return _outputs.show_view(_run.compared(options), draw, print_report, options)
