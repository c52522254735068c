"""SYCL through dpctl: kernels in C++, which Intel's SYCL runtime compiles when they are first needed.

Kernels are free functions, an extension of oneAPI to SYCL 2020 (sycl::ext::oneapi::experimental). They use the caller's
own memory if the device can reach it, else USM device memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from py_backends import contract
from py_backends.backend import _amx, _device_names, _queues, _sycl
from py_backends.contract import Target
from py_backends.errors import BackendUnavailable
from py_backends.install import pip_install
from py_backends.kernel_text import KernelText
from py_backends.number_formats import COMPILED

if TYPE_CHECKING:
    import dpctl

_TRIAL = Path(__file__).with_name("_sycl_amx.cpp")
_FOR_TILES = {"CL_CONFIG_CPU_TARGET_ARCH": "sapphirerapids"}
"""Has Intel's runtime compile for tiles. By itself it does so only for processors that it knows by their model, which
virtual machines may hide; for others, `joint_matrix` fails or ends the process."""


class Backend(contract.Backend):
    """A target for each device, and last `amx`, where matrices of narrow formats are `joint_matrix`.

    It is the last since its driver has to be told of tiles before it starts, and few callers' processes do that.
    """

    dtypes = COMPILED
    obeys = ("ONEAPI_DEVICE_SELECTOR", "CL_CONFIG_")

    def targets(self) -> list[Target]:
        try:
            found = _sycl.devices("sycl")
        except BackendUnavailable as missing:
            of_cpu = Target.missing(_device_names.usual_cpu(), missing.reason, missing.fix)
            return [of_cpu, Target.missing("amx", missing.reason, missing.fix, _amx.taken("sycl"))]
        return [*(_target(name, device) for name, device in found.items()), _target_of_tiles(found)]

    def open(self, target: str, threads: int) -> SyclDevice:
        found = _sycl.devices("sycl")
        if target == "amx":
            device = _with_tiles(found)
            if refusal := _amx.refusal():  # which the driver would ignore
                raise BackendUnavailable(refusal)
            _check_tiles(SyclDevice(device, threads, "AMX"))  # whose queue nobody can ask to keep times any more
            return SyclDevice(device, threads, "AMX")
        if target not in found:
            raise BackendUnavailable(f"SYCL has no device {target}", f"there are {', '.join(found)}")
        _sycl.check(found[target])
        return SyclDevice(found[target], threads)


class SyclDevice(_sycl.Device):
    """A device of SYCL that runs SYCL kernels."""

    def _starts(self, text: KernelText, dtype: np.dtype[Any], names: Sequence[str]) -> list[_queues.Start]:
        lanes, cache = self._lanes_and_cache(text.problem.sum_dtype(dtype))
        tiles = ["TILES"] if self._form == "AMX" else []
        return self.compiled(text.path, dtype, names, macros=[f"LANES={lanes}", f"CACHE={cache}", *tiles])


def _target_of_tiles(found: Mapping[str, dpctl.SyclDevice]) -> Target:
    """The CPU by tiles. Whether its driver multiplies them is known only when it is opened."""
    if not _amx.listed():
        return Target.missing("amx", _amx.LACKING, _amx.FIX, _amx.taken("sycl"))
    try:
        device = _with_tiles(found)
    except BackendUnavailable as missing:
        return Target.missing("amx", missing.reason, missing.fix, _amx.taken("sycl"))
    target = _target("amx", device)
    return replace(target, environment=_FOR_TILES if target.available else {}, dtypes=_amx.taken("sycl"))


def _with_tiles(found: Mapping[str, dpctl.SyclDevice]) -> dpctl.SyclDevice:
    """The device that may multiply tiles. BackendUnavailable if it is missing."""
    if _device_names.INTEL_CPU not in found:
        raise BackendUnavailable("only Intel's runtime for CPUs multiplies tiles", pip_install("cpu"))
    return found[_device_names.INTEL_CPU]


def _check_tiles(device: SyclDevice) -> None:
    """Raise BackendUnavailable if a product of two tiles is wrong. A driver that has none may also end the process."""
    rows, deep = 16, 64
    a, b = np.arange(rows * deep).astype(np.int8), np.arange(deep * rows)[::-1].astype(np.int8)
    c = np.zeros(rows * rows, np.int32)
    (multiply,) = device.compiled(_TRIAL, a.dtype, ["multiply"])
    buffers = [*map(device.upload, (a, b)), device.allocate(c)]
    multiply(buffers, (), (1,), (rows,))
    device.wait()
    device.download(buffers[-1], c)
    # Four rows of b stand beside each other in one of a tile.
    unpacked = b.reshape(deep // 4, rows, 4).transpose(0, 2, 1).reshape(deep, rows)
    if not np.array_equal(c.reshape(rows, rows), a.reshape(rows, deep).astype(np.int32) @ unpacked.astype(np.int32)):
        raise BackendUnavailable("its driver multiplies tiles wrongly", "install another version of Intel's runtime")


def _target(name: str, device: dpctl.SyclDevice) -> Target:
    facts = (name, device.name.strip(), _sycl.version(device))
    try:
        _sycl.check(device)
    except BackendUnavailable as missing:
        return Target(*facts, missing.reason, missing.fix, available=False)
    return Target(*facts, just_in_time=True)
