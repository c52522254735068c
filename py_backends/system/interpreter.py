"""How processes of ours are started: with this interpreter, and the same package as we."""

from __future__ import annotations

import os
import site
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

import py_backends
from py_backends.errors import BackendUnavailable
from py_backends.system import cache_folder


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


def environment(additional: Mapping[str, str]) -> dict[str, str]:
    """Ours, with what is needed beside it.

    A process has to find the same packages as we. Where no home folder is known, libraries keep what they
    have to keep in one of ours.
    """
    ours = {**os.environ, **additional}
    if paths := _found_by_path_alone():
        ours["PYTHONPATH"] = os.pathsep.join(filter(None, [*paths, ours.get("PYTHONPATH", "")]))
    if not _has_home() and (folder := cache_folder.find("home")):
        ours["HOME"] = str(folder)
    return ours


def _found_by_path_alone() -> list[str]:
    """Folders that a new interpreter would not look in: this package's, and those of packages that are not installed.

    Some programs have all packages on `sys.path` alone. Folders without a package's metadata, such as that of a script,
    are left out: what lies there may have the name of a module that we need.
    """
    home = Path(py_backends.__file__).parent.parent
    of_itself = {*map(Path, (sysconfig.get_path("stdlib"), *site.getsitepackages(), site.getusersitepackages()))}
    others = [each for each in sys.path if Path(each) not in of_itself and any(Path(each).glob("*.dist-info"))]
    return list(dict.fromkeys([*([] if home in of_itself else [str(home)]), *others]))


def _has_home() -> bool:
    try:
        return Path.home().is_absolute()
    except RuntimeError:
        return False
