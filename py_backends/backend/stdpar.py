"""C++ standard parallelism: algorithms of the standard library, with policies that allow threads and vectors."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

from py_backends import _compiled, contract
from py_backends.backend import _cpu_kernels, _tbb, _wheels
from py_backends.contract import Launch, Target
from py_backends.kernel_text import KernelText


class Backend(_cpu_kernels.Backend):
    """Its module takes its threads from oneTBB, which has to be loaded first."""

    module = "stdpar"
    parallel = True

    def targets(self) -> list[Target]:
        _tbb.load()
        built = importlib.util.find_spec(f"{_compiled.__name__}.{self.module}") is not None
        if built and _tbb.most_threads() == 0:
            without = _wheels.missing("oneTBB", "stdpar", x86_64_only=True)
            return [Target.missing("cpu", without.reason, without.fix)]
        return super().targets()

    def open(self, target: str, threads: int) -> contract.Device:
        _tbb.load()
        return Device(self.module, _cpu_kernels.best_instruction_set(self.module), threads)


class Device(_cpu_kernels.Device):
    """Runs with at most `threads` threads, and with at most one for each core."""

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        launch = super().prepare(text, dtype)
        most = _tbb.most_threads()
        if self.note is None and self._threads > most:
            self.note = f"oneTBB uses {most} threads where {self._threads} are asked for"
        return launch
