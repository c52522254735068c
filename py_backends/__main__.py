"""The command line: finds the command that is asked for and runs it.

What a command needs is imported when it runs: help and usage errors come at once.
"""

from __future__ import annotations

import difflib
import errno
import io
import os
import shlex
import sys
from collections.abc import Sequence

from py_backends import __version__
from py_backends.commands import compare, diff, doctor, ladder, report, roofline, scaling, show, sweep, timeline
from py_backends.commands.arguments import Parser
from py_backends.commands.common import UsageError
from py_backends.harness.interruption import interruptible

_COMMANDS = (compare, doctor, show, diff, ladder, roofline, scaling, sweep, timeline, report)
_NOBODY_LOOKS = {errno.EPIPE: 1, errno.EIO: 130}
"""Exit codes where the reader of a pipe, `head` for instance, has seen enough, and where the terminal was closed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; SystemExit after help and wrong usage."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that has no µ shows a question mark
    parser, commands = _parser()
    _check_command(parser, commands, arguments)
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        commands[options.command].error(f"unknown arguments: {shlex.join(unknown)}")
    options.line = shlex.join(["py-backends", *arguments])
    try:
        with interruptible():
            code: int = options.run(options)
            sys.stdout.flush()
    except UsageError as error:
        commands[options.command].error(str(error))
    except OSError as error:
        if error.errno not in _NOBODY_LOOKS:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _NOBODY_LOOKS[error.errno]
    except KeyboardInterrupt:
        return 130
    return code


def _parser() -> tuple[Parser, dict[str, Parser]]:
    parser = Parser(
        prog="py-backends",
        description="The same kernels in Python, NumPy, C++, OpenMP, AVX, Numba, OpenCL, SYCL and CUDA: "
        "checked and timed.",
        epilog="example: py-backends compare --kernel matmul --shape matmul=1024",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"py-backends {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    made = [command.add(commands) for command in _COMMANDS]
    return parser, {each.prog.rpartition(" ")[2]: each for each in made}


def _check_command(parser: Parser, commands: dict[str, Parser], arguments: Sequence[str]) -> None:
    """An unknown command is answered with the nearest one."""
    if not arguments:
        parser.error(f"name a command: {', '.join(commands)}")
    name = arguments[0]
    if name not in commands and not name.startswith("-"):
        near = difflib.get_close_matches(name, commands, n=1, cutoff=0.4)
        parser.error(f"unknown command {name!r}: " + (f"did you mean {near[0]!r}?" if near else ", ".join(commands)))


if __name__ == "__main__":
    sys.exit(main())
