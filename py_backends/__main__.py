"""The command line: reads what is asked for, has the harness do it and the report show it.

What a command needs is imported when it runs: help and usage errors come at once.
"""

from __future__ import annotations

import argparse
import difflib
import errno
import io
import math
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from py_backends import __version__
from py_backends.harness.interruption import interruptible, let_go

if TYPE_CHECKING:
    from py_backends._contract import KernelText
    from py_backends.harness.compare import Progress
    from py_backends.harness.results import Report

_ALL = "all"
_LARGEST_SIZE = 2**40
_WITH_RESUME = {"--resume", "--budget", "--json", "--csv", "--markdown"}
_NOBODY_LOOKS = {errno.EPIPE: 1, errno.EIO: 130}
"""Exit codes where the reader of a pipe, `head` for instance, has seen enough, and where the terminal was closed."""


class UsageError(Exception):
    """What was asked for cannot be done; says in one line what to do instead."""


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, where argparse would print the usage too."""

    def error(self, message: str) -> NoReturn:
        one_line = " ".join(message.split())
        self.exit(2, f"{self.prog}: error: {one_line} (try {self.prog} --help)\n")


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


def compare(options: argparse.Namespace) -> int:
    """Run the comparison, or what is missing of one, write its files and print its tables."""
    if options.resume:
        _check_resume(options)
    paths = [path for path in (options.json, options.csv, options.markdown) if path]
    for path in paths:
        _check_writable(path)
    if len(set(paths)) < len(paths):
        raise UsageError("--json, --csv and --markdown name one file: name one for each")
    from py_backends.report import table

    with _usage_errors(), _progress() as progress:
        report = _resumed(options, progress) if options.resume else _compared(options, progress)
    written = _write_results(report, options)
    let_go()
    with table.output() as out:
        table.print_report(report, out)
    return report.exit_code() if written else report.exit_code() or 1


def _compared(options: argparse.Namespace, progress: Progress | None) -> Report:
    from py_backends.harness.compare import compare as run
    from py_backends.harness.plan import DTYPES

    return run(
        kernels=_names(options.kernel),
        backends=_names(options.backend),
        targets=_names(options.target),
        variants=options.variant,
        dtypes=DTYPES if options.dtype == [_ALL] else options.dtype,
        shapes=_shapes(options.shape),
        threads=options.threads,
        seed=options.seed,
        **({} if options.budget is None else {"budget": options.budget}),
        cache=options.cache,
        progress=progress,
        command=options.line,
    )


def _resumed(options: argparse.Namespace, progress: Progress | None) -> Report:
    from py_backends.harness.resume import resume

    return resume(options.resume, options.budget, progress, options.line)


def _check_resume(options: argparse.Namespace) -> None:
    """The file says what was asked for; the results go into it, where no other is named."""
    given = {word.partition("=")[0] for word in shlex.split(options.line) if word.startswith("--")}
    if unfit := sorted(given - _WITH_RESUME):
        raise UsageError(f"--resume takes what was asked for from {options.resume}: leave out {', '.join(unfit)}")
    options.json = options.json or options.resume


def doctor(options: argparse.Namespace) -> int:
    """Say what this machine has, and what would bring the rest."""
    if options.json:
        _check_writable(options.json)
    from py_backends.harness import doctor as harness
    from py_backends.harness import machine
    from py_backends.harness.results import write_whole
    from py_backends.report import doctor as report
    from py_backends.report import table

    found = harness.backends()
    written = True
    if options.json:
        text = report.doctor_json(found, machine.describe())
        written = _written(options.json, partial(write_whole, text=text))
    with table.output() as out:
        report.print_doctor(found, out)
    return 0 if written else 1


def show(options: argparse.Namespace) -> int:
    """Print a kernel's texts side by side."""
    from py_backends.report import table
    from py_backends.report.show import print_texts

    with _usage_errors():
        texts = _texts(options.kernel, _names(options.backend), _names(options.variant), options.variant == [_ALL])
    with table.output() as out:
        print_texts(texts, out)
    return 0


