"""The output of ranks and their launcher, and what it says about how one ended."""

from __future__ import annotations

import fcntl
import os
import sys
import weakref

from py_backends.system.descriptors import unnamed_file

_MOST_LINES, _LONGEST_LINE, _END = 3, 500, 1 << 16
_FATAL = "Fatal Python error: "
"""What `faulthandler` writes in a process that ends by a fault. What a launcher writes is not read. MPICH's launcher
has one number for how all ranks ended, including those that it killed."""
_SAYS_NOTHING = "=", "This typically refers to a problem", "Please see the FAQ page"
"""How lines of MPICH's launcher begin that are the same however its ranks ended."""
FIRST = "the first to end: "
"""The beginning of the keeper's line that says which rank was first."""
_FULL = 1 << 20
"""After so many bytes the log starts again, since a kernel may print in every launch."""


def say(line: str) -> None:
    """Write a line there, as a process whose errors go to it."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


class Log:
    """A log in unnamed memory, so that no writer waits for a reader."""

    def __init__(self) -> None:
        self.descriptor = unnamed_file("py-backends-ranks")
        os.set_inheritable(self.descriptor, False)
        weakref.finalize(self, os.close, self.descriptor)
        # Each process appends to it.
        fcntl.fcntl(self.descriptor, fcntl.F_SETFL, os.O_APPEND)

    def trim(self) -> None:
        """Empty it if it is large."""
        if os.fstat(self.descriptor).st_size > _FULL:
            os.ftruncate(self.descriptor, 0)

    def told(self) -> str:
        """The end of a sentence about an end: which rank ended, and how, or else the last lines of the log."""
        size = os.fstat(self.descriptor).st_size
        end = os.pread(self.descriptor, _END, max(0, size - _END)).decode(errors="replace")
        lines = [line.strip()[-_LONGEST_LINE:] for line in end.splitlines() if line.strip()]
        said = list(dict.fromkeys(line for line in lines if line.startswith("rank ")))
        first = [line.removeprefix(FIRST) for line in lines if line.startswith(FIRST)]
        if first and not said:
            said = [first[-1] + next((f": {line}" for line in lines if line.startswith(_FATAL)), "")]
        said = said or [line for line in lines if not line.startswith(_SAYS_NOTHING)][-_MOST_LINES:]
        return f": {' / '.join(said)}" if said else ""
