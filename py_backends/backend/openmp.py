"""OpenMP: directives that divide loops among threads, which share memory."""

from __future__ import annotations

from py_backends import contract
from py_backends.backend import _cpu_kernels
from py_backends.contract import Target
from py_backends.number_formats import COMPILED


class Backend(contract.Backend):
    """Compiled with the extension, for the best instruction set that this CPU has."""

    dtypes = COMPILED
    preference = 3

    def targets(self) -> list[Target]:
        return [_cpu_kernels.cpu_target("openmp")]

    def open(self, target: str, threads: int) -> contract.Device:
        return _cpu_kernels.Device("openmp", _cpu_kernels.best_instruction_set("openmp"), threads)
