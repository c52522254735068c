"""Which slow tests a run of .ci/run has: those that need no backend, and those of some backends in turn.

    python tests/packaging/in_turn.py COUNT

Prints pytest's expression for run number COUNT, that of the commit. Eight runs in a row have the tests of all backends.
A shallow clone counts only the commits that it has. So its runs may have the same backends every time, but always some.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from py_backends import registry

TURNS = 8
"""Runs in a row that have all backends."""


def in_turn(names: Sequence[str], count: int) -> list[str]:
    """Those of the names whose turn it is in run number `count`."""
    turns = min(TURNS, len(names))
    return [name for place, name in enumerate(names) if place % turns == count % turns]


def slow_tests(names: Sequence[str], count: int) -> str:
    """The expression for what is slow, and needs one of those or none."""
    return f"slow and ({' or '.join(in_turn(names, count))} or not ({' or '.join(names)}))"


if __name__ == "__main__":
    print(slow_tests(registry.backend_names(), int(sys.argv[1])))
