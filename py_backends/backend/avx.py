"""SSE, AVX2 and AVX-512 intrinsics: one instruction on many lanes; tuned kernels also use threads."""

from __future__ import annotations

from py_backends import contract
from py_backends.backend import _cpu_kernels
from py_backends.contract import Target
from py_backends.errors import BackendUnavailable
from py_backends.number_formats import DTYPES


class Backend(contract.Backend):
    """One target an instruction set, the best first; all are compiled with the extension."""

    dtypes = DTYPES

    def targets(self) -> list[Target]:
        try:
            sets = _cpu_kernels.instruction_sets("avx")
        except BackendUnavailable as unavailable:
            # Without the module, what the sets are called is known from here alone.
            return [Target.missing(name, unavailable.reason, unavailable.fix) for name in ("avx512", "avx2", "sse")]
        version = _cpu_kernels.compiler()
        return [
            Target(name, device=_cpu_kernels.cpu_name(), version=version)
            if there
            else Target.missing(name, f"this CPU lacks {needs}", "needs a CPU that has it")
            for name, needs, there in sets
        ]

    def open(self, target: str, threads: int) -> contract.Device:
        for name, needs, there in _cpu_kernels.instruction_sets("avx"):
            if name == target and not there:
                raise BackendUnavailable(f"this CPU lacks {needs}")
        return _cpu_kernels.Device("avx", target, threads)
