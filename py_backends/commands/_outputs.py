"""The files that options name. They are checked before anything runs, and written at the end."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from py_backends.commands._options import PICTURES, RESULT_FILES
from py_backends.errors import WrongRequest
from py_backends.system import streams
from py_backends.system.files import check_writable, printable, real_path, write_whole, written

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console

    from py_backends.results.report import Report


def check(options: argparse.Namespace) -> None:
    """Before anything runs, check that the named files can be written and differ."""
    kinds = (*RESULT_FILES, *PICTURES)
    paths = {kind: path for kind in kinds if (path := getattr(options, kind, None))}
    for kind, path in paths.items():
        if kind in PICTURES:
            _check_picture(kind, path)
        check_writable(path)
    if len(set(map(real_path, paths.values()))) < len(paths):
        *others, last = (f"--{kind}" for kind in paths)
        raise WrongRequest(f"{', '.join(others)} and {last} name the same file: name one for each")


def _check_picture(kind: str, path: Path) -> None:
    if path.suffix.lower() != f".{kind}":
        raise WrongRequest(f"--{kind} takes a file name that ends in .{kind}, not {printable(path)}")
    from py_backends.display import style

    style.check_library()


def show_view(
    report: Report,
    draw: Callable[[Report], Figure],
    print_view: Callable[[Report, Console], None],
    options: argparse.Namespace,
) -> int:
    """Write the requested files, print the view, and return the exit code."""
    return show_written(report, print_view, written=write_view(report, draw, options))


def show_written(report: Report, print_report: Callable[[Report, Console], None], *, written: bool) -> int:
    """Print results, and return the exit code. `written`: whether the requested files are there."""
    from py_backends.display import console
    from py_backends.system.signals import let_go

    let_go()
    with console.output() as out:
        print_report(report, out)
    return report.exit_code() if written else report.exit_code() or 1


def write_results(report: Report, options: argparse.Namespace) -> bool:
    """Write the results to --json, --csv and --markdown, of those that the command has.

    Returns False if a file could not be written. A failure of one does not stop the others.
    """
    from py_backends.display import files

    texts = {"json": type(report).to_json, "csv": files.csv_text, "markdown": files.markdown_text}
    named = [(path, text) for kind, text in texts.items() if (path := getattr(options, kind, None))]
    done = [written(path, partial(_write, text, report)) for path, text in named]
    return all(done)


def _write(text: Callable[[Report], str], report: Report, path: Path) -> None:
    write_whole(path, text(report))


def write_view(report: Report, draw: Callable[[Report], Figure], options: argparse.Namespace) -> bool:
    """Write the results and their picture to --json, --png and --svg. Returns False if a file could not be written.

    Each failure is one line on standard error. If there is nothing to draw, the line says what is missing.
    """
    from py_backends.display import style

    done = [write_results(report, options)]
    pictures = [path for path in (options.png, options.svg) if path]
    if pictures:
        try:
            figure = draw(report)
        except ValueError as error:  # too few results, or a value that matplotlib cannot draw
            streams.complain(f"no picture: {printable(error)}")
            return False
        done += [written(path, partial(style.save, figure)) for path in pictures]
    return all(done)
