"""Processes that share no memory and compute together by messages (MPI): how they start, get requests, and end."""

import os
import secrets
import tempfile
from pathlib import Path
from typing import NamedTuple

from py_backends.errors import BackendUnavailable

SOCKET = "ranks"
"""The name of the socket where the first rank listens, in a folder that it and its clients know."""
ENDINGS = "endings"
"""The name of the socket where the keeper of ranks listens, in the same folder."""
SERVED = "PY_BACKENDS_RANKS"
"""The variable that tells a command of ranks that were there before it, such as `2x1:NAME`."""


_LONGEST_PATH = 107 - len(f"/{ENDINGS}")
"""Linux takes 107 bytes for the path of a socket (unix(7))."""


def new_folder() -> Path:
    """Where ranks and their clients will meet: a folder in the temporary one, not yet made.

    Raises BackendUnavailable if its path is too long for a socket.
    """
    folder = Path(tempfile.gettempdir(), f"py-backends-{secrets.token_hex(6)}")
    if (size := len(os.fsencode(folder))) > _LONGEST_PATH:
        raise BackendUnavailable(
            f"the path of the ranks' folder has {size} bytes, and Linux takes {_LONGEST_PATH} for a socket there",
            "set TMPDIR to a folder with a shorter path",
        )
    return folder


class Served(NamedTuple):
    """Ranks that a launcher started together with this command.

    address: the socket where the first of them listens. It has an abstract name (unix(7)), which ends with its process:
        a launcher may kill that at any time, and would leave a file behind.
    """

    ranks: int
    threads: int
    address: str


def served() -> Served | None:
    """The ranks that were there before us; None where there are none."""
    shape, _, name = os.environ.get(SERVED, "").partition(":")
    if not name:
        return None
    ranks, _, threads = shape.partition("x")
    return Served(int(ranks), int(threads), f"\0{name}")
