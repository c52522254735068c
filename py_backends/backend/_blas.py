"""The number of threads of NumPy's BLAS, which belongs to the process: several backends and callers share it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import threadpoolctl


class _ThreadLimit:
    """The number of BLAS threads, which belongs to the process. Launches that want the same number share it.

    A launch that wants another number waits until those have ended. The last one restores the number from before. A
    launch without a limit does not wait, and uses the threads that there are.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._holders = 0
        self._threads = 0
        self._before: list[int] = []

    def without(self) -> list[int]:
        """The threads of each pool where nothing is limited."""
        with self._changed:
            return self._before if self._holders else [pool.num_threads for pool in pools()]

    @contextmanager
    def at(self, threads: int) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: self._holders == 0 or self._threads == threads)
            if self._holders == 0:
                self._threads = threads
                self._before = [pool.num_threads for pool in pools()]
                for pool in pools():
                    pool.set_num_threads(threads)
            self._holders += 1
        try:
            yield
        finally:
            with self._changed:
                self._holders -= 1
                if self._holders == 0:
                    self._restore()
                    self._changed.notify_all()

    def renew(self) -> None:
        """End it in a forked child, which has none of the threads that hold it."""
        self._changed = threading.Condition()
        if self._holders:
            self._holders = 0
            self._restore()

    def _restore(self) -> None:
        for pool, before in zip(pools(), self._before, strict=True):
            pool.set_num_threads(before)


LIMIT = _ThreadLimit()
os.register_at_fork(after_in_child=LIMIT.renew)


@cache
def pools() -> list[Any]:
    """The thread pools of the BLAS libraries that are loaded at the first call. NumPy's own comes with NumPy."""
    return list(threadpoolctl.ThreadpoolController().select(user_api="blas").lib_controllers)


def name() -> str:
    found = pools()
    return f"{found[0].internal_api} {found[0].version}" if found else "a BLAS of unknown name"
