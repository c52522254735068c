"""Whether there is an NVIDIA driver with a GPU. The driver itself is asked, without any library."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from py_backends.install import pip_install

OLDEST_CUDA = (12, 0)
"""The oldest CUDA version that a driver must support."""

_SUCCESS = 0
_NO_DEVICE = 100
_CAPABILITY = 75, 76
"""Attributes of a device in cuda.h: the two numbers of its compute capability."""
_MOST_GROUPS = (2**31 - 1, 65535, 65535)
"""The largest grid in each dimension."""


@dataclass(frozen=True)
class Driver:
    """What the driver said: its CUDA version and its GPUs, or why none can be used."""

    version: tuple[int, int] | None = None
    """The newest CUDA version that it supports, such as (12, 4); None where it did not say."""
    devices: tuple[str, ...] = ()
    """The GPUs' names, in the driver's order."""
    capability: tuple[int, int] | None = None
    """The lowest compute capability of these GPUs, such as (9, 0)."""
    reason: str | None = None
    """Why no GPU can be used, as a sentence without full stop; None where one can."""
    fix: str | None = None

    @property
    def extra(self) -> str:
        """The extra of the distribution that fits the driver and its GPUs.

        CUDA 13 compiles for none below 7.5 (its release notes, "Deprecated Architectures").
        """
        old = (self.version and self.version < (13, 0)) or (self.capability and self.capability < (7, 5))
        return "cuda12" if old else "cuda13"

    @property
    def targets(self) -> tuple[str, ...]:
        """A target name for each GPU: `nvidia-h200`, and `nvidia-h200-2` for a second one of the same kind."""
        return numbered([slug(name) for name in self.devices])


@cache
def driver() -> Driver:
    """Ask the driver, once in a process. Never raises."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return Driver(reason="no NVIDIA driver", fix=needed())
    version = _version(library)
    started = library.cuInit(0)
    if started == _NO_DEVICE:
        return Driver(version, reason="the NVIDIA driver finds no GPU", fix="check nvidia-smi and CUDA_VISIBLE_DEVICES")
    if started != _SUCCESS:
        return Driver(
            version, reason=f"the NVIDIA driver does not start ({_error(library, started)})", fix="check nvidia-smi"
        )
    if version is not None and version < OLDEST_CUDA:
        return Driver(version, reason=f"the NVIDIA driver supports CUDA {version[0]}.{version[1]} only", fix=needed())
    devices = [_told(library.cuDeviceGet, at) for at in range(_told(library.cuDeviceGetCount))]
    if not devices:
        return Driver(version, reason="the NVIDIA driver finds no GPU", fix="check nvidia-smi and CUDA_VISIBLE_DEVICES")
    names = tuple(_device_name(library, device) for device in devices)
    capabilities = (
        tuple(_told(library.cuDeviceGetAttribute, which, device) for which in _CAPABILITY) for device in devices
    )
    major, minor = min(capabilities)
    return Driver(version, names, (major, minor))


def needed() -> str:
    """The fix for a machine without any NVIDIA driver or GPU."""
    return f"needs an NVIDIA GPU with driver 525 or newer, and {pip_install('cuda12')}"


def grid(groups: Sequence[int]) -> tuple[int, ...]:
    """The groups that CUDA starts.

    In y and z, a kernel's threads also compute what lies beyond, one grid size further on. Beyond the limit of x there
    would be more elements than any device's memory holds.
    """
    return tuple(map(min, groups, _MOST_GROUPS))


def slug(name: str) -> str:
    """A device's name as a target's: "NVIDIA GeForce RTX 4090" becomes "nvidia-geforce-rtx-4090"."""
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return words if words.startswith("nvidia-") else f"nvidia-{words}"


def numbered(names: Sequence[str]) -> tuple[str, ...]:
    """Names of devices in their order. From the second of one name on, they have a number at the end."""
    ranks = [names[:place].count(name) + 1 for place, name in enumerate(names)]
    return tuple(name if rank == 1 else f"{name}-{rank}" for name, rank in zip(names, ranks, strict=True))


def _version(library: ctypes.CDLL) -> tuple[int, int] | None:
    number = ctypes.c_int()
    if library.cuDriverGetVersion(ctypes.byref(number)) != _SUCCESS:
        return None
    return number.value // 1000, number.value % 1000 // 10


def _told(function: Any, *arguments: int) -> int:
    """The number that a function of the driver tells by its first parameter."""
    number = ctypes.c_int()
    function(ctypes.byref(number), *arguments)
    return number.value


def _device_name(library: ctypes.CDLL, device: int) -> str:
    name = ctypes.create_string_buffer(256)
    library.cuDeviceGetName(name, len(name), device)
    return name.value.decode(errors="replace")


def _error(library: ctypes.CDLL, code: int) -> str:
    text = ctypes.c_char_p()
    library.cuGetErrorName(code, ctypes.byref(text))
    return text.value.decode() if text.value else f"error {code}"
