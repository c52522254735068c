"""`timeline`: where the time of one call goes, phase by phase."""

from __future__ import annotations

import argparse

from py_backends.commands import common
from py_backends.harness.interruption import let_go

_FILES = "json", "png", "svg"
_BUDGET = 40.0


def add(commands: common.Commands) -> common.Parser:
    """Add the command."""
    parser = common.add_command(
        commands,
        timeline,
        name="timeline",
        help="the phases of one call of each backend: where the time of an offload goes",
        description="Times upload, launch, kernel, download and release of one call of each backend, and what comes "
        "once before all calls: preparing, and the first launch.",
        example="timeline --kernel vecadd --backend numpy,opencl,sycl --png timeline.png",
    )
    common.add_names(
        parser, ("kernel", "all"), ("backend", "all"), ("target", "all"), ("variant", "tuned, else lecture")
    )
    common.add_dtype(parser)
    common.add_shape(parser)
    common.add_threads(parser)
    common.add_seed(parser)
    common.add_budget(parser, default=_BUDGET)
    common.add_cache(parser)
    common.add_files(parser, *_FILES)
    return parser


def timeline(options: argparse.Namespace) -> int:
    """Run the kernels as `compare` does, write files and print the phases of their calls."""
    common.check_files(options, *_FILES)
    from py_backends.harness.compare import compare
    from py_backends.harness.plan import DTYPES
    from py_backends.report import table
    from py_backends.report.pictures.timeline import draw
    from py_backends.report.timeline import print_timeline

    with common.usage_errors(), common.progress() as progress:
        report = compare(
            kernels=common.names(options.kernel),
            backends=common.names(options.backend),
            targets=common.names(options.target),
            variants=options.variant,
            dtypes=DTYPES if options.dtype == [common.ALL] else options.dtype,
            shapes=common.shapes(options.shape),
            threads=options.threads,
            seed=options.seed,
            budget=options.budget or _BUDGET,
            cache=options.cache,
            progress=progress,
            command=options.line,
        )
    written = common.write_view(report, draw, options)
    let_go()
    with table.output() as out:
        print_timeline(report, out)
    return report.exit_code() if written else report.exit_code() or 1
