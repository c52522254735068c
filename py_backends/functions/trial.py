"""Where a library may end this process, a child tries it first, under the same variables, folders and limits.

Some libraries end a process in place of an error: where they cannot load a part of themselves that a variable names, or
get no more memory or threads. That costs as much as a first call. So it is done only where there is such a variable or
limit, and once a process.
"""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from py_backends.errors import BackendUnavailable
from py_backends.system import interpreter, surroundings
from py_backends.system.signals import children_are_waited_for
from py_backends.wording import in_one_line, listed

IN_TRIAL = "PY_BACKENDS_IN_TRIAL"
"""The variable that a trial and its children have: they try nothing first."""
_WITHIN = 120.0
"""Seconds that a trial may take. SYCL's compiler takes 20 on a busy machine."""
_MEMORY, _THREADS = 2**34, 2**10
"""Limits of memory in bytes, and of the user's processes and threads, below which libraries may fail."""
_CHECKED = {"POCL_CACHE_DIR"}
"""Whose value the backend checks itself, and may set."""
_LINES = 2
"""How many lines of what it wrote last are told."""


def check(backend: str, obeys: Sequence[str]) -> None:
    """Raise BackendUnavailable if a backend's library ends a process that uses it here.

    obeys: the beginnings of the names of variables over whose values it may do so.
    """
    if IN_TRIAL in os.environ:
        return
    names = sorted(name for name in os.environ if name.startswith(tuple(obeys)) and name not in _CHECKED)
    settings, limits = [f"{name}={os.environ[name]}" for name in names], _low_limits()
    causes = (*settings, *(f"{name} {limit}" for name, limit in limits.items()))
    ended = _ended(backend, causes) if causes else None
    if ended is not None:
        advice = [*(f"unset {name}" for name in names), *(f"raise {name}" for name in limits)]
        raise BackendUnavailable(
            f"the library of {backend} ends the process with {listed(causes)}: {ended}", listed(advice, "or")
        )


def _low_limits() -> dict[str, int]:
    """The limits of this process that are so low that a library may fail over them, by the shell's names for them."""
    found = {}
    for name, which, least in (
        ("ulimit -v", resource.RLIMIT_AS, _MEMORY),
        ("ulimit -d", resource.RLIMIT_DATA, _MEMORY),
        ("ulimit -u", resource.RLIMIT_NPROC, _THREADS),
    ):
        limit, _ = resource.getrlimit(which)
        if limit != resource.RLIM_INFINITY and limit < least:
            found[name] = limit // 2**10 if least == _MEMORY else limit
    return found


@cache
@children_are_waited_for()
def _ended(backend: str, _surroundings: tuple[str, ...]) -> str | None:
    """What a process wrote last that uses a backend, if the backend has ended it; None if not."""
    command = interpreter.command("py_backends.functions.trial_child", backend, str(_address_space()))
    try:
        with subprocess.Popen(
            command,
            env=surroundings.environment({IN_TRIAL: "1"}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as child:
            try:
                output, errors = child.communicate(timeout=_WITHIN)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
                return f"no end after {_WITHIN:.0f} s"
            finally:
                if child.poll() is not None:
                    interpreter.remove_registration(child.pid)
    except OSError as error:
        return f"no process to try it in: {error.strerror}"
    if child.returncode == 0:
        return None
    wrote = (errors or output).decode(errors="replace")
    return in_one_line(wrote, _LINES) or f"it ended with {child.returncode}"


def _address_space() -> int:
    """The bytes of this process that a limit of its address space counts."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    return pages * resource.getpagesize()
