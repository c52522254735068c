"""C++ in one thread without intrinsics: plain loops, as the compiler optimises them."""

from __future__ import annotations

from py_backends import contract
from py_backends.backend import _cpu_kernels
from py_backends.contract import Target
from py_backends.number_formats import COMPILED


class Backend(contract.Backend):
    """Compiled with the extension, for the best instruction set that this CPU has."""

    dtypes = COMPILED
    preference = 2

    def targets(self) -> list[Target]:
        return [_cpu_kernels.cpu_target("cpp")]

    def open(self, target: str, threads: int) -> contract.Device:
        return _cpu_kernels.Device("cpp", _cpu_kernels.best_instruction_set("cpp"))
