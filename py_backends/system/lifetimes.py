"""Processes that end with the one that started them, whatever ends that, and though they be stopped.

A process asks Linux for that by `end_with_parent`. Linux takes the *thread* that started it for its parent. So all of
them are started by one thread, which lives as long as its process.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_NAME = "py-backends-starter"
_lasting = ThreadPoolExecutor(1, _NAME)


def _renew() -> None:
    """Make a new thread in a forked child: it has the object, but not the thread."""
    global _lasting  # noqa: PLW0603  # each process needs its own
    _lasting = ThreadPoolExecutor(1, _NAME)


os.register_at_fork(after_in_child=_renew)


def in_lasting_thread(function: Callable[P, R], /, *arguments: P.args, **options: P.kwargs) -> Future[R]:
    """Call a function, which starts a process, in the thread that lives as long as this process."""
    return _lasting.submit(function, *arguments, **options)


def end_with_parent() -> None:
    """Ask Linux to kill this process when the thread that started it ends, even by SIGKILL."""
    set_parent_death_signal = 1  # PR_SET_PDEATHSIG in <linux/prctl.h>
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
