"""`choose`: recommends a backend for a kernel at one shape, and says why."""

from __future__ import annotations

import argparse
from functools import partial

from py_backends.commands import _arguments, _common, _outputs

_BUDGET = 60.0


def add(commands: _arguments.Commands) -> _arguments.Parser:
    """Add the command."""
    parser = _arguments.add_command(
        commands,
        choose,
        name="choose",
        help="recommend a backend for a kernel at a shape, in five lines",
        description="Times whole calls from Python, with arrays in the host's memory. Says in five lines which backend "
        "to take and why, which is second, what a call costs beyond its kernel, and where the answer changes.",
        example="choose --kernel matmul --shape matmul=1024 --dtype float32",
    )
    _arguments.add_names(
        parser,
        ("kernel", "those of --shape, else all"),
        ("backend", _arguments.ALL),
        ("target", _arguments.ALL),
        ("variant", "tuned, else lecture"),
    )
    _arguments.add_dtype(parser)
    _arguments.add_shape(parser)
    _arguments.add_threads(parser)
    _arguments.add_launcher(parser)
    _arguments.add_seed(parser)
    _arguments.add_budget(parser, _BUDGET)
    _arguments.add_files(parser, "json")
    return parser


def choose(options: argparse.Namespace) -> int:
    """Time calls and kernels, write the results, and print five lines for each kernel and dtype."""
    _outputs.check(options, "json")
    options.cache = "hot"  # as in a loop of calls
    from py_backends import registry
    from py_backends.harness.choose import plan
    from py_backends.harness.interruption import let_go
    from py_backends.report import table
    from py_backends.report.choose import print_choices
    from py_backends.report.files import write_json

    with _common.usage_errors():
        shapes = _common.shapes(options.shape)
        kernels = _common.names(options.kernel or list(shapes)) or registry.kernel_names()
        planned = plan(kernels, options.budget, options.threads, shapes=shapes, **_common.chosen(options))
    report = _common.run_planned(planned, options)
    written = _outputs.written(options.json, partial(write_json, report)) if options.json else True
    let_go()
    with table.output() as out:
        print_choices(report, out)
    return report.exit_code() if written else report.exit_code() or 1
