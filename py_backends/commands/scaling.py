"""`scaling`: how much faster each CPU backend becomes with threads, and how much faster it could become."""

from __future__ import annotations

import argparse

from py_backends.commands import common
from py_backends.harness.interruption import let_go

_FILES = "json", "png", "svg"
_BUDGET = 60.0
_KERNEL = "matmul"


def add(commands: common.Commands) -> common.Parser:
    """Add the command."""
    parser = common.add_command(
        commands,
        scaling,
        name="scaling",
        help="1 to N threads for each CPU backend: speed-ups, and the parallel part of the work",
        description="Times each CPU backend on 1 to N threads, with the same work (strong) and with work that grows "
        "with the threads (weak), and fits the laws of Amdahl and Gustafson.",
        example="scaling --backend numpy,openmp --shape matmul=2048 --png scaling.png",
    )
    common.add_names(
        parser,
        ("kernel", _KERNEL),
        ("backend", "all"),
        ("target", "all, of several for one device the first"),
        ("variant", "tuned, else lecture"),
    )
    common.add_dtype(parser)
    common.add_shape(parser)
    common.add_threads(parser)
    common.add_seed(parser)
    common.add_budget(parser, default=_BUDGET)
    common.add_cache(parser)
    common.add_files(parser, *_FILES)
    return parser


def scaling(options: argparse.Namespace) -> int:
    """Run the kernels on each number of threads, write files and print speed-ups."""
    common.check_files(options, *_FILES)
    from py_backends import _discovery
    from py_backends.harness import machine
    from py_backends.harness.scaling import request, thread_counts
    from py_backends.report import table
    from py_backends.report.pictures.scaling import draw
    from py_backends.report.scaling import print_scaling

    most = options.threads or machine.cpus()
    if most > machine.cpus():
        raise common.UsageError(
            f"{most} threads scale on as many CPUs, and there are {machine.cpus()}: give --threads {machine.cpus()}"
        )
    kernels = common.names(options.kernel or [_KERNEL]) or _discovery.kernel_names()
    with common.usage_errors():
        wanted = request(
            thread_counts(most),
            kernels,
            common.shapes(options.shape),
            every_target=options.target is not None,
            backends=common.names(options.backend),
            targets=common.names(options.target),
            variants=options.variant,
            dtypes=common.dtypes(options.dtype),
        )
    report = common.run_view(wanted, options, _BUDGET)
    written = common.write_view(report, draw, options)
    let_go()
    with table.output() as out:
        print_scaling(report, out)
    return report.exit_code() if written else report.exit_code() or 1
