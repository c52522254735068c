"""Intel's oneMKL: the library that people call for speed on this kind of CPU. It is a reference library."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from py_backends import contract, registry
from py_backends.backend import _mkl
from py_backends.contract import Buffer, Launch, Target
from py_backends.errors import BackendUnavailable
from py_backends.kernel_text import KernelText
from py_backends.number_formats import COMPILED

_WITHOUT_INTEGERS = tuple(each for each in COMPILED if each != "int8")
"""The formats on a CPU where MKL's sums of int8 are not exact."""


class Backend(contract.Backend):
    library = True
    dtypes = COMPILED
    obeys = ("MKL_THREADING_LAYER", "MKL_INTERFACE_LAYER")

    def targets(self) -> list[Target]:
        try:
            _mkl.library()
        except BackendUnavailable as unavailable:
            return [Target.missing("cpu", unavailable.reason, unavailable.fix)]
        taken = None if _mkl.integers_are_exact() else dict.fromkeys(registry.promised_kernels(), _WITHOUT_INTEGERS)
        return [Target("cpu", version=f"MKL {_mkl.version()}", dtypes=taken)]

    def open(self, target: str, threads: int) -> contract.Device:
        return Device(threads)


class Device(contract.HostDevice):
    """Runs with at most `threads` threads. Each calling thread has a limit of its own."""

    def __init__(self, threads: int) -> None:
        self._mkl = _mkl.library()
        self._threads = threads
        self.survives_fork = _mkl.survives_forks()
        before = self._mkl.MKL_Set_Num_Threads_Local(threads)
        granted = self._mkl.MKL_Get_Max_Threads()
        self._mkl.MKL_Set_Num_Threads_Local(before)
        if granted != threads:
            self.note = f"MKL uses {granted} threads where {threads} are asked for"
            self.obeys_threads = granted < threads

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        kernel = getattr(text.load(), text.kernel)
        limit, threads = self._mkl.MKL_Set_Num_Threads_Local, self._threads

        @np.errstate(all="ignore")  # infinities are valid results here
        def launch(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            before = limit(threads)  # 0 where the calling thread had no limit
            try:
                kernel(*buffers, *sizes)
            except ctypes.ArgumentError as error:
                # ctypes replaces whatever is raised while it converts an argument, and keeps only its words.
                if KeyboardInterrupt.__name__ in str(error):
                    raise KeyboardInterrupt from None
                raise
            finally:
                limit(before)

        return launch