def diff(options: argparse.Namespace) -> int:
    """Compare two result files row by row."""
    from py_backends.harness.diff import diff as compared
    from py_backends.harness.results import Report
    from py_backends.report import table
    from py_backends.report.diff import print_difference

    with _usage_errors():
        difference = compared(Report.read(options.old), Report.read(options.new))
    with table.output() as out:
        print_difference(difference, out)
    return int(options.fail_on == "slower" and difference.is_worse())


def _texts(kernel: str, backends: list[str] | None, variants: list[str] | None, all_variants: bool) -> list[KernelText]:
    """The texts to show: of each backend the preferred variant, those named, or all."""
    from py_backends import _discovery

    _discovery.problem(kernel)
    shown: list[KernelText] = []
    for backend in backends or _discovery.backend_names():
        _discovery.known(backend, _discovery.backend_names(), "backend")
        texts = _discovery.kernel_texts(kernel, backend)
        chosen = variants or (list(texts) if all_variants else list(texts)[:1])
        shown += [texts[variant] for variant in chosen if variant in texts]
    for variant in variants or ():
        _discovery.known(variant, _discovery.variant_names(), "variant")
    if not shown:
        raise UsageError(f"none of these backends has such a variant of {kernel}: --variant all shows what there is")
    return shown


def _parser() -> tuple[Parser, dict[str, Parser]]:
    parser = Parser(
        prog="py-backends",
        description="The same kernels in every parallel programming model that Python can reach: checked and timed.",
        epilog="example: py-backends compare --kernel matmul --shape matmul=1024",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"py-backends {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    made = {
        "compare": _compare_parser(commands),
        "doctor": _doctor_parser(commands),
        "show": _show_parser(commands),
        "diff": _diff_parser(commands),
    }
    return parser, made


def _compare_parser(commands: argparse._SubParsersAction[Parser]) -> Parser:
    parser = commands.add_parser(
        "compare",
        help="run every kernel on every backend that this machine has; check, time, print a table",
        description="Runs the kernels on the same inputs everywhere, checks that all agree, and times each.",
        epilog="example: py-backends compare --kernel matmul --shape matmul=1000x777x513 --dtype all --json r.json",
        allow_abbrev=False,
    )
    parser.set_defaults(run=compare)
    for name, default in ("kernel", "all"), ("backend", "all"), ("target", "all"), ("variant", "tuned, else lecture"):
        text = f"names, separated by commas, or all (default: {default})"
        parser.add_argument(f"--{name}", type=_list, metavar="NAMES", help=text)
    parser.add_argument(
        "--dtype", type=_list, metavar="NAMES", default=["float32"], help="float32, float64 or all (default: float32)"
    )
    parser.add_argument(
        "--shape",
        type=_shape,
        metavar="KERNEL=SIZES",
        action="append",
        default=[],
        help="vecadd=1000000, matmul=1000x777x513 (M x N x K), matmul=1024 (all three); repeatable",
    )
    parser.add_argument("--threads", type=_threads, metavar="N", help="of every CPU backend (default: all)")
    parser.add_argument("--seed", type=_seed, metavar="N", default=1, help="of the inputs (default: 1)")
    parser.add_argument("--budget", type=_budget, metavar="SECONDS", help="for the whole comparison (default: 45)")
    parser.add_argument(
        "--cache", choices=("hot", "cold"), default="hot", help="cold: flush caches before every launch (default: hot)"
    )
    for name in ("json", "csv", "markdown"):
        parser.add_argument(f"--{name}", type=Path, metavar="FILE", help=f"write the results as {name} too")
    parser.add_argument(
        "--resume", type=Path, metavar="FILE", help="go on with what is missing in an interrupted run's --json FILE"
    )
    return parser


