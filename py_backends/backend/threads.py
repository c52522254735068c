"""Python's threads: tasks of `concurrent.futures`, each of which calls NumPy for a part of the arrays."""

from __future__ import annotations

import contextlib
import os
import platform
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from itertools import cycle
from typing import Any

import numpy as np

from py_backends import contract
from py_backends.backend import _blas
from py_backends.contract import Buffer, Launch, Target
from py_backends.kernel_text import KernelText
from py_backends.number_formats import DTYPES


class Backend(contract.Backend):
    dtypes = DTYPES

    def targets(self) -> list[Target]:
        python = f"{platform.python_implementation()} {platform.python_version()}"
        return [Target("cpu", version=f"{python}, NumPy {np.__version__}")]

    def open(self, target: str, threads: int) -> contract.Device:
        return Device(threads)


class Device(contract.HostDevice):
    """Runs kernels that divide their work among `threads` threads, each on a CPU of its own.

    A kernel has two parameters before its arrays: an executor, and its number of threads. Within a task, BLAS has one.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._executor = self._new_executor()
        if not _blas.pools() and (os.cpu_count() or 1) > 1:
            self.note = "the number of threads of NumPy's BLAS cannot be set, so each task may have several"
            self.obeys_threads = False

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        kernel = getattr(text.load(), text.kernel)

        @np.errstate(all="ignore")  # infinities are valid results here
        def launch(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            if self._process != os.getpid():  # a forked child has none of the threads
                self._executor = self._new_executor()
            with _blas.LIMIT.at(1), self._executor.until_all_have_ended():
                kernel(self._executor, self._threads, *text.shaped(buffers, sizes), *sizes)

        return launch

    def _new_executor(self) -> _Executor:
        """An executor whose threads start with the tasks that first need them."""
        self._process = os.getpid()
        cpus = cycle(sorted(os.sched_getaffinity(0)))

        def begin() -> None:
            # Linux would often wake two of them on one CPU, and leave them there for longer than a task takes.
            with contextlib.suppress(OSError):  # a CPU that this process may no longer use
                os.sched_setaffinity(0, {next(cpus)})
            np.seterr(all="ignore")  # each thread has a mode of its own

        return _Executor(self._threads, "py-backends", begin)


class _Executor(ThreadPoolExecutor):
    """Knows which tasks the calling thread has submitted."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._of_thread = threading.local()

    def submit(self, /, *arguments: Any, **named: Any) -> Future[Any]:
        future = super().submit(*arguments, **named)
        self._of_thread.futures.append(future)  # `map` comes here, too
        return future

    @contextmanager
    def until_all_have_ended(self) -> Iterator[None]:
        """Within, the calling thread submits tasks. Whatever ends that, they write to its arrays no more afterwards."""
        self._of_thread.futures = list[Future[Any]]()
        try:
            yield
        finally:
            wait(self._of_thread.futures)
