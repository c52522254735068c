"""`choose`: recommends a backend for a kernel at one shape, and says why."""

from __future__ import annotations

import argparse

from py_backends.commands import _arguments, _common, _outputs

COMMAND = _arguments.Command(
    help="recommend a backend for a kernel at a shape, in five lines",
    description="Times whole calls from Python, with arrays in the host's memory. Says in five lines which backend "
    "to take and why, which is second, what a call costs beyond its kernel, and where the answer changes.",
    example="choose --kernel matmul --shape matmul=1024 --dtype float32",
    # Caches are hot, as in a loop of calls.
    options=(*(name for name in _arguments.COMPARISON if name != "cache"), "json"),
    defaults={"kernel": "those of --shape, else all", "budget": 60.0},
)


def choose(options: argparse.Namespace) -> int:
    """Time calls and kernels, write the results, and print five lines for each kernel and dtype."""
    from py_backends import registry
    from py_backends.harness.choose import plan
    from py_backends.report.choose import print_choices

    shapes = _common.shapes(options.shape)
    kernels = _common.names(options.kernel or list(shapes)) or registry.kernel_names()
    planned = plan(kernels, options.budget, options.threads, shapes=shapes, **_common.chosen(options))
    report = _common.run_planned(planned, options)
    return _outputs.show_written(report, print_choices, written=_outputs.write_results(report, options))
