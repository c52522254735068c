"""Starts processes of ours with this interpreter, and removes what they leave."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

from py_backends.errors import BackendUnavailable


def command(module: str, *arguments: str) -> list[str]:
    """What runs a module."""
    return [python(), "-P", "-m", module, *arguments]


def python() -> str:
    """The path of this interpreter, or of the one that its environment has: a program that embeds Python has none.

    Raises BackendUnavailable where there is no such file.
    """
    names = f"python{sys.version_info.major}.{sys.version_info.minor}", "python3"
    there = (path for name in names if (path := Path(sys.prefix, "bin", name)).is_file())
    found = sys.executable or next(map(str, there), None)
    if found is None:
        raise BackendUnavailable(
            "this process does not know its Python interpreter, which workers need", "set sys.executable to its path"
        )
    return found


@contextmanager
def without_fork_handlers() -> Iterator[None]:
    """Processes that `subprocess` starts within run no code of libraries before their own.

    Libraries with threads register handlers for a fork: they end their threads, or complain of a fork in another thread
    than the main one. `vfork`, which Python takes by default, calls none of them. But dpctl switches it off for the
    whole process, so that a debugger can follow.
    """
    with _SWITCHING:
        before = getattr(subprocess, _VFORK, True)
        setattr(subprocess, _VFORK, True)
        try:
            yield
        finally:
            setattr(subprocess, _VFORK, before)


def remove_registration(process: int) -> None:
    """Remove what a process of ours that has ended is registered by: one that is killed, or ends at once, leaves it."""
    if not Path("/proc", str(process)).exists():
        with suppress(OSError):
            Path(_REGISTERED.format(process=process, user=os.getuid())).unlink()


_REGISTERED = "/dev/shm/__KMP_REGISTERED_LIB_{process}_{user}"  # noqa: S108  # where Linux keeps what processes share
"""The file by which the OpenMP runtimes of Intel and LLVM see that a process has one of them already."""
_VFORK = "_USE_VFORK"
"""The switch, which Python's documentation of `subprocess` names."""
_SWITCHING = Lock()
