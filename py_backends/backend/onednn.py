"""Intel's oneDNN: frameworks for neural networks multiply with it on CPUs. It is a reference library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from py_backends import contract, registry
from py_backends.backend import _onednn
from py_backends.contract import Buffer, Launch, Target
from py_backends.errors import BackendUnavailable
from py_backends.kernel_text import KernelText


class Backend(contract.Backend):
    library = True
    dtypes = ("float32", "float16", "bfloat16", "int8")
    obeys = ("ONEAPI_DEVICE_SELECTOR", "CL_CONFIG_")

    def targets(self) -> list[Target]:
        try:
            _onednn.check()
            taken = tuple(dtype for dtype in self.dtypes if _onednn.takes(dtype))
        except BackendUnavailable as unavailable:
            return [Target.missing("cpu", unavailable.reason, unavailable.fix)]
        of_kernels = dict.fromkeys(registry.promised_kernels(), taken)
        return [Target("cpu", version=f"oneDNN {_onednn.version()}", dtypes=of_kernels)]

    def open(self, target: str, threads: int) -> contract.Device:
        return Device(threads)


class Device(contract.HostDevice):
    """Runs with at most `threads` threads."""

    survives_fork = False

    def __init__(self, threads: int) -> None:
        most = _onednn.most_threads()
        self._threads = threads if threads < most else None
        if most == 0:
            self.note, self.obeys_threads = "its number of threads cannot be set here", False
        elif threads > most:
            self.note = f"oneDNN uses {most} threads where {threads} are asked for"

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        kernel = getattr(text.load(), text.kernel)

        @np.errstate(all="ignore")  # infinities are valid results here
        def launch(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            if self._threads is None:
                kernel(*buffers, *sizes)
            else:
                _onednn.limited_to(self._threads, lambda: kernel(*buffers, *sizes))

        return launch
