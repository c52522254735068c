"""NumPy: one call for the whole array, into compiled loops and BLAS. The baseline of every comparison."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from py_backends import contract
from py_backends.backend import _blas
from py_backends.contract import Buffer, Launch, Target
from py_backends.kernel_text import KernelText
from py_backends.number_formats import DTYPES


class Backend(contract.Backend):
    baseline = True
    library = True
    dtypes = DTYPES
    preference = 1

    def targets(self) -> list[Target]:
        return [Target("cpu", version=f"NumPy {np.__version__}, {_blas.name()}")]

    def open(self, target: str, threads: int) -> contract.Device:
        return Device(threads)


class Device(contract.HostDevice):
    """Runs with at most `threads` threads of BLAS. NumPy always adds in one thread."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        # Not limited if the pool already has that many, so that a launch need not change it.
        self._limited = any(usual != threads for usual in _blas.LIMIT.without())
        if self._limited:
            with _blas.LIMIT.at(threads):
                granted = max(pool.num_threads for pool in _blas.pools())
            if granted != threads:
                self.note = f"NumPy's BLAS uses {granted} threads where {threads} are asked for"
                self.obeys_threads = granted < threads
        elif not _blas.pools() and threads < (os.cpu_count() or 1):
            self.note = "the number of threads of NumPy's BLAS cannot be set"
            self.obeys_threads = False

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        kernel = getattr(text.load(), text.kernel)

        @np.errstate(all="ignore")  # infinities are valid results here
        def launch(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            kernel(*text.shaped(buffers, sizes), *sizes)

        def launch_limited(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            with _blas.LIMIT.at(self._threads):
                launch(buffers, sizes)

        return launch_limited if self._limited else launch
