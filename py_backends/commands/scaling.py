"""`scaling`: how much faster each CPU backend becomes with threads, and how much faster it could become."""

from __future__ import annotations

import argparse

from py_backends.commands import arguments, common, outputs

_BUDGET = 60.0
_KERNEL = "matmul"


def add(commands: arguments.Commands) -> arguments.Parser:
    """Add the command."""
    parser = arguments.add_command(
        commands,
        scaling,
        name="scaling",
        help="1 to N threads for each CPU backend: speed-ups, and the parallel part of the work",
        description="Times each CPU backend on 1 to N threads, with the same work (strong) and with work that grows "
        "with the threads (weak), and fits the laws of Amdahl and Gustafson.",
        example="scaling --backend numpy,openmp --shape matmul=2048 --png scaling.png",
    )
    arguments.add_comparison(parser, budget=_BUDGET, kernel=_KERNEL, target="all, of several for one device the first")
    arguments.add_files(parser, *outputs.VIEW_FILES)
    return parser


def scaling(options: argparse.Namespace) -> int:
    """Run the kernels on each number of threads, write files and print speed-ups."""
    outputs.check(options, *outputs.VIEW_FILES)
    from py_backends import registry
    from py_backends.harness import machine
    from py_backends.harness.scaling import plan, thread_counts
    from py_backends.report.pictures.scaling import draw
    from py_backends.report.scaling import print_scaling

    most = options.threads or machine.cpus()
    if most > machine.cpus():
        raise common.UsageError(
            f"{most} threads scale on as many CPUs, and there are {machine.cpus()}: give --threads {machine.cpus()}"
        )
    kernels = common.names(options.kernel or [_KERNEL]) or registry.kernel_names()
    with common.usage_errors():
        planned = plan(
            thread_counts(most),
            kernels,
            common.shapes(options.shape),
            every_target=options.target is not None,
            **common.chosen(options),
        )
    return outputs.show_view(common.run_planned(planned, options), draw, print_scaling, options)
