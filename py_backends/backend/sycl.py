"""SYCL through dpctl: kernels in C++, which Intel's SYCL runtime compiles when they are first needed.

Kernels are free functions, an extension of oneAPI to SYCL 2020 (sycl::ext::oneapi::experimental). They use the caller's
own memory if the device can reach it, else USM device memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from py_backends import caches, contract
from py_backends.backend import _device_names, _sycl
from py_backends.contract import Buffer, Launch, Target
from py_backends.errors import BackendUnavailable
from py_backends.kernel_text import KernelText
from py_backends.number_formats import DTYPES, number_format

if TYPE_CHECKING:
    import dpctl

_NO_SPIRV = "its driver does not take SPIR-V, to which SYCL source is compiled at run time"
_NEEDS_SPIRV = "needs a driver with the OpenCL extension cl_khr_il_program"


class Backend(contract.Backend):
    dtypes = DTYPES

    def targets(self) -> list[Target]:
        try:
            found = _sycl.devices("sycl")
        except BackendUnavailable as missing:
            return [Target.missing(_device_names.usual_cpu(), missing.reason, missing.fix)]
        return [_target(name, device) for name, device in found.items()]

    def open(self, target: str, threads: int) -> SyclDevice:
        found = _sycl.devices("sycl")
        if target not in found:
            raise BackendUnavailable(f"SYCL has no device {target}", f"there are {', '.join(found)}")
        if not _sycl.can_compile(found[target]):
            raise BackendUnavailable(_NO_SPIRV, _NEEDS_SPIRV)
        return SyclDevice(found[target], threads)


class SyclDevice(_sycl.Device):
    """A device of SYCL that runs SYCL kernels.

    form: the kind of device that its kernels are written for, `CPU` or `GPU`; None for the device's own kind.
    """

    def __init__(self, device: dpctl.SyclDevice, threads: int, form: str | None = None) -> None:
        super().__init__(device, threads)
        self._form = form or ("CPU" if device.is_cpu else "GPU")

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        stages = text.stages(self._form)
        names = [name for name, _ in stages.kernels]
        computed = text.problem.sum_dtype(dtype)
        starts = self.compiled(text, dtype, names, macros=self._facts(computed))

        def launch(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            named = text.named_sizes(sizes)
            elements = stages.scratch_elements(named)
            scratch = [] if elements is None else [self.scratch(elements * computed.itemsize)]
            self._of_thread.events = [
                start([*buffers, *scratch], sizes, work_items.groups(named), work_items.group)
                for start, (_, work_items) in zip(starts, stages.kernels, strict=True)
            ]

        return launch

    def event_seconds(self) -> float | None:
        if not self.profiled:
            return None
        events = self._of_thread.events
        return self.seconds(events[0], events[-1])

    def _facts(self, dtype: np.dtype[Any]) -> list[str]:
        """What sources may know about the device: elements of one of its vectors, and bytes of its last-level cache."""
        lanes = getattr(self._device, f"native_vector_width_{number_format(dtype).c}")
        # Drivers of CPUs give the size of the second level.
        cache = caches.last_level_cache() if self._device.is_cpu else self._device.global_mem_cache_size
        return [f"LANES={max(1, lanes)}", f"CACHE={cache}"]


def _target(name: str, device: dpctl.SyclDevice) -> Target:
    facts = (name, device.name.strip(), _sycl.version(device))
    if not _sycl.can_compile(device):
        return Target(*facts, _NO_SPIRV, _NEEDS_SPIRV, available=False)
    return Target(*facts, just_in_time=True)
