"""`scaling`: measures the speed-up of each CPU backend with more threads, and the limit of that speed-up."""

from __future__ import annotations

import argparse

from py_backends.commands import _options, _outputs, _run
from py_backends.errors import WrongRequest

_KERNEL = "matmul"


HELP = "time each CPU backend on 1 to N threads: speed-ups and the parallel part of the work"
DESCRIPTION = (
    "Times each CPU backend on 1 to N threads, with the same work (strong) and with work that grows with the "
    "threads (weak). Fits the laws of Amdahl and Gustafson."
)
EXAMPLE = "scaling --backend numpy,openmp --shape matmul=2048 --png scaling.png"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    own = {"kernel": _KERNEL, "target": _options.FIRST_TARGETS, "budget": 60.0}
    _options.add(parser, *_options.COMPARISON, *_options.VIEW_FILES, **own)


def run(options: argparse.Namespace) -> int:
    """Run the kernels on each number of threads, write files and print speed-ups."""
    from py_backends import registry
    from py_backends.commands.scaling.picture import draw
    from py_backends.commands.scaling.plan import plan, thread_counts
    from py_backends.commands.scaling.table import print_report
    from py_backends.system import machine

    cpus = machine.cpus()
    most = _most_threads(options, cpus)
    kernels = _run.names(options.kernel or [_KERNEL]) or registry.kernel_names()
    planned = plan(
        thread_counts(most),
        kernels,
        _run.shapes(options.shape),
        every_target=options.target is not None,
        cpus=cpus,
        **_run.chosen(options),
    )
    return _outputs.show_view(_run.run_planned(planned, options), draw, print_report, options)


def _most_threads(options: argparse.Namespace, cpus: int) -> int:
    """The requested number of threads, else the number of CPUs of this machine or of the launcher's ranks.

    Raises WrongRequest if more threads are requested than there are CPUs, and on one CPU. With --launcher there is no
    such limit, since a launcher may start ranks on other machines.
    """
    from py_backends.ranks import served

    there = served()
    known = max(cpus, there.ranks * there.threads) if there else cpus
    if known < 2 and not options.launcher:
        raise WrongRequest(
            "scaling compares one thread with several, but there is one CPU: run it where there are more"
        )
    most: int = options.threads or known
    if most > known and not options.launcher:
        raise WrongRequest(
            f"scaling to {most} threads needs as many CPUs, but there are {known}: give --threads {known}"
        )
    return most
