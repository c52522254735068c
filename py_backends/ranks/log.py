"""What the output of ranks and their launcher says about how one ended."""

from __future__ import annotations

from py_backends.log import Log

_MOST_LINES = 3
_FATAL = "Fatal Python error: "
"""What `faulthandler` writes in a process that ends by a fault. What a launcher writes is not read. MPICH's launcher
has one number for how all ranks ended, including those that it killed."""
FIRST = "the first to end: "
"""The beginning of the keeper's line that says which rank was first."""


def told(log: Log) -> str:
    """The end of a sentence about an end: which rank ended, and how, or else the last lines of the log."""
    lines = log.lines()
    said = list(dict.fromkeys(line for line in lines if line.startswith("rank ")))
    first = [line.removeprefix(FIRST) for line in lines if line.startswith(FIRST)]
    if first and not said:
        said = [first[-1] + next((f": {line}" for line in lines if line.startswith(_FATAL)), "")]
    said = said or lines[-_MOST_LINES:]
    return f": {' / '.join(said)}" if said else ""
