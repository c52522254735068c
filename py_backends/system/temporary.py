"""Temporary folders of workers and compilers. What they leave there is removed, whatever ends them or the harness."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import weakref
from functools import cache
from pathlib import Path
from threading import Lock

_NAME = "py-backends-workers-"
_LOCK = Lock()


def folder() -> Path | None:
    """A new folder for one worker or compiler, which `remove` removes; None where the system has no place for it."""
    try:
        with _LOCK:
            return Path(tempfile.mkdtemp(dir=_folder_of_process(os.getpid())))
    except OSError:  # a system that cannot be written to
        return None


def remove(folder: Path) -> None:
    """Remove a folder with all that is in it."""
    shutil.rmtree(folder, ignore_errors=True)


@cache
def _folder_of_process(process: int) -> Path:
    """The folder of this process, in which those of its workers are. It is gone with the process.

    The process holds a lock on it. After a process that was killed, the next one finds its folder without a lock, and
    removes it. (Numbers of processes would not tell: containers may share a folder and number them on their own.)
    """
    for left in Path(tempfile.gettempdir()).glob(f"{_NAME}*"):
        with contextlib.suppress(OSError):  # another process uses it, or it is somebody else's
            lock = _locked(left)
            remove(left)
            os.close(lock)
    made = Path(tempfile.mkdtemp(prefix=_NAME))
    try:
        _locked(made)  # for as long as the process lives
    except OSError:  # a file system without locks, or another process was quicker to remove it
        remove(made)
        raise
    weakref.finalize(_folder_of_process, _end, made, process)
    return made


def _locked(folder: Path) -> int:
    """A descriptor that holds the lock on a folder. Raises OSError where another has it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _end(folder: Path, process: int) -> None:
    if os.getpid() == process:  # a forked child has the object, but not the folder
        remove(folder)
