"""The part of CuPy that `cuda.py` uses, on a CPU. SYCL compiles the kernel after the prelude backend/_cuda_on_sycl.hpp.

Only programs that this package starts find it in place of CuPy, and only if there is no GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from py_backends import _compiled
from py_backends.backend import _sycl

_device = next(each for each in _sycl.devices("cpu").values() if each.is_cpu and _sycl.can_compile(each))
import dpctl.memory  # only now can its drivers be found

_compiler = _compiled.load("sycl_compiler")
_queue = dpctl.SyclQueue(_device)


class ndarray:  # noqa: N801  # as CuPy calls it
    """An array that kernels reach."""

    def __init__(self, shape: int, dtype: Any) -> None:
        memory = dpctl.memory.MemoryUSMShared(shape * np.dtype(dtype).itemsize, queue=_queue)
        self.on_host: np.ndarray[Any, Any] = np.ndarray(shape, dtype, memory)

    def get(self) -> np.ndarray[Any, Any]:
        """Its elements, once all kernels have ended."""
        _queue.wait()
        return self.on_host.copy()


def asarray(array: np.ndarray[Any, Any]) -> ndarray:
    """A copy of a NumPy array."""
    there = ndarray(array.size, array.dtype)
    there.on_host[:] = array
    return there


empty = ndarray


class RawKernel:
    """A kernel of CUDA C++, whose parameters are pointers first and then sizes."""

    def __init__(self, code: str, name: str) -> None:
        package = Path(_sycl.__file__).parent
        prelude = (package / "_cuda_on_sycl.hpp").read_text(encoding="utf-8")
        options = _sycl.standard_headers(Path(str(_compiler.__file__)).parent)
        (self._kernel,), *_ = _compiler.compile(_queue, prelude, "kernel.cu", code, [name], options)

    def __call__(self, grid: Sequence[int], block: Sequence[int], arguments: Sequence[Any]) -> None:
        addresses = [each.on_host.ctypes.data for each in arguments if isinstance(each, ndarray)]
        sizes = [int(each) for each in arguments if not isinstance(each, ndarray)]
        groups, group = ((*counts, 1, 1)[2::-1] for counts in (grid, block))  # SYCL's fastest dimension is the last
        _compiler.launch(_queue, self._kernel, addresses, sizes, groups, group)


def _properties(_: int) -> dict[str, Any]:
    return {"name": _device.name.strip().encode(), "multiProcessorCount": _device.max_compute_units}


cuda = SimpleNamespace(runtime=SimpleNamespace(getDeviceProperties=_properties), get_current_stream=lambda: None)
