"""Which slow tests a run of .ci/run has: those of some backends in turn, and of the others those of some files.

    python tests/in_turn.py COUNT

Prints pytest's expression for run number COUNT, that of the commit. Eight runs in a row have all of them. A shallow
clone counts only the commits that it has. So its runs may have the same ones every time, but always some.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from zlib import crc32

from py_backends import registry

TURNS = 8
"""Runs in a row that have all backends, and all files."""
FILES = tuple(f"turn_{turn}" for turn in range(TURNS))
"""The markers of the tests of a file, one for each of so many runs in a row."""


def marker(path: str) -> str:
    """The marker of the tests of a file, by its path in the clone."""
    return FILES[crc32(path.encode()) % len(FILES)]


def in_turn(names: Sequence[str], count: int) -> list[str]:
    """Those of the names whose turn it is in run number `count`."""
    turns = min(TURNS, len(names))
    return [name for place, name in enumerate(names) if place % turns == count % turns]


def slow_tests(names: Sequence[str], count: int) -> str:
    """The expression for what is slow, and needs one of those, or none and lies in a file whose turn it is."""
    return (
        f"slow and ({' or '.join(in_turn(names, count))} or {FILES[count % len(FILES)]} and not ({' or '.join(names)}))"
    )


if __name__ == "__main__":
    print(slow_tests(registry.backend_names(), int(sys.argv[1])))
