"""The output of ranks and their launcher, and what it says about how one ended."""

from __future__ import annotations

import fcntl
import os
import weakref

_MOST_LINES, _LONGEST_LINE, _END = 3, 500, 1 << 16
_FATAL = "Fatal Python error: "
"""What `faulthandler` writes in a process that ends by a fault. What a launcher writes of it is not read: MPICH's tells
by one number how all ranks ended, those too that it has killed."""
FIRST = "the first to end: "
"""How the line of a keeper begins that says who was."""
_FULL = 1 << 20
"""Bytes after which it begins anew: a kernel may print in every launch."""


class Log:
    """A log in memory without a name, so that no writer waits for a reader."""

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("py-backends-ranks")
        os.set_inheritable(self.descriptor, False)
        weakref.finalize(self, os.close, self.descriptor)
        # Each writes at its end, wherever that is by then.
        fcntl.fcntl(self.descriptor, fcntl.F_SETFL, os.O_APPEND)

    def trim(self) -> None:
        """Forget what is in it, where that is much."""
        if os.fstat(self.descriptor).st_size > _FULL:
            os.ftruncate(self.descriptor, 0)

    def told(self) -> str:
        """What it says of an end, to follow a sentence: which rank's, and how it ended; else its last lines."""
        size = os.fstat(self.descriptor).st_size
        end = os.pread(self.descriptor, _END, max(0, size - _END)).decode(errors="replace")
        lines = [line.strip()[-_LONGEST_LINE:] for line in end.splitlines() if line.strip()]
        said = list(dict.fromkeys(line for line in lines if line.startswith("rank ")))
        first = [line.removeprefix(FIRST) for line in lines if line.startswith(FIRST)]
        if first and not said:
            said = [first[-1] + next((f": {line}" for line in lines if line.startswith(_FATAL)), "")]
        said = said or lines[-_MOST_LINES:]
        return f": {' / '.join(said)}" if said else ""
