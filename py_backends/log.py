"""What processes of ours write to standard output and error, in memory without a name: no writer waits for a reader."""

from __future__ import annotations

import fcntl
import os
import weakref

_END, _LONGEST_LINE = 1 << 16, 500
_FULL = 1 << 20
"""After so many bytes the log starts again, since a kernel may print in every launch."""


class Log:
    """The output of some processes. Only its end is of interest.

    descriptor: what they have as standard output and error.
    """

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("py-backends-log")
        self._finalizer = weakref.finalize(self, os.close, self.descriptor)
        # Each process appends to it.
        fcntl.fcntl(self.descriptor, fcntl.F_SETFL, os.O_APPEND)

    def trim(self) -> None:
        """Empty it if it is large."""
        if os.fstat(self.descriptor).st_size > _FULL:
            os.ftruncate(self.descriptor, 0)

    def lines(self) -> list[str]:
        """Its last lines, without empty ones. Of a long line it is the end."""
        size = os.fstat(self.descriptor).st_size
        end = os.pread(self.descriptor, _END, max(0, size - _END)).decode(errors="replace")
        return [line.strip()[-_LONGEST_LINE:] for line in end.splitlines() if line.strip()]

    def close(self) -> None:
        """Close our descriptor."""
        self._finalizer()
