"""`sweep`: times each backend over sizes, and finds the size from which it beats the baseline."""

from __future__ import annotations

import argparse
from functools import partial

from py_backends.commands import _options, _outputs, _run
from py_backends.errors import WrongRequest

_KERNEL = "matmul"


HELP = "time each backend over sizes, and find the size from which it beats NumPy"
DESCRIPTION = (
    "Times each backend at sizes from small to as large as memory and budget allow. Finds the size from "
    "which it beats NumPy: its kernel alone, and whole calls with upload and download."
)
EXAMPLE = "sweep --kernel vecadd --backend numpy,openmp,opencl --from 1024 --png sweep.png"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    own = {"kernel": _KERNEL, "target": _options.FIRST_TARGETS, "budget": 60.0}
    _options.add(parser, *_options.WHAT, "sizes", "from", "to", *_options.HOW, **own)
    parser.add_argument(
        "--values",
        choices=("rate", "time"),
        default="rate",
        help="what table and picture show (default: rate)",
    )
    _options.add(parser, *_options.VIEW_FILES)


def run(options: argparse.Namespace) -> int:
    """Run the kernels at each size, write files and print rates and crossovers."""
    if options.sizes and (options.first or options.last):
        raise WrongRequest("--sizes names every size: leave out --from and --to")
    from py_backends import registry
    from py_backends.commands.sweep.picture import draw
    from py_backends.commands.sweep.plan import plan
    from py_backends.commands.sweep.table import print_report

    kernels = _run.names(options.kernel or [_KERNEL]) or registry.kernel_names()
    planned = plan(
        kernels,
        {kernel: _sizes(kernel, options) for kernel in kernels},
        search=not options.sizes,
        every_target=options.target is not None,
        **_run.chosen(options),
    )
    return _outputs.show_view(
        _run.run_planned(planned, options),
        partial(draw, figure=options.values),
        partial(print_report, figure=options.values),
        options,
    )


def _sizes(kernel: str, options: argparse.Namespace) -> list[int]:
    from py_backends import registry
    from py_backends.commands.sweep.analysis import SMALLEST
    from py_backends.commands.sweep.plan import largest_size, sizes_between

    problem = registry.problem(kernel)
    if options.sizes:
        return sorted(set(options.sizes))
    first = options.first or SMALLEST
    dtypes = _run.dtypes(options.dtype)
    last = options.last or max(first, min(largest_size(problem, dtype, options.budget) for dtype in dtypes))
    return sizes_between(first, last)
