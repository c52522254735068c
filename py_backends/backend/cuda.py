"""CUDA C++ through CuPy, on every NVIDIA GPU.

Without a GPU, the unchanged kernels are compiled for SYCL, after a prelude, and checked on the CPU.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from py_backends import contract
from py_backends.backend import _cupy, _nvidia_driver, _queues, _sycl
from py_backends.contract import Buffer, Launch, Target
from py_backends.errors import BackendUnavailable
from py_backends.install import pip_install
from py_backends.kernel_text import KernelText
from py_backends.number_formats import COMPILED, number_format
from py_backends.source_head import INCLUDE

if TYPE_CHECKING:
    import dpctl

_EMULATED = "emulated"
_WARP = 32
PRELUDE = "_cuda_on_sycl.hpp", "_cuda_functions_on_sycl.hpp"
"""What the emulation puts before a source."""
_OF_WARPS = re.compile(r"\b__(?:shfl|syncwarp|ballot|any_sync|all_sync)")
"""How the names of CUDA's functions begin by which the threads of a warp exchange numbers and wait for one another."""


class Backend(contract.Backend):
    dtypes = COMPILED

    def targets(self) -> list[Target]:
        driver = _nvidia_driver.driver()
        if driver.reason is not None:
            return [_emulated(f"{driver.reason} on this machine", driver.fix)]
        gpus = _cupy.targets()
        if any(gpu.available for gpu in gpus):
            return gpus
        emulated = _emulated(gpus[0].reason or "", gpus[0].fix)
        return [*gpus, emulated] if emulated.available else gpus

    def open(self, target: str, threads: int) -> contract.Device:
        return Emulation(_cpu(), threads) if target == _EMULATED else Gpu(_cupy.ordinal(target))


class Gpu(_cupy.Gpu):
    """One NVIDIA GPU, for kernels that CuPy compiles."""

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        stages, problem = text.stages("GPU"), text.problem
        kernels = self.compiled(
            with_includes(text), [f"{name}<{number_format(dtype).c}>" for name, _ in stages.kernels]
        )

        def launch(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            with self._gpu:
                for each in stages.launches(problem, dtype, buffers, sizes, self.scratch):
                    arguments = (*(buffer.array for buffer in each.buffers), *problem.scalars(each.sizes, dtype))
                    kernels[each.at](_nvidia_driver.grid(each.groups), each.group, arguments)

        return self.recorded(launch)


def with_includes(text: KernelText) -> str:
    """A source together with the files that it includes, for a compiler without an include path.

    Those files include no others. Errors name the file and line that they are in. A line whose file is missing stays,
    and the compiler says so.
    """

    def with_file(line: re.Match[str]) -> str:
        file = text.path.parent / line[1]
        if not file.is_file():
            return line[0]
        number = line.string[: line.end()].count("\n") + 1
        included = file.read_text(encoding="utf-8", errors="replace")  # other encodings may stand in comments
        return f'#line 1 "{file.name}"\n{included}\n#line {number + 1} "{text.path.name}"'

    return f'#line 1 "{text.path.name}"\n{INCLUDE.sub(with_file, text.text)}'


class Emulation(_sycl.Device):
    """A CPU in place of a GPU, with a work item for each thread and a work group for each block."""

    def _starts(self, text: KernelText, dtype: np.dtype[Any], names: Sequence[str]) -> list[_queues.Start]:
        prelude = "".join(Path(__file__).with_name(name).read_text(encoding="utf-8") for name in PRELUDE)
        exchanges = _OF_WARPS.search(with_includes(text)) is not None
        if exchanges and any(_divides_warps(items.group) for _, items in text.stages("GPU").kernels):
            raise BackendUnavailable(f"its emulation has no warps of several rows: make a block's width {_WARP}")
        # Beside those only tensor cores need warps. Few GPUs have those for float64, and their emulation is slow.
        macros = ["WARPS"] if dtype.itemsize < 4 or exchanges else []
        return list(map(_of_grid, self.compiled(text.path, dtype, names, prelude, macros)))


def _divides_warps(group: Sequence[int]) -> bool:
    """Whether a warp of CUDA goes on in the next row of a block, which no sub-group of SYCL does."""
    return math.prod(group[1:]) > 1 and group[0] % _WARP != 0


def _of_grid(start: _queues.Start) -> _queues.Start:
    """Starts a kernel of three dimensions, as CUDA's are, within CUDA's limits."""

    def start_grid(
        buffers: Sequence[Buffer], sizes: Sequence[Any], groups: Sequence[int], group: Sequence[int]
    ) -> _queues.Event:
        return start(buffers, sizes, _three(_nvidia_driver.grid(groups)), _three(group))

    return start_grid


def _three(counts: Sequence[int]) -> tuple[int, ...]:
    """CUDA's grids and blocks always have three dimensions."""
    return (*counts, 1, 1)[:3]


def _emulated(reason: str, fix: str | None) -> Target:
    """The emulation, because of `reason`, or why even that is missing."""
    try:
        cpu = _cpu()
    except BackendUnavailable as missing:
        return Target.missing(
            _EMULATED,
            f"{reason}, and the emulation of its kernels on the CPU is missing: {missing.reason}",
            f"on the CPU: {missing.fix}; on a GPU: {pip_install('cuda12')}" if missing.fix else fix,
        )
    return Target(_EMULATED, cpu.name.strip(), _sycl.version(cpu), reason, fix, emulated=True, just_in_time=True)


def _cpu() -> dpctl.SyclDevice:
    """The CPU as a device of SYCL. BackendUnavailable where there is none that can compile."""
    cpus = [device for device in _sycl.devices("cpu").values() if device.is_cpu and _sycl.can_compile(device)]
    if not cpus:
        raise _sycl.why_hidden() or BackendUnavailable("SYCL has no CPU that compiles kernels", pip_install("cpu"))
    _sycl.check(cpus[0])
    return cpus[0]
