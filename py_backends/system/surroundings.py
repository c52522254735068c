"""What a user's machine and process let in, and what is made in its place: docs/develop/surroundings.md lists both."""

from __future__ import annotations

import ctypes
import os
import site
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import py_backends
from py_backends.system import cache_folder
from py_backends.system.signals import children_are_waited_for

OF_WORKERS = {"OMP_THREAD_LIMIT": str(2**31 - 1), "OMP_DYNAMIC": "false"}
"""Else a row, or the ceiling beside it, could have fewer threads than it says."""
OF_COMPILERS = {"LC_ALL": "C", "LANGUAGE": "C"}
"""They speak English: what tells an error is found by a word."""


def environment(additional: Mapping[str, str]) -> dict[str, str]:
    """That of a process of ours: the caller's, with what is needed beside it.

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


@contextmanager
def opening() -> Iterator[None]:
    """Within, a library is loaded in the caller's process. Afterwards the thread may run where it might before.

    Where a variable such as OMP_PROC_BIND asks for bound threads, OpenMP's runtimes bind the thread that loads them,
    for good. All that it starts later would share one CPU. A driver may start a compiler, and ask how it ended. The
    threads that a library starts compute as the one does that loads it.
    """
    before = os.sched_getaffinity(0)
    try:
        with children_are_waited_for(), arithmetic():
            yield
    finally:
        if os.sched_getaffinity(0) != before:
            os.sched_setaffinity(0, before)


@contextmanager
def comparing() -> Iterator[None]:
    """Within, inputs are rounded and results judged as IEEE 754 has it, and a wrong output may hold anything."""
    with children_are_waited_for(), np.errstate(all="ignore"), arithmetic():
        yield


def has_arithmetic() -> bool:
    """Whether this thread computes as IEEE 754 has it: with subnormal numbers, and rounding to nearest.

    Libraries built with -ffast-math switch subnormal numbers off in the thread that loads them, and in all that it
    starts. This asks no library, since every call of a kernel asks it.
    """
    return sys.float_info.min * 0.5 > 0.0 and 1.0 + _BELOW_HALF_A_STEP == 1.0 == 1.0 - _BELOW_HALF_A_STEP


_BELOW_HALF_A_STEP = 2.0**-60


@contextmanager
def arithmetic() -> Iterator[None]:
    """Within, this thread and those that it starts compute as IEEE 754 has it (C11, 7.6.4: `fesetenv`)."""
    standard, before = ctypes.c_void_p(-1), ctypes.create_string_buffer(_LARGER_THAN_ANY_ENVIRONMENT)
    _of_c.fegetenv(before)
    _of_c.fesetenv(standard)
    try:
        yield
    finally:
        _of_c.fesetenv(before)


try:
    _of_c = ctypes.CDLL("libm.so.6")
except OSError:  # another C library has it all in one
    _of_c = ctypes.CDLL(None)
_LARGER_THAN_ANY_ENVIRONMENT = 256
"""Bytes. An `fenv_t` of glibc has 32 on x86-64 and 8 on 64-bit Arm, where FE_DFL_ENV is the pointer -1 as well."""
