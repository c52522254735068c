"""SSE, AVX2, AVX-512 and AMX intrinsics: one instruction on many lanes. Tuned kernels also use threads."""

from __future__ import annotations

from collections.abc import Mapping

from py_backends import contract
from py_backends.backend import _amx, _cpu_kernels
from py_backends.contract import Target
from py_backends.errors import BackendUnavailable
from py_backends.number_formats import COMPILED
from py_backends.system import cpu


class Backend(contract.Backend):
    """A target for each instruction set, the best first. All are compiled with the extension."""

    dtypes = COMPILED
    preference = 4

    def targets(self) -> list[Target]:
        names = "amx", "avx512", "avx2", "sse"
        try:
            found = {name: (why, there) for name, why, there in _cpu_kernels.instruction_sets("avx")}
        except BackendUnavailable as unavailable:
            return [Target.missing(name, unavailable.reason, unavailable.fix, _taken(name)) for name in names]
        compiler = _cpu_kernels.compiler()
        without = f"{compiler}, which compiled the extension, has no such instructions", False
        return [
            Target(name, device=cpu.name(), version=compiler, dtypes=_taken(name))
            if there
            else Target.missing(name, why, _amx.FIX if why.startswith("this CPU") else None, _taken(name))
            for name, (why, there) in ((name, found.get(name, without)) for name in names)
        ]

    def open(self, target: str, threads: int) -> contract.Device:
        for name, why, there in _cpu_kernels.instruction_sets("avx"):
            if name == target and not there:
                raise BackendUnavailable(why)
        return _cpu_kernels.Device("avx", target, threads)


def _taken(target: str) -> Mapping[str, tuple[str, ...]] | None:
    """The number formats that a target takes, if not all of the backend's."""
    return _amx.taken("avx") if target == "amx" else None
