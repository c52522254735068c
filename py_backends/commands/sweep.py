"""`sweep`: times each backend over sizes, and finds the size from which it beats the baseline."""

from __future__ import annotations

import argparse
from functools import partial

from py_backends.commands import _arguments, _common, _outputs
from py_backends.commands._arguments import own
from py_backends.errors import WrongRequest

_KERNEL = "matmul"


COMMAND = _arguments.Command(
    help="time each backend over sizes, and find the size from which it beats NumPy",
    description="Times each backend at sizes from small to as large as memory and budget allow. Finds the "
    "size from which it beats NumPy: its kernel alone, and whole calls with upload and "
    "download.",
    example="sweep --kernel vecadd --backend numpy,openmp,opencl --from 1024 --png sweep.png",
    options=(
        *(*_arguments.WHAT, "sizes", "from", "to", *_arguments.HOW),
        own(
            "--values",
            choices=("rate", "time"),
            default="rate",
            help="what table and picture show (default: rate)",
        ),
        *_arguments.VIEW_FILES,
    ),
    defaults={"budget": 60.0, "kernel": _KERNEL, "target": _arguments.FIRST_TARGETS},
)


def sweep(options: argparse.Namespace) -> int:
    """Run the kernels at each size, write files and print rates and crossovers."""
    if options.sizes and (options.first or options.last):
        raise WrongRequest("--sizes names every size: leave out --from and --to")
    from py_backends import registry
    from py_backends.harness.sweep import plan
    from py_backends.report.pictures.sweep import draw
    from py_backends.report.sweep import print_sweeps

    kernels = _common.names(options.kernel or [_KERNEL]) or registry.kernel_names()
    planned = plan(
        kernels,
        {kernel: _sizes(kernel, options) for kernel in kernels},
        search=not options.sizes,
        every_target=options.target is not None,
        **_common.chosen(options),
    )
    return _outputs.show_view(
        _common.run_planned(planned, options),
        partial(draw, figure=options.values),
        partial(print_sweeps, figure=options.values),
        options,
    )


def _sizes(kernel: str, options: argparse.Namespace) -> list[int]:
    from py_backends import registry
    from py_backends.harness.sweep import SMALLEST, largest_size, sizes_between

    problem = registry.problem(kernel)
    if options.sizes:
        return sorted(set(options.sizes))
    first = options.first or SMALLEST
    dtypes = _common.dtypes(options.dtype)
    last = options.last or max(first, min(largest_size(problem, dtype, options.budget) for dtype in dtypes))
    return sizes_between(first, last)
