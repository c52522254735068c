"""NVIDIA's cuBLAS, through CuPy: the library that people call for speed on these GPUs. It is a reference library."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from py_backends import contract
from py_backends.backend import _cupy, _nvidia_driver
from py_backends.contract import Buffer, Launch, Target
from py_backends.errors import BackendUnavailable
from py_backends.install import pip_install
from py_backends.kernel_text import KernelText
from py_backends.number_formats import COMPILED


class Backend(contract.Backend):
    library = True
    dtypes = COMPILED

    def targets(self) -> list[Target]:
        driver = _nvidia_driver.driver()
        if driver.reason is not None:
            return [Target.missing("nvidia", driver.reason, driver.fix)]
        try:
            return [replace(gpu, version=f"{gpu.version}, {_version()}") for gpu in _available(_cupy.targets())]
        except BackendUnavailable as missing:
            return [Target.missing(name, missing.reason, missing.fix) for name in driver.targets]

    def open(self, target: str, threads: int) -> contract.Device:
        return Gpu(_cupy.ordinal(target))


class Gpu(_cupy.Gpu):
    """One NVIDIA GPU, for calls of the library."""

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        kernel = getattr(text.load(), text.kernel)

        def launch(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            arrays = text.shaped([buffer.array for buffer in buffers], sizes)
            with self._gpu, _full_precision():
                kernel(*arrays, *sizes)

        return self.recorded(launch)


@contextmanager
def _full_precision() -> Iterator[None]:
    """Keep the library from rounding float32 to fewer bits (TF32), which is faster but computes something else."""
    from cupy.cuda import cublas, get_cublas_handle

    handle = get_cublas_handle()  # the handle of the calling thread and the current device
    before = cublas.getMathMode(handle)
    cublas.setMathMode(handle, cublas.CUBLAS_DEFAULT_MATH)
    try:
        yield
    finally:
        cublas.setMathMode(handle, before)


def _available(gpus: list[Target]) -> list[Target]:
    """The GPUs that CuPy can use. BackendUnavailable where there are none."""
    available = [gpu for gpu in gpus if gpu.available]
    if not available:
        raise BackendUnavailable(gpus[0].reason or "CuPy has no GPU", gpus[0].fix)
    return available


@cache
def _version() -> str:
    """The library's version. BackendUnavailable if CuPy does not find it, or it does not start."""
    fix = pip_install(_nvidia_driver.driver().extra)
    try:
        from cupy.cuda import cublas, get_cublas_handle

        number = cublas.getVersion(get_cublas_handle())
    except (ImportError, OSError, RuntimeError) as error:
        reason = next(filter(None, str(error).splitlines()), type(error).__name__)
        raise BackendUnavailable(f"cuBLAS does not work here: {reason.rstrip('.:')}", fix) from error
    return f"cuBLAS {number // 10000}.{number // 100 % 100}.{number % 100}"
