"""The mutants that compute the same as the text that they are of, each with the reason.

Those of a kernel are in kernels/KERNEL/equivalent.toml, those of what several kernels have in equivalent.toml here.

An entry is found again by the line that is changed and by the change, so that it survives edits elsewhere in the file:

    [[equivalent]]
    file = "kernels/matmul/tuned/avx.cpp"
    lines = ["constexpr int ahead = 240;"]
    changes = ["240 -> 241"]
    reason = "how far ahead a line is fetched changes no result"

Without `changes`, every change of those lines; with `kinds`, those of these kinds alone, where several kinds change the
same; with `backends`, of these backends alone, where several run a file. With `needs` in place of `reason`: it could be
told apart with that, which the suite has not.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .mutant import Mutant

_HERE = Path(__file__).parent
FILES = (_HERE / "equivalent.toml", *sorted((_HERE.parents[1] / "kernels").glob("*/equivalent.toml")))


@dataclass(frozen=True)
class Equivalent:
    """Changes of some lines of a file that change no result; any change, kind and backend, where none are named.

    reason: why they change none.
    needs: what it would take to see that they do; then there is no reason.
    """

    file: str
    lines: tuple[str, ...]
    reason: str = ""
    changes: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()
    needs: str = ""
    kinds: tuple[str, ...] = ()

    def matches(self, mutant: Mutant) -> bool:
        return (
            mutant.text.file == self.file
            and mutant.source in self.lines
            and (not self.changes or mutant.description in self.changes)
            and (not self.kinds or mutant.change.kind in self.kinds)
            and (not self.backends or mutant.backend in self.backends)
        )


class OutOfDate(ValueError):
    """An entry that matches nothing any more."""


def every() -> list[Equivalent]:
    """The entries of all files."""
    return [entry for path in FILES for entry in read(path)]


def read(path: Path) -> list[Equivalent]:
    """The entries of a file; ValueError where one lacks something or has something unknown."""
    entries = tomllib.loads(path.read_text(encoding="utf-8")).get("equivalent", [])
    try:
        found = [Equivalent(**_with_tuples(entry)) for entry in entries]
    except TypeError as error:
        raise ValueError(f"{path.name}: {error}") from error
    for entry in found:
        if bool(entry.reason) == bool(entry.needs):
            raise ValueError(f"{path.name}: {entry.lines[0]!r} has to have either a reason or needs")
    return found


def _with_tuples(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}


def reasons(mutants: Iterable[Mutant], entries: Sequence[Equivalent]) -> dict[str, str]:
    """Why a mutant is equivalent, by its identifier, of those that are."""
    chosen = [entry for entry in entries if entry.reason]
    return {each.identifier: entry.reason for each in mutants for entry in chosen[::-1] if entry.matches(each)}


def needs(mutants: Iterable[Mutant], entries: Sequence[Equivalent]) -> dict[str, str]:
    """What it would take to tell a mutant, by its identifier, of those for which that is not there."""
    chosen = [entry for entry in entries if entry.needs]
    return {each.identifier: f"needs {entry.needs}" for each in mutants for entry in chosen if entry.matches(each)}


def check(mutants: Sequence[Mutant], entries: Sequence[Equivalent]) -> None:
    """Raise OutOfDate, with what is to be mended, where a line, change, kind or backend of an entry matches none."""
    lost = []
    for entry in entries:
        of_file = [mutant for mutant in mutants if mutant.text.file == entry.file]
        matching = [mutant for mutant in of_file if entry.matches(mutant)]
        lost += [f"{entry.file}: no mutant of the line {line!r}" for line in entry.lines
                 if not any(mutant.source == line for mutant in matching)]  # fmt: skip
        lost += [f"{entry.file}: no change {change!r} of {entry.lines[0]!r}" for change in entry.changes
                 if not any(mutant.description == change for mutant in matching)]  # fmt: skip
        lost += [f"{entry.file}: no {kind} of {entry.lines[0]!r}" for kind in entry.kinds
                 if not any(mutant.change.kind == kind for mutant in matching)]  # fmt: skip
        lost += [f"{entry.file}: {entry.lines[0]!r} is not run by {backend}" for backend in entry.backends
                 if not any(mutant.backend == backend for mutant in matching)]  # fmt: skip
    if lost:
        raise OutOfDate("\n".join(lost))
