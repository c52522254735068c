"""NumPy: one call for the whole array, into compiled loops and BLAS. The baseline of every comparison."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import threadpoolctl

from py_backends import contract
from py_backends.contract import Buffer, Launch, Target
from py_backends.kernel_text import KernelText
from py_backends.number_formats import DTYPES


class Backend(contract.Backend):
    baseline = True
    library = True
    dtypes = DTYPES
    preference = 1

    def targets(self) -> list[Target]:
        return [Target("cpu", version=f"NumPy {np.__version__}, {_blas_name()}")]

    def open(self, target: str, threads: int) -> contract.Device:
        return Device(threads)


class Device(contract.HostDevice):
    """Runs with at most `threads` threads of BLAS. NumPy always adds in one thread."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        # Not limited if the pool already has that many, so that a launch need not change it.
        self._limited = any(usual != threads for usual in _LIMIT.without())
        if self._limited:
            with _LIMIT.at(threads):
                granted = max(pool.num_threads for pool in _blas_pools())
            if granted != threads:
                self.note = f"NumPy's BLAS uses {granted} threads where {threads} are asked for"
                self.obeys_threads = granted < threads
        elif not _blas_pools() and threads < (os.cpu_count() or 1):
            self.note = "the number of threads of NumPy's BLAS cannot be set"
            self.obeys_threads = False

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        kernel = getattr(text.load(), text.kernel)

        @np.errstate(all="ignore")  # infinities are valid results here
        def launch(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            kernel(*text.shaped(buffers, sizes), *sizes)

        def launch_limited(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            with _LIMIT.at(self._threads):
                launch(buffers, sizes)

        return launch_limited if self._limited else launch


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
            return self._before if self._holders else [pool.num_threads for pool in _blas_pools()]

    @contextmanager
    def at(self, threads: int) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: self._holders == 0 or self._threads == threads)
            if self._holders == 0:
                self._threads = threads
                self._before = [pool.num_threads for pool in _blas_pools()]
                for pool in _blas_pools():
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
        for pool, before in zip(_blas_pools(), self._before, strict=True):
            pool.set_num_threads(before)


_LIMIT = _ThreadLimit()
os.register_at_fork(after_in_child=_LIMIT.renew)


@cache
def _blas_pools() -> list[Any]:
    """The thread pools of the BLAS libraries that are loaded at the first call. NumPy's own comes with NumPy."""
    return list(threadpoolctl.ThreadpoolController().select(user_api="blas").lib_controllers)


def _blas_name() -> str:
    pools = _blas_pools()
    return f"{pools[0].internal_api} {pools[0].version}" if pools else "a BLAS of unknown name"
