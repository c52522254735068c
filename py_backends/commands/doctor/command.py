"""`doctor`: lists the backends of this machine, and how to get the others."""

from __future__ import annotations

import argparse
from functools import partial

from py_backends.commands import _options

HELP = "list every backend and target: available or not, device, version, reason and fix"
DESCRIPTION = (
    "Lists the backends and targets of this machine, and how to get the missing ones. Lists plug-ins' kernels, too."
)
EXAMPLE = "doctor --json doctor.json"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    _options.add(parser, "launcher", "json")


def run(options: argparse.Namespace) -> int:
    """List the backends of this machine, and how to get the others."""
    from py_backends.commands.doctor.table import doctor_json, print_doctor
    from py_backends.display import console
    from py_backends.system import machine
    from py_backends.system.files import write_whole, written
    from py_backends.workers import probe

    found, kernels, described = probe.backends(), probe.kernels(), machine.describe()
    whole = True
    if options.json:
        text = doctor_json(found, kernels, described)
        whole = written(options.json, partial(write_whole, content=text))
    with console.output() as out:
        print_doctor(found, kernels, described, out)
    return 0 if whole else 1
