"""The backend that one rank computes with: the preferred one on the host, by the registry and the contract."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from py_backends import registry
from py_backends.contract import Array, HostDevice, Target
from py_backends.errors import BackendUnavailable
from py_backends.functions.targets import targets_of
from py_backends.kernel_text import KernelText

OnArrays = Callable[..., None]
"""Computes a kernel on arrays of its shapes, inputs and then outputs. It takes the kernel's numbers by name."""


class LocalKernels:
    """Kernels of this process. Each is computed by the preferred backend of those that have it."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._devices: dict[tuple[str, str], HostDevice] = {}

    def prepare(self, kernel: str, dtype: np.dtype[Any]) -> tuple[OnArrays, str]:
        """A kernel for arrays, with its backend and target. Raises BackendUnavailable if there is none."""
        text, target = _preferred(kernel, dtype.name)
        device = self._opened(text.backend, target.name)
        launch, problem = device.prepare(text, dtype), text.problem

        def on_arrays(*arrays: Array, **numbers: Any) -> None:
            sizes = (*problem.sizes(*arrays[: len(problem.inputs)]), *{**problem.numbers, **numbers}.values())
            sizes = problem.rounded(sizes, dtype)
            launch([array.reshape(-1) for array in arrays], sizes)
            device.wait()

        return on_arrays, f"{text.backend} {target.name}"

    def _opened(self, backend: str, target: str) -> HostDevice:
        if (backend, target) not in self._devices:
            device = registry.backend(backend).open(target, self._threads)
            assert isinstance(device, HostDevice), "the preferred backend on the host computes there"
            self._devices[backend, target] = device
        return self._devices[backend, target]


def _preferred(kernel: str, dtype: str) -> tuple[KernelText, Target]:
    """The source and the target that a rank computes a kernel with, in a number format."""
    for backend in registry.preferred_on_host():
        for target in targets_of(backend):
            texts = registry.texts_in(dtype, kernel, backend, target)
            if texts and target.available and not target.emulated:
                return next(iter(texts.values())), target
    fix = f"add a source of {kernel} for numpy that takes {dtype}"
    raise BackendUnavailable(f"no backend computes {kernel} in {dtype} on the CPU of a rank", fix)
