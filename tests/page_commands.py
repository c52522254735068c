"""The commands that pages print, in blocks of shell and between backticks; and how a test runs one.

A page in another language has the commands of its page in English: `test_languages` holds it to that.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from commands import Finished, environment, run_python
from markdown_pages import inline, pages, tokens

from py_backends import __main__ as command_line
from py_backends import interpreter
from py_backends.ranks.engine import engine

OURS = set(command_line._parser()[1])
"""The commands of `py-backends`. Running text may leave out the program's name."""
_PROGRAMS = "py-backends|python|pytest|make|pip|mpirun|srun|cmake|docker|jupyter|sudo"
_PROGRAM = re.compile(rf"(?:\w+=\S+ )*(?:\.(?:venv/bin|ci)/[\w-]+|{_PROGRAMS})\s+\S")
_HERE_DOCUMENT = re.compile(r"(<<'(\w+)')\n.*?^\2$", re.DOTALL | re.MULTILINE)
WRITES = ("--json", "--csv", "--markdown", "--svg", "--png")
"""Options that name a file to write, and change nothing else."""


def all_commands() -> list[str]:
    """Each command of the English pages once, in their order."""
    texts = [page.read_text(encoding="utf-8") for page in pages() if not page.name.endswith(".ko.md")]
    return list(dict.fromkeys(command for text in texts for command in of(text)))


def of(text: str) -> Iterator[str]:
    """The commands of a page, each written in one way: without comments, and without the folder of the environment."""
    for token in tokens(text):
        if token.type in ("fence", "code_block") and (token.info == "sh" or _is_shell(token.info, token.content)):
            yield from map(_written, _lines(token.content))
    for token in inline(text):
        if token.type == "code_inline":
            first, _, others = token.content.partition(" ")
            if others and (first in OURS or _PROGRAM.match(token.content)):
                yield _written(shlex.split(f"py-backends {token.content}" if first in OURS else token.content))


def _is_shell(language: str, block: str) -> bool:
    return not language and bool(_PROGRAM.match(block))


def _lines(block: str) -> Iterator[list[str]]:
    """The words of its commands. A quotation may end in a later line."""
    line = ""
    for part in _HERE_DOCUMENT.sub(r"\1", block).splitlines():
        line += part
        try:
            words = shlex.split(line, comments=True)
        except ValueError:  # no closing quotation
            line += "\n"
            continue
        line = ""
        if words:
            yield words


def _written(words: Sequence[str]) -> str:
    line = re.sub(r"^((?:\w+=\S+ )*)\.venv/bin/", r"\1", shlex.join(words))
    return re.sub(r"^python -m py_backends ", "py-backends ", line)


def parted(command: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """The words of a command without the files that it writes; these, by their options."""
    words, files = shlex.split(command), {}
    for option in WRITES:
        if option in words[:-1]:
            at = words.index(option)
            files[option] = words[at + 1]
            del words[at : at + 2]
    return tuple(words), files


def covering(commands: Iterable[str]) -> list[str]:
    """Without those that another one covers: the same command, which writes more files."""
    parts = {command: parted(command) for command in commands}
    return [
        command
        for command, (words, files) in parts.items()
        if not any(words == other and set(files) < set(more) for other, more in parts.values())
    ]


def written(command: str) -> list[str]:
    """The files that a command writes."""
    words, files = parted(command)
    return [*files.values(), *(after for word, after in pairwise(words) if word in ("-o", ">"))]


def read(command: str) -> list[str]:
    """The results that a command reads."""
    return [name for name in re.findall(r"[\w/-]+\.json\b", command) if name not in written(command)]


def sequences(commands: Sequence[str]) -> list[list[str]]:
    """Commands, each followed by those that read what it has written first."""
    found = [[command] for command in commands]
    for reader in commands:
        writers = [each for each in found if each[0] != reader and set(read(reader)) & set(written(each[0]))]
        if writers:
            found.remove([reader])
            writers[0].append(reader)
    return found


def run(command: str, folder: Path, *, longest: float | None = None) -> Finished:
    """Run a command in a folder: where `longest` seconds are given in a process of its own, else those of ours here."""
    line, _, file = command.partition(" '>' ")
    words = shlex.split(line)
    if words[0] == "mpirun":
        ended = _run_ranks(int(words[2]), words[4:], folder)
    elif words[0] != "py-backends":
        ended = run_python(*(words[1:] if words[0] == "python" else ["-m", *words]), cwd=folder, longest=longest or 120)
    elif longest is not None:
        ended = run_python("-m", "py_backends", *words[1:], cwd=folder, longest=longest)
    else:
        ended = _run_here(words[1:], folder)
    if file:
        (folder / file).write_text(ended.stdout, encoding="utf-8")
    return ended


def _run_here(words: Sequence[str], folder: Path) -> Finished:
    """A process would take as long to start as many commands take."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)]
    with contextlib.chdir(folder), contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
        try:
            code = command_line.main(words)
        except SystemExit as end:
            code = int(end.code or 0)
    out, err = (stream.buffer.getvalue().decode() for stream in streams)  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(list(words), code, out, err)


def _run_ranks(ranks: int, words: Sequence[str], folder: Path) -> Finished:
    """By the mpirun that is found here, of a wheel for instance."""
    found = engine()
    command = [*found.command(ranks), *interpreter.command("py_backends", *words)]
    env = environment() | interpreter.environment(found.environment)
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=600, check=False)
