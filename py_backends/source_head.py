"""What a kernel's source tells the machine: what it declares in its head comment, and which files it includes.

CMake runs this file by itself, so it imports nothing of the package. What is declared stands at the end of the head
comment, below a line of its own:

    // Edges: work items past the last element do nothing.
    // ---
    // Work items: n, in groups of 256
    // Formats: float32, float64

Each declaration is a name, a colon and a value, which may go on in lines that are indented further.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
import sys
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

_BEGIN = "---"
_GOES_ON = "   "
INCLUDE = re.compile(r'^ *# *include "(.+?)".*$', re.MULTILINE)
"""The line by which a source includes a file of its own."""
_USUAL_FORMATS = "float32", "float64"


def declarations(text: str) -> list[tuple[str, str]]:
    """The names and values that a source declares, in their order. Raises ValueError for a line that is neither."""
    mark = "//" if text.startswith("//") else "#"
    head = takewhile(lambda line: line.startswith(mark), text.splitlines())
    lines = (line.removeprefix(mark) for line in head)
    for line in lines:
        if line.strip() == _BEGIN:
            break
    found: list[tuple[str, str]] = []
    for line in lines:
        name, colon, value = line.strip().partition(": ")
        if line.startswith(_GOES_ON) and found:
            found[-1] = found[-1][0], f"{found[-1][1]} {line.strip()}"
        elif colon:
            found.append((name, value))
        else:
            raise ValueError(
                f"unclear below {_BEGIN} in the head comment: {line.strip()!r}: "
                "write a name, a colon and a value, as in Work items: n, in groups of 256"
            )
    return found


def formats(declared: Sequence[tuple[str, str]], on: str | None = None) -> list[str] | None:
    """The number formats that a source declares: those on an instruction set, or those that hold on all; else None."""
    name = "Formats" if on is None else f"Formats on {on}"
    return next((value.split(", ") for each, value in declared if each == name), None)


def includes(source: Path) -> list[Path]:
    """The files that a source includes itself, by `#include "..."`, where they lie beside it as that says."""
    names = INCLUDE.findall(source.read_text(encoding="utf-8", errors="replace"))
    places = (Path(os.path.normpath(source.parent / name)) for name in names)
    return [place for place in places if place.is_file()]


def files_of(source: Path) -> list[Path]:
    """The file, and those that it includes, directly or through others, in a reader's order."""
    files = [source]
    for file in files:  # which grows meanwhile
        files += [each for each in dict.fromkeys(includes(file)) if each not in files]
    return files


def digest(source: Path) -> str:
    """A hash of a source and all that it includes, in hexadecimal."""
    each = (hashlib.sha256(file.read_bytes()).hexdigest() for file in files_of(source))
    return hashlib.sha256("".join(each).encode()).hexdigest()


def _formats_of_kernel(problem: Path) -> list[str]:
    """The number formats of a kernel, from the source of its problem; the usual ones if that says none."""
    tree = ast.parse(problem.read_text(encoding="utf-8")) if problem.exists() else ast.Module([], [])
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "dtypes" for target in node.targets):
            try:
                return list(ast.literal_eval(node.value))
            except ValueError as named:
                raise ValueError(f"{problem}: write the names of `dtypes` there, which is not run for CMake") from named
    return list(_USUAL_FORMATS)


def _compiled_for(source: Path, sets: Sequence[str], named_only: Sequence[str]) -> dict[str, list[str]]:
    """By instruction set, the formats in which a source is compiled ahead; without sets that it is not compiled for."""
    declared = declarations(source.read_text(encoding="utf-8"))
    on_all = formats(declared) or _formats_of_kernel(source.parent.parent / "problem.py")
    found = {each: formats(declared, each) or ([] if each in named_only else on_all) for each in sets}
    return {each: taken for each, taken in found.items() if taken}


def main(source: Path, sets: str, named_only: str) -> None:
    """Print for CMake a source's hash, the files to watch, and a line for each instruction set, with its formats.

    The lists are CMake's: `;` parts them, and in the lines of instruction sets a comma.
    """
    watched = [*files_of(source), *filter(Path.exists, [source.parent.parent / "problem.py"])]
    try:
        compiled_for = _compiled_for(source, sets.split(";"), named_only.split(";"))
    except ValueError as wrong:
        sys.exit(f"{source}: {wrong}")
    lines = [digest(source), ";".join(map(str, watched)), *(",".join([name, *of]) for name, of in compiled_for.items())]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
