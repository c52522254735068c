"""Options that commands share, and parsers of their values."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn, TypeAlias

from py_backends.errors import WrongRequest
from py_backends.harness.files import printable
from py_backends.number_formats import DTYPES
from py_backends.ranks import launcher

ALL = "all"
_LARGEST_SIZE = 2**40
PICTURES = ("png", "svg")
"""Files of pictures. The libraries that draw them come with an extra."""
_LONGEST_MESSAGE = 800


class Parser(argparse.ArgumentParser):
    """Reports an error in one line. argparse would print the usage too."""

    def error(self, message: str) -> NoReturn:
        one_line = printable(" ".join(message.split()))
        if len(one_line) > _LONGEST_MESSAGE:  # a name may have thousands of letters; keep the reason after it
            one_line = f"{one_line[: _LONGEST_MESSAGE // 2]}…{one_line[-_LONGEST_MESSAGE // 2 :]}"
        self.exit(2, f"{self.prog}: error: {one_line} (try {self.prog} --help)\n")


Commands: TypeAlias = "argparse._SubParsersAction[Parser]"  # noqa: SLF001  # argparse has no public name for it
"""The object to which a command adds its parser."""


def add_command(commands: Commands, run: Callable[[argparse.Namespace], int], **words: str) -> Parser:
    """Add a command.

    run: takes its options and returns the exit code.
    words: its name, help, description and example.
    """
    example = f"example: py-backends {words['example']}"
    parser = commands.add_parser(
        words["name"], help=words["help"], description=words["description"], epilog=example, allow_abbrev=False
    )
    parser.set_defaults(run=run)
    return parser


def add_comparison(
    parser: Parser,
    budget: float,
    *,
    kernel: str = ALL,
    target: str = ALL,
    dtype: str = "float32",
    add_sizes: Callable[[Parser], None] | None = None,
) -> None:
    """Add the options of every command that runs a comparison.

    budget: the default, in seconds.
    kernel, target: the defaults as the help names them.
    dtype: the default.
    add_sizes: adds the options for the sizes. None: --shape.
    """
    add_names(parser, ("kernel", kernel), ("backend", ALL), ("target", target), ("variant", "tuned, else lecture"))
    add_dtype(parser, dtype)
    (add_sizes or add_shape)(parser)
    add_threads(parser)
    add_launcher(parser)
    add_seed(parser)
    add_budget(parser, budget)
    add_cache(parser)


def add_names(parser: Parser, *options: tuple[str, str]) -> None:
    """Add options that take names. `options`: pairs of a name, and the default as the help names it."""
    for name, default in options:
        text = f"names, separated by commas, or all (default: {default})"
        parser.add_argument(f"--{name}", type=names_in, metavar="NAMES", help=text)


def add_dtype(parser: Parser, default: str = "float32") -> None:
    """Add --dtype."""
    text = f"{', '.join(DTYPES)} or all (default: {default})"
    parser.add_argument("--dtype", type=names_in, metavar="NAMES", default=[default], help=text)


def add_shape(parser: Parser, examples: str = "vecadd=1000000, matmul=1000x777x513 (M x N x K)") -> None:
    """Add --shape. `examples`: for kernels that the command takes."""
    parser.add_argument(
        "--shape",
        type=_shape,
        metavar="KERNEL=SIZES",
        action="append",
        default=[],
        help=f"{examples}, matmul=1024 (all three); repeatable",
    )


def add_sizes(parser: Parser) -> None:
    """Add --sizes, --from (`first`) and --to (`last`)."""
    parser.add_argument("--sizes", type=_sizes, metavar="N,N", help="sizes of all dimensions, separated by commas")
    text = "the {} power of two (default: {})"
    parser.add_argument("--from", type=_size, metavar="N", dest="first", help=text.format("smallest", "64"))
    parser.add_argument(
        "--to", type=_size, metavar="N", dest="last", help=text.format("largest", "what memory and budget allow")
    )


def add_threads(parser: Parser) -> None:
    """Add --threads."""
    parser.add_argument("--threads", type=_threads, metavar="N", help="threads of every CPU backend (default: all)")


def add_launcher(parser: Parser) -> None:
    """Add --launcher."""
    text = 'the command that starts the ranks of mpi, such as "srun -n {ranks}" (default: mpiexec)'
    parser.add_argument("--launcher", type=_launcher, metavar="TEMPLATE", help=text)


def add_seed(parser: Parser) -> None:
    """Add --seed."""
    parser.add_argument("--seed", type=_seed, metavar="N", default=1, help="seed of the inputs (default: 1)")


def add_budget(parser: Parser, default: float) -> None:
    """Add --budget."""
    text = f"time for the whole run (default: {default:g})"
    parser.add_argument("--budget", type=seconds, metavar="SECONDS", default=default, help=text)


def add_cache(parser: Parser) -> None:
    """Add --cache."""
    parser.add_argument(
        "--cache", choices=("hot", "cold"), default="hot", help="cold: flush caches before every launch (default: hot)"
    )


def add_files(parser: Parser, *kinds: str) -> None:
    """Add an option for each kind of file, such as `json`."""
    for kind in kinds:
        text = "draw a picture (needs the extra pictures)" if kind in PICTURES else f"write the results as {kind} too"
        parser.add_argument(f"--{kind}", type=Path, metavar="FILE", help=text)


def names_in(text: str) -> list[str]:
    """Parse names separated by commas, each once."""
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


def seconds(text: str) -> float:
    """A time above 0."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 < found < math.inf:
        raise argparse.ArgumentTypeError(f"takes a number of seconds above 0, not {text!r}")
    return found


def whole_number(text: str, least: int, most: float) -> int:
    """An integer within these bounds."""
    if re.fullmatch(r"\d{1,18}", text, re.ASCII) is None or not least <= int(text) <= most:
        upper = f" to {most}" if math.isfinite(most) else " up"
        raise argparse.ArgumentTypeError(f"takes a whole number from {least}{upper}, not {text!r}")
    return int(text)


def _sizes(text: str) -> list[int]:
    return [_size(each) for each in names_in(text)]


def _size(text: str) -> int:
    return whole_number(text, 1, _LARGEST_SIZE)


def _threads(text: str) -> int:
    return whole_number(text, 1, math.inf)


def _launcher(text: str) -> str:
    try:
        launcher.words(text)
    except WrongRequest as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


def _seed(text: str) -> int:
    return whole_number(text, 0, math.inf)
