"""Descriptors that Linux makes, also for a Python that was built on a system too old to know them.

Such a Python lacks the functions in `os`, though the system it runs on has them.
"""

from __future__ import annotations

import ctypes
import os

_CLOSE_ON_EXEC = 1
"""MFD_CLOEXEC in <linux/memfd.h>."""
_PIDFD_OPEN = 434
"""The number of this system call, on every architecture."""


def unnamed_file(name: str) -> int:
    """A new, empty file in memory, which is gone with the last process that holds its descriptor.

    name: shown in /proc alone; several may have the same.

    Raises OSError where the process has too many open files.
    """
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name)
    return _checked(_library().memfd_create(name.encode(), _CLOSE_ON_EXEC))


def process_descriptor(number: int) -> int:
    """A process, which is readable as soon as that has ended. Raises ProcessLookupError where there is none."""
    if hasattr(os, "pidfd_open"):
        return os.pidfd_open(number)
    return _checked(_library().syscall(_PIDFD_OPEN, number, 0))


def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(descriptor: int) -> int:
    if descriptor < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return descriptor