def _doctor_parser(commands: argparse._SubParsersAction[Parser]) -> Parser:
    parser = commands.add_parser(
        "doctor",
        help="every backend and target: there or not, device, version, the reason and the fix",
        description="Says which backends and targets this machine has, and what would bring the others.",
        epilog="example: py-backends doctor --json doctor.json",
        allow_abbrev=False,
    )
    parser.set_defaults(run=doctor)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the same as json")
    return parser


def _show_parser(commands: argparse._SubParsersAction[Parser]) -> Parser:
    parser = commands.add_parser(
        "show",
        help="a kernel's source in several programming models, side by side",
        description="Shows a kernel's source in the chosen backends and variants, side by side.",
        epilog="example: py-backends show matmul --backend openmp,cuda --variant lecture",
        allow_abbrev=False,
    )
    parser.set_defaults(run=show)
    parser.add_argument("kernel", metavar="KERNEL", help="matmul, for instance")
    for name, default in ("backend", "all"), ("variant", "tuned, else lecture"):
        text = f"names, separated by commas, or all (default: {default})"
        parser.add_argument(f"--{name}", type=_list, metavar="NAMES", help=text)
    return parser


def _diff_parser(commands: argparse._SubParsersAction[Parser]) -> Parser:
    parser = commands.add_parser(
        "diff",
        help="two result files, row by row: what became faster or slower, what came and went",
        description="Compares two runs row by row, by their speed-ups over the baseline: times of two runs drift.",
        epilog="example: py-backends diff old.json new.json --fail-on slower",
        allow_abbrev=False,
    )
    parser.set_defaults(run=diff)
    parser.add_argument("old", type=Path, metavar="OLD", help="written by compare --json")
    parser.add_argument("new", type=Path, metavar="NEW", help="written by a later one")
    parser.add_argument(
        "--fail-on",
        choices=["slower"],
        metavar="slower",
        help="end with 1 where a row is slower, or was right and timed and is not any more",
    )
    return parser


def _check_command(parser: Parser, commands: dict[str, Parser], arguments: Sequence[str]) -> None:
    """An unknown command is answered with the nearest one."""
    if not arguments:
        parser.error(f"name a command: {', '.join(commands)}")
    name = arguments[0]
    if name not in commands and not name.startswith("-"):
        near = difflib.get_close_matches(name, commands, n=1, cutoff=0.4)
        parser.error(f"unknown command {name!r}: " + (f"did you mean {near[0]!r}?" if near else ", ".join(commands)))


def _list(text: str) -> list[str]:
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


def _names(names: list[str] | None) -> list[str] | None:
    """What the harness takes: None for all of them."""
    return None if names in (None, [_ALL]) else names


def _shapes(given: Sequence[tuple[str, tuple[int, ...]]]) -> dict[str, list[tuple[int, ...]]]:
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


def _check_writable(path: Path) -> None:
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


def _write_results(report: Report, options: argparse.Namespace) -> bool:
    """Write the files that were asked for, each whether or not the others could be."""
    from py_backends.report import files

    writers = {options.json: files.write_json, options.csv: files.write_csv, options.markdown: files.write_markdown}
    written = [_written(path, partial(write, report)) for path, write in writers.items() if path]
    return all(written)


def _written(path: Path, write: Callable[[Path], None]) -> bool:
    """Write a file; one line on standard error where that fails."""
    try:
        write(path)
    except OSError as error:
        sys.stderr.write(f"py-backends: error: {path} was not written: {error.strerror or error}\n")
        return False
    return True


@contextmanager
def _usage_errors() -> Iterator[None]:
    """Unknown names and impossible shapes are wrong usage here."""
    from py_backends._contract import WrongRequest

    try:
        yield
    except WrongRequest as error:
        raise UsageError(str(error)) from error


@contextmanager
def _progress() -> Iterator[Progress | None]:
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


if __name__ == "__main__":
    sys.exit(main())
