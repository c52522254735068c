"""How processes of ours are started: with this interpreter, and the same package as we."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

import py_backends


def command(module: str, *arguments: str) -> list[str]:
    """What runs a module."""
    return [sys.executable, "-P", "-m", module, *arguments]


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


def environment(additional: Mapping[str, str]) -> dict[str, str]:
    """Ours, with what is needed beside it; from a clone a process has to find the same package as we."""
    ours = {**os.environ, **additional}
    home = Path(py_backends.__file__).parent.parent
    if (home / "CMakeLists.txt").is_file():
        paths = [str(home), ours.get("PYTHONPATH", "")]
        ours["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    return ours
