"""Options that commands share, and parsers of their values."""

from __future__ import annotations

import argparse
import math
import re
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from py_backends.errors import WrongRequest
from py_backends.limits import LARGEST_SEED, LARGEST_SIZE, MOST_THREADS, seconds
from py_backends.number_formats import DTYPES
from py_backends.ranks import launcher
from py_backends.system.files import printable

ALL = "all"
PICTURES = ("png", "svg")
"""Files of pictures. The libraries that draw them come with an extra."""
RESULT_FILES = ("json", "csv", "markdown")
VIEW_FILES = ("json", *PICTURES)
"""Files that every command with a picture writes."""
WHAT = ("kernel", "backend", "target", "variant", "dtype")
HOW = ("threads", "launcher", "seed", "budget", "cache")
COMPARISON = (*WHAT, "shape", *HOW)
"""The options of commands that run a comparison: what it runs, at which shapes, and how."""
FIRST_TARGETS = "all; only the first of several for one device"
"""What the help says of --target where every target of a device would take too long."""
_LONGEST_MESSAGE = 800


class Parser(argparse.ArgumentParser):
    """Reports an error in one line. argparse would print the usage too."""

    def error(self, message: str) -> NoReturn:
        one_line = printable(" ".join(message.split()))
        if len(one_line) > _LONGEST_MESSAGE:  # a name may have thousands of letters; keep the reason after it
            one_line = f"{one_line[: _LONGEST_MESSAGE // 2]}…{one_line[-_LONGEST_MESSAGE // 2 :]}"
        self.exit(2, f"{self.prog}: error: {one_line} (try {self.prog} --help)\n")


def add(parser: argparse.ArgumentParser, *names: str, **defaults: Any) -> None:
    """Add options that commands share: those in `COMPARISON`, `VIEW_FILES` and so on.

    defaults: by the name of an option, the default that is this command's own.
    """
    for name in names:
        how = _OPTIONS[name]
        default = defaults.get(name, _IN_WORDS.get(name, how.get("default")))
        shown = {"help": how["help"].format(default), "default": None if name in _IN_WORDS else default}
        parser.add_argument(f"--{name}", **how | shown)
        if name == "kernel":
            what = "a folder with further sources of the kernel, such as openmp.cpp (repeatable)"
            parser.add_argument("--sources", type=Path, metavar="FOLDER", action="append", default=[], help=what)


def take_sources(options: argparse.Namespace) -> None:
    """Make the sources of --sources known. Raises WrongRequest where it is not clear whose they are."""
    for folder in getattr(options, "sources", ()):
        from py_backends import registry

        if not options.kernel or len(options.kernel) != 1:
            raise WrongRequest("--sources has sources of one kernel: name it by --kernel")
        registry.add_sources(folder, *options.kernel)


def names_in(text: str) -> list[str]:
    """Parse names separated by commas, each once."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise argparse.ArgumentTypeError(f"names are separated by single commas, not as in {text!r}")
    return list(dict.fromkeys(names))


def kernels_in(text: str) -> list[str]:
    """Parse names of kernels, and paths of their folders, separated by commas."""
    from py_backends import folders, registry

    names = [text] if folders.is_one(text) else names_in(text)
    try:
        return list(dict.fromkeys(map(registry.kernel_named, names)))
    except WrongRequest as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _shape(text: str) -> tuple[str, tuple[int | float, ...]]:
    """A kernel and its sizes. Behind them may stand its numbers, some of which are real."""
    match = re.fullmatch(rf"(\w+)=({_NUMBER}(?:x{_NUMBER})*)", text, re.ASCII)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"a shape is written vecadd=1000000 or matmul=1000x777x513, with sizes from 0 up, not {text!r}"
        )
    sizes = match[2].split("x")
    # Counting digits first: Python refuses to convert numbers of thousands of digits.
    if any(_WHOLE.fullmatch(size) and (len(size.lstrip("-0")) > 13 or int(size) > LARGEST_SIZE) for size in sizes):
        raise argparse.ArgumentTypeError(f"a size is at most 2^40 = {LARGEST_SIZE}")
    return match[1], tuple(int(size) if _WHOLE.fullmatch(size) else float(size) for size in sizes)


_WHOLE = re.compile(r"-?\d+", re.ASCII)
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
"""A size, or a real number, as people write them."""


def whole_number(text: str, least: int, most: float) -> int:
    """An integer within these bounds."""
    # Python refuses to read more than 4,300 digits.
    if re.fullmatch(r"\d{1,4000}", text, re.ASCII) is None or not least <= int(text) <= most:
        upper = f" to {most}" if math.isfinite(most) else " up"
        raise argparse.ArgumentTypeError(f"takes a whole number from {least}{upper}, not {text!r}")
    return int(text)


def _sizes(text: str) -> list[int]:
    return [_size(each) for each in names_in(text)]


def _launcher(text: str) -> str:
    try:
        launcher.words(text)
    except WrongRequest as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


_size = partial(whole_number, least=1, most=LARGEST_SIZE)
_names: Any = {"type": names_in, "metavar": "NAMES", "help": "names, separated by commas, or all (default: {})"}
_OPTIONS: dict[str, dict[str, Any]] = {
    "kernel": {**_names, "type": kernels_in, "help": "names, or paths of folders, separated by commas (default: {})"},
    "backend": _names,
    "target": _names,
    "variant": _names,
    "dtype": {**_names, "default": "float32", "help": f"{', '.join(DTYPES)} or all (default: {{}})"},
    "shape": {
        "type": _shape,
        "metavar": "KERNEL=SIZES",
        "action": "append",
        "help": "{}, matmul=1024 (all three); repeatable",
    },
    "sizes": {"type": _sizes, "metavar": "N,N", "help": "sizes of all dimensions, separated by commas"},
    "from": {"type": _size, "metavar": "N", "dest": "first", "help": "the smallest power of two (default: 64)"},
    "to": {
        "type": _size,
        "metavar": "N",
        "dest": "last",
        "help": "the largest power of two (default: what memory and budget allow)",
    },
    "threads": {
        "type": partial(whole_number, least=1, most=MOST_THREADS),
        "metavar": "N",
        "help": "threads of every CPU backend (default: all)",
    },
    "launcher": {
        "type": _launcher,
        "metavar": "TEMPLATE",
        "help": 'the command that starts the ranks of mpi, such as "srun -n {{ranks}}" (default: mpiexec)',
    },
    "seed": {
        "type": partial(whole_number, least=0, most=LARGEST_SEED),
        "metavar": "N",
        "default": 1,
        "help": "seed of the inputs (default: {})",
    },
    "budget": {"type": seconds, "metavar": "SECONDS", "help": "time for the whole run (default: {:g})"},
    "cache": {
        "choices": ("hot", "cold"),
        "default": "hot",
        "help": "cold: flush caches before every launch (default: {})",
    },
    **{kind: {"type": Path, "metavar": "FILE", "help": f"write the results as {kind} too"} for kind in RESULT_FILES},
    **{
        kind: {"type": Path, "metavar": "FILE", "help": "draw a picture (needs the extra pictures)"}
        for kind in PICTURES
    },
}
"""The options that commands share, as argparse takes them. A help has a place for its default."""
_IN_WORDS = {
    "kernel": "vecadd,matmul",
    "backend": ALL,
    "target": ALL,
    "variant": "tuned, else lecture",
    "shape": "vecadd=1000000, matmul=1000x777x513 (M x N x K)",
}
"""The defaults that only the help names: without the option a command gets None."""
