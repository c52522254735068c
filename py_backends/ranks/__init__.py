"""Processes that share no memory and compute together by messages (MPI): how they start, get requests, and end."""

import os
from pathlib import Path
from typing import NamedTuple

SOCKET = "ranks"
"""The name of the socket where the first rank listens, in a folder that it and its clients know."""
SERVED = "PY_BACKENDS_RANKS"
"""The variable that tells a command of ranks that were there before it, such as `2x1:FOLDER`."""


class Served(NamedTuple):
    """Ranks that a launcher started together with this command."""

    ranks: int
    threads: int
    folder: Path


def served() -> Served | None:
    """The ranks that were there before us; None where there are none."""
    shape, _, folder = os.environ.get(SERVED, "").partition(":")
    if not folder:
        return None
    ranks, _, threads = shape.partition("x")
    return Served(int(ranks), int(threads), Path(folder))
