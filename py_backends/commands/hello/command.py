"""`hello`: runs a first program in a programming model, and shows it step by step."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py_backends.commands.hello import programs
    from py_backends.commands.hello.run import Outcome


HELP = "run a first program in a programming model, step by step"
DESCRIPTION = (
    "Runs a first program in a programming model on this machine. Shows each step: what it does, its lines "
    "of the source, and their output. The host code is there in full."
)
EXAMPLE = "hello openmp"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    from py_backends.commands.hello import programs

    parser.add_argument("model", metavar="MODEL", help=", ".join(programs.models()))
    parser.add_argument("--source", action="store_true", help="print the source and run nothing")


def run(options: argparse.Namespace) -> int:
    """Run the model's programs and show their steps. Returns 1 if none of them ran, or one failed."""
    from py_backends import registry
    from py_backends.commands.hello import programs

    registry.known(options.model, programs.models(), "model")
    chosen = programs.programs(options.model)
    if options.source:
        from py_backends.commands.hello.table import print_sources
        from py_backends.display import console

        with console.output() as out:
            print_sources(chosen, out)
        return 0
    outcomes = [_run(program, first=program is chosen[0]) for program in chosen]
    failed = any(outcome.failed for outcome in outcomes) or not any(outcome.ran for outcome in outcomes)
    return 1 if failed else 0


def _run(program: programs.Program, *, first: bool) -> Outcome:
    """Run one program and show its steps."""
    from py_backends.commands.hello.run import run
    from py_backends.commands.hello.table import print_program
    from py_backends.display import console

    outcome = run(program)
    with console.output() as out:
        if not first:
            out.print()
        print_program(program, outcome, out)
    return outcome
