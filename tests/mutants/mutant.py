"""One mutant: a text with one change."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath

from tree_sitter import Node, Tree

from . import c_family, in_python
from .places import Change
from .texts import Context, Text

_LONGEST = 70


@dataclass(frozen=True)
class Mutant:
    """A change of a text.

    source: the line in which the change begins, without the space around it.
    number: which of several equal changes of equal lines in the file it is.
    """

    text: Text
    change: Change
    context: Context
    line: int
    source: str
    old: str
    number: int

    @property
    def backend(self) -> str:
        return self.text.backend

    @property
    def identifier(self) -> str:
        """Stays while the line does, wherever it moves to."""
        key = (self.text.file, self.change.kind, self.source, self.old, self.change.new, str(self.number))
        return f"{self.backend}-{hashlib.sha256(chr(0).join(key).encode()).hexdigest()[:8]}"

    @property
    def description(self) -> str:
        """What became of what, on one line; which of several equal changes of equal lines it is, from the second on."""
        new = self.change.new if self.change.new.strip(" ;") not in {"", "pass"} else "nothing"
        said = f"{_short(self.old)} -> {_short(new)}" if self.old else f"with {new.strip()}"
        return said if self.number == 1 else f"{said} #{self.number}"

    @property
    def content(self) -> bytes:
        """The file with the change."""
        content = self.text.content
        return content[: self.change.start] + self.change.new.encode() + content[self.change.end :]


def mutants_of(text: Text) -> list[Mutant]:
    """Every mutant of a text, in its order; each change once."""
    language = in_python if _is_python(text) else c_family
    root = _parsed(text).root_node
    found = language.changes(root) if text.users else language.waits(root)
    return with_changes(text, sorted(set(found), key=lambda change: (change.start, change.end, change.new)))


def with_changes(text: Text, changes: Iterable[Change]) -> list[Mutant]:
    """A mutant of a text for each of these changes, in the text's order."""
    content, root = text.content, _parsed(text).root_node
    lines = content.decode().split("\n")
    seen: Counter[tuple[str, ...]] = Counter()
    mutants = []
    for change in changes:
        line = content.count(b"\n", 0, change.start)
        source, old = lines[line].strip(), content[change.start : change.end].decode()
        seen[change.kind, source, old, change.new] += 1
        node = root.descendant_for_byte_range(change.start, max(change.start, change.end - 1))
        assert node is not None
        number = seen[change.kind, source, old, change.new]
        mutants.append(Mutant(text, change, _context(node, _is_python(text)), line + 1, source, old, number))
    return mutants


def _is_python(text: Text) -> bool:
    return text.file.endswith(".py")


def _parsed(text: Text) -> Tree:
    python = _is_python(text)
    return in_python.parsed(text.content) if python else c_family.parsed(text.content, PurePath(text.file).suffix)


def _context(node: Node, python: bool) -> Context:
    if python:
        return Context((), in_python.function_of(node), in_python.class_of(node))
    return Context(c_family.conditions(node), c_family.function_of(node))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."
