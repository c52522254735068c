"""`choose`: recommends a backend for a kernel at one shape, and says why."""

from __future__ import annotations

import argparse

from py_backends.commands import _options, _outputs, _run

HELP = "recommend a backend for a kernel at a shape, in five lines"
DESCRIPTION = (
    "Times whole calls from Python, with arrays in the host's memory. Says in five lines which backend to "
    "take and why, which is second, what a call costs beyond its kernel, and where the answer changes."
)
EXAMPLE = "choose --kernel matmul --shape matmul=1024 --dtype float32"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    # Caches are hot, as in a loop of calls.
    shared = [name for name in _options.COMPARISON if name != "cache"]
    _options.add(parser, *shared, "json", kernel="those of --shape, else vecadd,matmul", budget=60.0)


def run(options: argparse.Namespace) -> int:
    """Time calls and kernels, write the results, and print five lines for each kernel and dtype."""
    from py_backends import registry
    from py_backends.commands.choose.plan import plan
    from py_backends.commands.choose.table import print_report

    shapes = _run.shapes(options.shape)
    asked = options.kernel or list(shapes) or registry.usual_kernels()
    kernels = _run.names(asked) or registry.kernel_names()
    planned = plan(kernels, options.budget, options.threads, shapes=shapes, **_run.chosen(options))
    report = _run.run_planned(planned, options)
    return _outputs.show_written(report, print_report, written=_outputs.write_results(report, options))
