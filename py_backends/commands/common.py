"""What commands share: comparisons to run, files to write, the progress bar."""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py_backends.commands import arguments
from py_backends.commands.arguments import ALL

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console

    from py_backends.harness.compare import Progress
    from py_backends.harness.plan import Request
    from py_backends.harness.results import Report

VIEW_FILES = ("json", "png", "svg")
"""The files that every command with a picture writes."""


class UsageError(Exception):
    """What was asked for cannot be done; says in one line what to do instead."""


def names(names: list[str] | None) -> list[str] | None:
    """What the harness takes: None for all of them."""
    return None if names in (None, [ALL]) else names


def dtypes(given: list[str]) -> Sequence[str]:
    """The dtypes that --dtype names."""
    from py_backends.harness.plan import DTYPES

    return DTYPES if given == [ALL] else given


def shapes(given: Sequence[tuple[str, tuple[int, ...]]]) -> dict[str, list[tuple[int, ...]]]:
    """The shapes asked for of each kernel; a single size stands for all its dimensions."""
    from py_backends import _discovery

    shapes: dict[str, list[tuple[int, ...]]] = {}
    for kernel, given_sizes in given:
        dimensions = _discovery.problem(kernel).dimensions
        sizes = given_sizes * len(dimensions) if len(given_sizes) == 1 else given_sizes
        if len(sizes) != len(dimensions):
            written = " x ".join(name.upper() for name in dimensions)
            raise UsageError(f"{kernel} has the dimensions {written}: give as many sizes, or one for all")
        if sizes not in shapes.setdefault(kernel, []):
            shapes[kernel].append(sizes)
    return shapes


def check_writable(path: Path) -> None:
    """Before anything runs for a minute: can the file be written at its end?"""
    if path.is_dir():
        raise UsageError(f"{path} is a folder: name a file")
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent} to write {path.name} in")
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}."):
            pass
    except OSError as error:
        raise UsageError(f"{path.parent} cannot be written to ({error.strerror}): name a file elsewhere") from error


def check_pictures() -> None:
    """Before anything runs: is there what draws pictures? The base installation has no pictures."""
    if importlib.util.find_spec("matplotlib") is None:
        from py_backends._install import pip_install

        raise UsageError(f"pictures need matplotlib: {pip_install('pictures')}")


def check_files(options: argparse.Namespace, *kinds: str) -> None:
    """Before anything runs: can the files be written that these options name, and is each of them another?"""
    if any(getattr(options, kind) for kind in kinds if kind in arguments.PICTURES):
        check_pictures()
    paths = [path for kind in kinds if (path := getattr(options, kind))]
    for path in paths:
        check_writable(path)
    if len(set(paths)) < len(paths):
        given = [f"--{kind}" for kind in kinds]
        raise UsageError(f"{', '.join(given[:-1])} and {given[-1]} name one file: name one for each")


def chosen(options: argparse.Namespace) -> dict[str, Any]:
    """What the harness takes of the names of backends, targets, variants and dtypes."""
    return {
        "backends": names(options.backend),
        "targets": names(options.target),
        "variants": options.variant,
        "dtypes": dtypes(options.dtype),
    }


def compared(options: argparse.Namespace) -> Report:
    """Run the comparison that these options ask for, with a progress bar."""
    from py_backends.harness.compare import compare

    with usage_errors(), progress() as shown:
        return compare(
            kernels=names(options.kernel),
            **chosen(options),
            shapes=shapes(options.shape),
            threads=options.threads,
            seed=options.seed,
            budget=options.budget,
            cache=options.cache,
            progress=shown,
            command=options.line,
        )


def run_timed(request: Request, options: argparse.Namespace) -> Report:
    """Run a comparison of which only rows with times are of use, with these options and a progress bar.

    Its results do not say what was asked for in names alone, so `--resume` does not take them.
    """
    from py_backends.harness.compare import checked_settings, run
    from py_backends.harness.plan import only_timed

    with usage_errors(), progress() as shown:
        settings = checked_settings(
            request, options.threads, options.seed, options.budget, options.cache, command=options.line
        )
        settings.pop("request")
        return run(request, settings, shown, only_timed)


def show_view(
    report: Report,
    draw: Callable[[Report], Figure],
    print_view: Callable[[Report, Console], None],
    options: argparse.Namespace,
) -> int:
    """Write the files that were asked for, print the view, and return the exit code."""
    from py_backends.harness.interruption import let_go
    from py_backends.report import table

    written = write_view(report, draw, options)
    let_go()
    with table.output() as out:
        print_view(report, out)
    return report.exit_code() if written else report.exit_code() or 1


def write_view(report: Report, draw: Callable[[Report], Figure], options: argparse.Namespace) -> bool:
    """Write the results and their picture to --json, --png and --svg; one line on standard error where that fails.

    Where there is nothing to draw, the line says what is missing.
    """
    from py_backends.report.files import write_json
    from py_backends.report.pictures import style

    done = [written(options.json, partial(write_json, report))] if options.json else []
    pictures = [path for path in (options.png, options.svg) if path]
    if pictures:
        try:
            figure = draw(report)
        except style.NothingToDraw as nothing:
            sys.stderr.write(f"py-backends: no picture: {nothing}\n")
            return False
        done += [written(path, partial(style.save, figure)) for path in pictures]
    return all(done)


def written(path: Path, write: Callable[[Path], None]) -> bool:
    """Write a file; one line on standard error where that fails."""
    try:
        write(path)
    except OSError as error:
        sys.stderr.write(f"py-backends: error: {path} was not written: {error.strerror or error}\n")
        return False
    return True


@contextmanager
def usage_errors() -> Iterator[None]:
    """Unknown names and impossible shapes are wrong usage here."""
    from py_backends._contract import WrongRequest

    try:
        yield
    except WrongRequest as error:
        raise UsageError(str(error)) from error


@contextmanager
def progress() -> Iterator[Progress | None]:
    """A bar on standard error, gone when done; none where that is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(24), TaskProgressColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    bar = Bar(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task("", total=1.0)

    class Shown:
        def update(self, done: float, total: float, text: str) -> None:
            bar.update(task, completed=done, total=total, description=text)

    bar.start()
    try:
        yield Shown()
    finally:
        with suppress(OSError):  # where the terminal was closed, results are still to be written
            bar.stop()
