"""`doctor`: lists the backends of this machine, and how to get the others."""

from __future__ import annotations

import argparse
from functools import partial

from py_backends.commands import _arguments

COMMAND = _arguments.Command(
    help="list every backend and target: available or not, device, version, reason and fix",
    description="Lists the backends and targets of this machine, and how to get the missing ones. Lists "
    "plug-ins' kernels, too.",
    example="doctor --json doctor.json",
    options=("launcher", "json"),
)


def doctor(options: argparse.Namespace) -> int:
    """List the backends of this machine, and how to get the others."""
    from py_backends.display import console
    from py_backends.report import doctor as report
    from py_backends.system import machine
    from py_backends.system.files import write_whole, written
    from py_backends.workers import probe as harness

    found, kernels, described = harness.backends(), harness.kernels(), machine.describe()
    whole = True
    if options.json:
        text = report.doctor_json(found, kernels, described)
        whole = written(options.json, partial(write_whole, content=text))
    with console.output() as out:
        report.print_doctor(found, kernels, described, out)
    return 0 if whole else 1
