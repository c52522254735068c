"""`report`: makes one self-contained page from one or several result files."""

from __future__ import annotations

import argparse
import errno
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from py_backends.errors import WrongRequest
from py_backends.system import streams
from py_backends.system.files import check_writable, printable, real_path, write_whole, written

if TYPE_CHECKING:
    from py_backends.results.report import Report

_STANDARD_OUTPUT = Path("-")


HELP = "make one page from result files: tables, pictures, kernels side by side"
DESCRIPTION = (
    "Makes one self-contained page from result files, and compares the files of several machines or days. "
    "Needs the extra pictures."
)
EXAMPLE = "report results.json -o page.html"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument("results", type=Path, nargs="+", metavar="FILE", help="a file that --json of a command wrote")
    page = "the page to write; - for standard output"
    parser.add_argument("-o", "--output", type=Path, metavar="PAGE", required=True, help=page)


def run(options: argparse.Namespace) -> int:
    """Write the page."""
    if options.output != _STANDARD_OUTPUT:
        check_writable(options.output)
        if real_path(options.output) in map(real_path, options.results):
            raise WrongRequest(f"the page would replace the results in {options.output}: name another file")
    from py_backends.install import pip_install

    try:
        from py_backends.commands.report.page import page
    except ImportError as error:
        raise WrongRequest(f"a page needs more libraries ({error}): {pip_install('pictures')}") from error
    text = page(list(_read(options.results)))
    if options.output != _STANDARD_OUTPUT:
        return 0 if written(options.output, partial(write_whole, content=text)) else 1
    with streams.writing():
        if streams.was_closed():
            raise OSError(errno.EBADF, "it is closed")
        sys.stdout.buffer.write(text.encode())
    return 0


def _read(paths: list[Path]) -> list[tuple[str, Report]]:
    """The reports, each with the name of its file; with its path if two files have the same name."""
    from py_backends.results.report import Report

    paths = list(dict.fromkeys(paths))
    names = [path.name for path in paths]
    return [(printable(path.name if names.count(path.name) == 1 else path), Report.read(path)) for path in paths]
