"""`formats`: measures the speed and the error of each backend in each number format."""

from __future__ import annotations

import argparse

from py_backends.commands import _options, _outputs, _run
from py_backends.number_formats import DTYPES
from py_backends.wording import listed

_KERNEL = "matmul"


HELP = f"time every backend in {listed(DTYPES)}, and show its error"
DESCRIPTION = (
    "Times each backend in all number formats that it has. Shows bytes, rate, speed relative to its own "
    "float32, per cent of the machine's peak in that format, and the error against float64."
)
EXAMPLE = "formats --backend numpy,openmp,avx --shape matmul=1024 --png formats.png"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    own = {"kernel": _KERNEL, "target": _options.FIRST_TARGETS, "dtype": _options.ALL, "budget": 20.0}
    _options.add(parser, *_options.COMPARISON, *_options.VIEW_FILES, **own)


def run(options: argparse.Namespace) -> int:
    """Run the kernels in all formats, write files, and print speeds and errors."""
    from py_backends.commands.formats.picture import draw
    from py_backends.commands.formats.plan import plan
    from py_backends.commands.formats.table import print_report

    kernels = options.kernel or [_KERNEL]
    planned = plan(
        kernels,
        _run.shapes(options.shape),
        every_target=options.target is not None,
        **_run.chosen(options),
    )
    return _outputs.show_view(_run.run_planned(planned, options), draw, print_report, options)
