"""The command line: finds the requested command and runs it.

A command imports what it needs when it runs, so that help and usage errors are fast.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import NoReturn

from py_backends import __version__, commands
from py_backends.commands import _options, _outputs
from py_backends.commands._options import Parser
from py_backends.errors import BackendUnavailable, WrongRequest
from py_backends.ranks import launcher
from py_backends.system import streams
from py_backends.system.files import printable
from py_backends.system.signals import SIGNALS, children_are_waited_for, interruptible
from py_backends.wording import hint


@children_are_waited_for()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Raises SystemExit after help and wrong usage."""
    streams.prepare()
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    try:
        return _run(arguments) if launcher.world_size() == 1 else _serve(arguments)
    except OSError as error:
        return streams.give_up(error)
    except KeyboardInterrupt:
        return 130


def _serve(arguments: list[str]) -> int:
    """Run as one of the ranks that a launcher such as mpirun started. Together they run one command."""
    launcher.use_its_library()
    from py_backends.install import pip_install

    try:
        from py_backends.ranks.served_command import serve_command
    except (ImportError, RuntimeError) as error:  # there is no mpi4py, or no library that it can load
        return _cannot_serve(f"MPI cannot be loaded: {' '.join(str(error).split())}; {pip_install('mpi')}")
    try:
        return serve_command(arguments, SIGNALS)
    except WrongRequest as error:
        return _cannot_serve(str(error), 2)
    except BackendUnavailable as error:
        return _cannot_serve(str(error))


def _cannot_serve(reason: str, code: int = 1) -> int:
    if launcher.is_first():  # the others would say the same
        streams.complain(f"error: {reason}")
    return code


def _run(arguments: list[str]) -> int:
    parser, by_name = _parser(arguments)
    _check_command(parser, arguments)
    try:
        options, unknown = parser.parse_known_args(arguments)
    except SystemExit:
        with streams.writing():
            pass  # help may still be in the buffer
        raise
    if unknown:
        by_name[options.command].error(f"unknown arguments: {shlex.join(unknown)}")
    options.line = printable(shlex.join(["py-backends", *arguments]))
    if template := getattr(options, "launcher", None):
        os.environ[launcher.TEMPLATE] = template
    try:
        with interruptible():
            _options.take_sources(options)
            _outputs.check(options)
            code: int = options.run(options)
    except WrongRequest as error:
        by_name[options.command].error(str(error))
    return code


def _parser(arguments: Sequence[str] = ()) -> tuple[Parser, dict[str, Parser]]:
    """The parser, and by their names those of the commands: of all, or of the one that the arguments name.

    The list of all commands has no use for their options, which take most of the time to make.
    """
    names = commands.names()
    named = [name for name in arguments[:1] if name in names]
    only_listed = arguments[:1] in (["-h"], ["--help"])
    parser = Parser(
        prog="py-backends",
        description="The same kernels in many programming models, from plain Python to GPUs and MPI: checked, timed.",
        epilog="example: py-backends compare --kernel matmul --shape matmul=1024",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"py-backends {__version__}")
    added = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    return parser, {name: _command_parser(name, added, only_listed=only_listed) for name in named or names}


def _command_parser(name: str, added: argparse._SubParsersAction[Parser], *, only_listed: bool = False) -> Parser:
    """Add a command to those of the parser. One that is half written says so, and the others work."""
    try:
        command = import_module(f"{commands.__name__}.{name}.command")
        texts = {"help": command.HELP, "description": command.DESCRIPTION}
        example, add_options, run = command.EXAMPLE, command.add_options, command.run
    except (ImportError, AttributeError, SyntaxError) as error:
        parser = added.add_parser(name, help=f"cannot be used: {error}".replace("%", "%%"))
        parser.set_defaults(run=partial(_refuse, f"the command {name} cannot be used: {error}"))
        return parser
    parser = added.add_parser(name, **texts, epilog=f"example: py-backends {example}", allow_abbrev=False)
    if not only_listed:
        add_options(parser)
    parser.set_defaults(run=run)
    return parser


def _refuse(reason: str, _options: argparse.Namespace) -> NoReturn:
    raise WrongRequest(reason)


def _check_command(parser: Parser, arguments: Sequence[str]) -> None:
    """Report a missing or unknown command. The message suggests the nearest one."""
    names = commands.names()
    if not arguments:
        parser.error(f"name a command: {', '.join(names)}")
    name = arguments[0]
    if name not in names and not name.startswith("-"):
        parser.error(f"unknown command {name!r}: {hint(name, names)}")


if __name__ == "__main__":
    sys.exit(main())
