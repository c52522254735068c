"""`timeline`: shows where the time of one call goes, phase by phase."""

from __future__ import annotations

import argparse

from py_backends.commands import _arguments, _common, _outputs

COMMAND = _arguments.Command(
    help="show where the time of one call goes: the phases of an offload",
    description="Times upload, launch, kernel, download and release of one call of each backend. Also times"
    " what comes once before all calls: preparing, and the first launch.",
    example="timeline --kernel vecadd --backend numpy,opencl,sycl --png timeline.png",
    options=(*_arguments.COMPARISON, *_arguments.VIEW_FILES),
    defaults={"budget": 40.0},
)


def timeline(options: argparse.Namespace) -> int:
    """Run the kernels as `compare` does, write files and print the phases of their calls."""
    from py_backends.report.pictures.timeline import draw
    from py_backends.report.timeline import print_timeline

    return _outputs.show_view(_common.compared(options), draw, print_timeline, options)
