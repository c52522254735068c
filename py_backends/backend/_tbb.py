"""TBB, from which oneDNN takes its threads: how many there are, and calls with fewer.

Its C++ functions are called by the names that a compiler gives them. Their arguments are those of oneTBB's headers,
whose layout is part of the library's binary interface (`libtbb.so.12`). Whoever loads oneDNN has loaded it.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Callable
from ctypes import CFUNCTYPE, POINTER, byref, c_bool, c_int, c_ssize_t, c_uint, c_void_p, pointer
from functools import cache
from typing import Any

from py_backends.backend import _wheels
from py_backends.errors import BackendUnavailable

_LIBRARY = "libtbb.so.12"
_AUTOMATIC, _NORMAL_PRIORITY, _WITH_TYPES_OF_CORES = -1, 2 * ((2**31 - 1) // 4), 1
"""task_arena::automatic, task_arena::priority::normal and core_type_support_flag in oneapi/tbb/task_arena.h."""


class _ArenaBase(ctypes.Structure):
    """tbb::task_arena_base."""

    _fields_ = [
        ("flags", c_ssize_t),
        ("state", c_int),
        ("arena", c_void_p),
        ("most_threads", c_int),
        ("reserved_slots", c_uint),
        ("priority", c_int),
        ("numa_node", c_int),
        ("core_type", c_int),
        ("threads_per_core", c_int),
    ]


_Call = CFUNCTYPE(c_bool, c_void_p)


class _Methods(ctypes.Structure):
    """The table of virtual functions of a tbb::delegate_base, up to the one that is called."""

    _fields_ = [("call", _Call)]


class _Delegate(ctypes.Structure):
    """tbb::delegate_base."""

    _fields_ = [("methods", POINTER(_Methods))]


@cache
def _tbb(name: str) -> Any:
    """A function of arenas. Raises OSError where there is no such library, AttributeError where it has no such one."""
    arena = "NS0_2d115task_arena_baseE"
    takes = {"max_concurrency": f"PK{arena}", "execute": f"R{arena}RNS2_13delegate_baseE"}
    return ctypes.CDLL(_LIBRARY)[f"_ZN3tbb6detail2r1{len(name)}{name}E{takes.get(name, f'R{arena}')}"]


class _Arena:
    """So many threads: the one that calls, and others."""

    def __init__(self, threads: int) -> None:
        settings = _NORMAL_PRIORITY, _AUTOMATIC, _AUTOMATIC, _AUTOMATIC
        self._base = _ArenaBase(_WITH_TYPES_OF_CORES, 0, None, threads, 1, *settings)
        self._terminate = _tbb("terminate")  # kept, since names of the module may be gone when the process ends
        _tbb("initialize")(byref(self._base))

    def __del__(self) -> None:
        self._terminate(byref(self._base))

    def run(self, call: Callable[[], None]) -> None:
        failed: list[BaseException] = []

        def attempt(_: int) -> bool:
            try:
                call()
            except BaseException as error:  # noqa: BLE001  # raised again below: C++ knows no exception of Python
                failed.append(error)
            return True

        _tbb("execute")(byref(self._base), byref(_Delegate(pointer(_Methods(_Call(attempt))))))
        if failed:
            raise failed[0]


_of_thread = threading.local()
"""The arenas of a thread, by their threads. In an arena that another thread uses, a call would wait for it."""


def load() -> None:
    """Let libraries of this process find TBB by its name alone, where a wheel brought it."""
    with contextlib.suppress(BackendUnavailable, OSError):
        ctypes.CDLL(str(_wheels.library("tbb", "TBB", _LIBRARY)), ctypes.RTLD_GLOBAL)


def most_threads() -> int:
    """As many as are taken by what is called here; 0 where nothing tells."""
    try:
        return int(_tbb("max_concurrency")(None))
    except (OSError, AttributeError):
        return 0


def limited_to(threads: int, call: Callable[[], None]) -> None:
    """Have what is called take no more than these threads of TBB. Raises what it raises.

    A limit of all the process (tbb::global_control) wakes a thread whenever it ends. This one looks for work in vain,
    on a core that another may need.
    """
    arenas: dict[int, _Arena] = _of_thread.__dict__.setdefault("arenas", {})
    if threads not in arenas:
        arenas[threads] = _Arena(threads)
    arenas[threads].run(call)
