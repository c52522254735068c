"""`sweep`: rates and times over sizes, and from which size on each backend beats the baseline."""

from __future__ import annotations

import argparse
from functools import partial

from py_backends.commands import common
from py_backends.harness.interruption import let_go

_FILES = "json", "png", "svg"
_BUDGET = 60.0
_KERNEL = "matmul"


def add(commands: common.Commands) -> common.Parser:
    """Add the command."""
    parser = common.add_command(
        commands,
        sweep,
        name="sweep",
        help="time and rate over sizes, and from where on each backend beats NumPy",
        description="Times each backend at sizes from small to as large as memory and budget allow, and says from "
        "which size on it beats NumPy: its kernel alone, and whole calls with upload and download.",
        example="sweep --kernel vecadd --backend numpy,openmp,opencl --from 1024 --png sweep.png",
    )
    common.add_names(
        parser,
        ("kernel", _KERNEL),
        ("backend", "all"),
        ("target", "all, of several for one device the first"),
        ("variant", "tuned, else lecture"),
    )
    common.add_dtype(parser)
    common.add_sizes(parser)
    parser.add_argument(
        "--values", choices=("rate", "time"), default="rate", help="what table and picture show (default: rate)"
    )
    common.add_threads(parser)
    common.add_seed(parser)
    common.add_budget(parser, default=_BUDGET)
    common.add_cache(parser)
    common.add_files(parser, *_FILES)
    return parser


def sweep(options: argparse.Namespace) -> int:
    """Run the kernels at each size, write files and print rates and crossovers."""
    common.check_files(options, *_FILES)
    if options.sizes and (options.first or options.last):
        raise common.UsageError("--sizes names every size: leave out --from and --to")
    from py_backends import _discovery
    from py_backends.harness.sweep import request
    from py_backends.report import table
    from py_backends.report.pictures.sweep import draw
    from py_backends.report.sweep import print_sweeps

    kernels = common.names(options.kernel or [_KERNEL]) or _discovery.kernel_names()
    with common.usage_errors():
        wanted = request(
            kernels,
            {kernel: _sizes(kernel, options) for kernel in kernels},
            every_target=options.target is not None,
            backends=common.names(options.backend),
            targets=common.names(options.target),
            variants=options.variant,
            dtypes=common.dtypes(options.dtype),
        )
    report = common.run_view(wanted, options, _BUDGET)
    written = common.write_view(report, partial(draw, figure=options.values), options)
    let_go()
    with table.output() as out:
        print_sweeps(report, out, options.values)
    return report.exit_code() if written else report.exit_code() or 1


def _sizes(kernel: str, options: argparse.Namespace) -> list[int]:
    from py_backends import _discovery
    from py_backends.harness.sweep import SMALLEST, largest_size, sizes_between

    problem = _discovery.problem(_discovery.known(kernel, _discovery.kernel_names(), "kernel"))
    if options.sizes:
        return sorted(set(options.sizes))
    first = options.first or SMALLEST
    dtypes = common.dtypes(options.dtype)
    return sizes_between(first, options.last or max(first, min(largest_size(problem, dtype) for dtype in dtypes)))
