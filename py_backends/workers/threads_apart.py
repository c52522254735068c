"""Moves threads that share a CPU apart, after their process was stopped.

When a stopped process goes on, Linux may put two of its threads on one CPU, and leave them there for tens of
milliseconds, though another CPU is idle. A process that is not stopped does not meet this.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Iterator
from pathlib import Path

_RUNNING = b"R"
_STATE, _PROCESSOR = 0, 36
"""Places of two fields behind the name of a thread in its `stat` (proc_pid_stat(5)): its state, and its CPU."""


def move_apart() -> None:
    """Move each running thread of this process that shares its CPU with another to a CPU that none of them has.

    The calling thread stays. So does a thread for which no CPU is left, or which may run nowhere else. Afterwards all
    may run where they could before.
    """
    taken = {ctypes.CDLL(None).sched_getcpu()}
    for thread, cpu in _others_that_run():
        with contextlib.suppress(OSError):  # it has ended
            taken.add(_move(thread, taken) if cpu in taken else cpu)


def _move(thread: int, taken: set[int]) -> int:
    """Move a thread to a CPU that is not taken, if there is one; to which."""
    allowed = os.sched_getaffinity(thread)
    cpu = min(allowed - taken, default=min(allowed))
    if cpu not in taken:
        os.sched_setaffinity(thread, {cpu})
        os.sched_setaffinity(thread, allowed)
    return cpu


def _others_that_run() -> Iterator[tuple[int, int]]:
    """The other threads that run or want to, each with its CPU."""
    for folder in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            if fields[_STATE] == _RUNNING and int(folder.name) != threading.get_native_id():
                yield int(folder.name), int(fields[_PROCESSOR])
