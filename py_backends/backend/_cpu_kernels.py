"""What the C++ backends share: kernels compiled ahead of time, once for each instruction set."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from py_backends import _compiled, contract
from py_backends.backend import _cpp_at_run_time
from py_backends.backend._cpp_at_run_time import Run
from py_backends.contract import Buffer, Launch, Shortcut, Target
from py_backends.errors import BackendUnavailable
from py_backends.kernel_text import KernelText
from py_backends.number_formats import COMPILED
from py_backends.source_head import digest
from py_backends.system import cpu

if TYPE_CHECKING:
    from py_backends._compiled.kernel_module import Kernel


class Backend(contract.Backend):
    """A backend with one target, `cpu`: compiled with the extension, for the best instruction set that this CPU has."""

    dtypes = COMPILED
    module: ClassVar[str]
    """The extension module."""
    parallel: ClassVar[bool]
    """Whether its kernels take the threads that they are given, or one."""

    def targets(self) -> list[Target]:
        try:
            instruction_set = best_instruction_set(self.module)
        except BackendUnavailable as unavailable:
            return [Target.missing("cpu", unavailable.reason, unavailable.fix)]
        return [Target("cpu", device=cpu.name(), version=f"{instruction_set}, {compiler()}")]

    def open(self, target: str, threads: int) -> contract.Device:
        return Device(self.module, best_instruction_set(self.module), threads if self.parallel else 1)


class Device(contract.HostDevice):
    """The CPU, running the kernels of one extension module for one instruction set."""

    deterministic = True  # each element is one thread's sum in one order

    def __init__(self, module: str, instruction_set: str, threads: int) -> None:
        self._module, self._kernels = module, _kernels(module)
        self._instruction_set = instruction_set
        self._threads = threads

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        """Look the kernel up, or compile it if it was not compiled ahead, or its source has changed since."""
        kernel: Run | None = self._ahead(text, dtype.name)
        if kernel is None:
            kernel = _cpp_at_run_time.prepared(text, self._module, self._instruction_set, dtype.name)
        threads = self._threads

        def launch(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            kernel(buffers, sizes, threads)

        return launch

    def shortcut(self, text: KernelText, dtypes: Sequence[str]) -> Shortcut | None:
        shapes, kernel = text.problem.size_of_each_dimension(), self._ahead(text, dtypes[0])
        if shapes is None or kernel is None or text.problem.largest_sizes:  # it would not refuse larger ones
            return None
        return kernel.shortcut(shapes, text.problem.in_place, self._threads, dtypes)

    def _ahead(self, text: KernelText, dtype: str) -> Kernel | None:
        """A kernel that was compiled ahead, from the source and all that it includes as they are.

        Such a kernel has one output, the dtype of its run, and whole numbers.
        """
        problem = text.problem
        if problem.outputs > 1 or problem.reals or not problem.one_dtype:
            return None
        found = self._kernels.get((text.kernel, text.variant, self._instruction_set, dtype))
        if found is None or text.package is not None or digest(text.path) != found[1]:
            return None
        return found[0]


def instruction_sets(module: str) -> list[tuple[str, str, bool]]:
    """The instruction sets of an extension module, best first: name, reason if missing, whether it is there.

    Raises BackendUnavailable if the module is missing.
    """
    sets: list[tuple[str, str, bool]] = _compiled.load(module).instruction_sets()
    return sets


def best_instruction_set(module: str) -> str:
    """The best instruction set that this CPU has. BackendUnavailable if the module is missing, or made for none."""
    best = next((name for name, _, there in instruction_sets(module) if there), None)
    if best is None:
        raise BackendUnavailable("it was compiled for other CPUs alone", "build it without -DPY_BACKENDS_ONLY")
    return best


def compiler() -> str:
    """The compiler of the extension modules, with its version."""
    return str(_compiled.build().get("compiler", "unknown compiler"))


@cache
def _kernels(module: str) -> dict[tuple[str, str, str, str], tuple[Kernel, str]]:
    """The kernels of an extension module with the hashes of their sources."""
    return {
        (kernel.kernel, kernel.variant, kernel.instruction_set, kernel.dtype): (kernel, kernel.sha256)
        for kernel in _compiled.load(module).kernels()
    }
