"""`formats`: measures the speed and the error of each backend in each number format."""

from __future__ import annotations

import argparse

from py_backends.commands import _arguments, _common, _outputs

_KERNEL = "matmul"


COMMAND = _arguments.Command(
    help="time every backend in float64, float32, float16, bfloat16 and int8, and show its error",
    description="Times each backend in all number formats that it has. Shows bytes, rate, speed relative to"
    " its own float32, per cent of the machine's peak in that format, and the error against "
    "float64.",
    example="formats --backend numpy,openmp,avx --shape matmul=1024 --png formats.png",
    options=(*_arguments.COMPARISON, *_arguments.VIEW_FILES),
    defaults={"budget": 20.0, "kernel": _KERNEL, "target": _arguments.FIRST_TARGETS, "dtype": _arguments.ALL},
)


def formats(options: argparse.Namespace) -> int:
    """Run the kernels in all formats, write files, and print speeds and errors."""
    from py_backends.harness.formats import plan
    from py_backends.report.formats import print_formats
    from py_backends.report.pictures.formats import draw

    kernels = _common.names(options.kernel or [_KERNEL])
    planned = plan(
        kernels,
        _common.shapes(options.shape),
        every_target=options.target is not None,
        **_common.chosen(options),
    )
    return _outputs.show_view(_common.run_planned(planned, options), draw, print_formats, options)
