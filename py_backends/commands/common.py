"""What commands share: options and how they are read, files to write, the progress bar."""

from __future__ import annotations

import argparse
import math
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeAlias

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from py_backends.harness.compare import Progress
    from py_backends.harness.plan import Request
    from py_backends.harness.results import Report

ALL = "all"
_LARGEST_SIZE = 2**40


class UsageError(Exception):
    """What was asked for cannot be done; says in one line what to do instead."""


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, where argparse would print the usage too."""

    def error(self, message: str) -> NoReturn:
        one_line = " ".join(message.split())
        self.exit(2, f"{self.prog}: error: {one_line} (try {self.prog} --help)\n")


Commands: TypeAlias = "argparse._SubParsersAction[Parser]"  # noqa: SLF001  # argparse has no public name for it
"""To which a command adds its parser."""


def add_command(commands: Commands, run: Callable[[argparse.Namespace], int], **words: str) -> Parser:
    """Add a command: `run` gets its options and returns the exit code. `words`: name, help, description, example."""
    example = f"example: py-backends {words['example']}"
    parser = commands.add_parser(
        words["name"], help=words["help"], description=words["description"], epilog=example, allow_abbrev=False
    )
    parser.set_defaults(run=run)
    return parser


def add_names(parser: Parser, *options: tuple[str, str]) -> None:
    """Add options that take names, each with the words for its default."""
    for name, default in options:
        text = f"names, separated by commas, or all (default: {default})"
        parser.add_argument(f"--{name}", type=names_in, metavar="NAMES", help=text)


def add_dtype(parser: Parser, default: str = "float32") -> None:
    """Add --dtype."""
    text = f"float32, float64 or all (default: {default})"
    parser.add_argument("--dtype", type=names_in, metavar="NAMES", default=[default], help=text)


def add_shape(parser: Parser) -> None:
    """Add --shape."""
    parser.add_argument(
        "--shape",
        type=_shape,
        metavar="KERNEL=SIZES",
        action="append",
        default=[],
        help="vecadd=1000000, matmul=1000x777x513 (M x N x K), matmul=1024 (all three); repeatable",
    )


def add_sizes(parser: Parser) -> None:
    """Add --sizes, --from (`first`) and --to (`last`)."""
    parser.add_argument("--sizes", type=_sizes, metavar="N,N", help="of all dimensions, separated by commas")
    text = "of powers of two, the {} (default: {})"
    parser.add_argument("--from", type=_size, metavar="N", dest="first", help=text.format("smallest", "64"))
    parser.add_argument(
        "--to", type=_size, metavar="N", dest="last", help=text.format("largest", "by this machine's memory")
    )


def add_threads(parser: Parser) -> None:
    """Add --threads."""
    parser.add_argument("--threads", type=_threads, metavar="N", help="of every CPU backend (default: all)")


def add_seed(parser: Parser) -> None:
    """Add --seed."""
    parser.add_argument("--seed", type=_seed, metavar="N", default=1, help="of the inputs (default: 1)")


def add_budget(parser: Parser, default: float) -> None:
    """Add --budget; None where it was not given."""
    parser.add_argument("--budget", type=_budget, metavar="SECONDS", help=f"for the whole (default: {default:g})")


def add_cache(parser: Parser) -> None:
    """Add --cache."""
    parser.add_argument(
        "--cache", choices=("hot", "cold"), default="hot", help="cold: flush caches before every launch (default: hot)"
    )


def add_files(parser: Parser, *kinds: str) -> None:
    """Add an option for each kind of file, `json` for instance."""
    for kind in kinds:
        parser.add_argument(f"--{kind}", type=Path, metavar="FILE", help=f"write the results as {kind} too")


def names_in(text: str) -> list[str]:
    """Names that are separated by commas, each once."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise argparse.ArgumentTypeError(f"names are separated by single commas, not as in {text!r}")
    return list(dict.fromkeys(names))


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    match = re.fullmatch(r"(\w+)=(\d+(?:x\d+)*)", text, re.ASCII)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"a shape is written vecadd=1000000 or matmul=1000x777x513, with whole numbers from 0 up, not {text!r}"
        )
    # Counting digits first: Python refuses to convert numbers of thousands of digits.
    if any(len(size.lstrip("0")) > 13 or int(size) > _LARGEST_SIZE for size in match[2].split("x")):
        raise argparse.ArgumentTypeError(f"a size is at most 2^40 = {_LARGEST_SIZE}")
    return match[1], tuple(map(int, match[2].split("x")))


def _whole_number(text: str, least: int, most: float) -> int:
    if re.fullmatch(r"\d{1,18}", text, re.ASCII) is None or not least <= int(text) <= most:
        upper = f" to {most}" if math.isfinite(most) else " up"
        raise argparse.ArgumentTypeError(f"takes a whole number from {least}{upper}, not {text!r}")
    return int(text)


def _sizes(text: str) -> list[int]:
    return [_size(each) for each in names_in(text)]


def _size(text: str) -> int:
    return _whole_number(text, 1, _LARGEST_SIZE)


def _threads(text: str) -> int:
    return _whole_number(text, 1, math.inf)


def _seed(text: str) -> int:
    return _whole_number(text, 0, math.inf)


def _budget(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"takes a number of seconds above 0, not {text!r}")
    return seconds


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


def check_files(options: argparse.Namespace, *kinds: str) -> None:
    """Before anything runs: can the files be written that these options name, and is each of them another?"""
    paths = [path for kind in kinds if (path := getattr(options, kind))]
    for path in paths:
        check_writable(path)
    if len(set(paths)) < len(paths):
        given = [f"--{kind}" for kind in kinds]
        raise UsageError(f"{', '.join(given[:-1])} and {given[-1]} name one file: name one for each")


def run_view(request: Request, options: argparse.Namespace, budget: float) -> Report:
    """Run a comparison that only rows with times are of use to, with these options and a progress bar.

    Its results do not say what was asked for in names alone, so `--resume` does not take them. `budget`: where none
    was given.
    """
    from py_backends.harness.compare import checked_settings, run
    from py_backends.harness.plan import only_timed

    budget = options.budget or budget
    with usage_errors(), progress() as shown:
        settings = checked_settings(request, options.threads, options.seed, budget, options.cache, command=options.line)
        settings.pop("request")
        return run(request, settings, shown, only_timed)


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
