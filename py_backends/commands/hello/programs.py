"""Finds the first programs of programming models, and splits them into steps. Each program is complete by itself.

A path is a registration: every hello/MODEL.* is such a program. Comments number its steps. A copy is run in which code
that marks the beginning of a step replaces its comment. So the program itself needs no such code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

PLACE = Path(__file__).parents[2] / "hello"
MARK = "\x1e"
"""Stands before the number of a step in a program's output. No program prints this character by itself."""
_STEP = re.compile(r"(?P<indent>\s*)(?://|#) (?P<number>\d+)\. (?P<text>.+)")
_COMMENT = re.compile(r"\s*(?://|#) +(.+)")


@dataclass(frozen=True)
class Step:
    """A numbered part of a program.

    number: from 1 on; 0 for the code before all steps.
    text: what it does, in plain English.
    first, code: the number of its first line, and its lines.
    """

    number: int
    text: str
    first: int
    code: tuple[str, ...]


@dataclass(frozen=True)
class Program:
    """A first program: a file whose first comments say what it shows, and have lines such as `Build: c++ ...`."""

    path: Path

    @property
    def model(self) -> str:
        return self.path.stem

    @cached_property
    def source(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def title(self) -> str:
        """The first comment of the file."""
        return _words(self.source.splitlines()[0])

    def said(self, name: str) -> str | None:
        """The value of `Build`, `Compiler`, `Library`, `Needs` or `Ranks` in the comments before all code, or None."""
        for line in self.source.splitlines():
            if not (words := _words(line)):
                return None
            if words.startswith(f"{name}: "):
                return words.removeprefix(f"{name}: ")
        return None

    @property
    def steps(self) -> list[Step]:
        return list(_steps(self.source.splitlines()))

    @property
    def marked(self) -> str:
        """The source, changed so that its output says which step printed it. Line numbers stay the same."""
        return "".join(f"{self._marked(line)}\n" for line in self.source.splitlines())

    def _marked(self, line: str) -> str:
        step = _STEP.fullmatch(line)
        if step is None:
            return line
        if self.path.suffix == ".py":
            # Every line gets the mark, since the lines of several ranks come in any order.
            prefix = f"{MARK}{step['number']}".encode("unicode_escape").decode()
            return f'{step["indent"]}print = __import__("functools").partial(__builtins__.print, "{prefix}")'
        return f'{step["indent"]}std::puts("\\036" "{step["number"]}");' if step["indent"] else line


def models() -> list[str]:
    """Every model that has a first program."""
    return sorted({path.stem for path in _files()})


def programs(model: str) -> list[Program]:
    """The programs of a model. Those in Python come first: they run here."""
    return [
        Program(path) for path in sorted(_files(), key=lambda path: path.suffix, reverse=True) if path.stem == model
    ]


def _files() -> list[Path]:
    return [path for path in PLACE.iterdir() if path.suffix in (".py", ".cpp")]


def _words(line: str) -> str:
    """The words of a comment line; empty for any other line."""
    comment = _COMMENT.fullmatch(line)
    return comment[1] if comment else ""


def _steps(lines: Sequence[str]) -> Iterator[Step]:
    number, text, first, code = 0, "", 1, list[str]()
    in_comment = True
    for at, line in enumerate(lines, 1):
        if step := _STEP.fullmatch(line):
            if any(map(str.strip, code)):
                yield Step(number, text, first, _trimmed(code))
            number, text, first, code, in_comment = int(step["number"]), step["text"], at + 1, [], True
        elif in_comment and (words := _words(line)):
            text, first = f"{text} {words}" if number else "", at + 1
        elif code or line.strip():
            code.append(line)
            in_comment = False
        else:
            first = at + 1
    yield Step(number, text, first, _trimmed(code))


def _trimmed(code: list[str]) -> tuple[str, ...]:
    """The lines without empty ones at the end."""
    while code and not code[-1].strip():
        code = code[:-1]
    return tuple(code)
