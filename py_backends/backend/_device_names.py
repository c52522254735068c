"""Names of targets for the devices that OpenCL and SYCL find: the same device has the same name in both."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from py_backends.backend import _nvidia_driver
from py_backends.install import other_architecture

T = TypeVar("T")

INTEL_CPU = "intel-cpu"
POCL = "pocl"


@dataclass(frozen=True)
class Facts:
    """What a device says about itself."""

    name: str
    vendor: str
    platform: str
    """The name of its platform, which is that of its driver."""
    kind: str
    """`cpu`, `gpu` or another."""


def usual_cpu() -> str:
    """The CPU's name where no driver is found: that by the driver which is easiest to install for it."""
    return POCL if other_architecture() else INTEL_CPU


def slug(facts: Facts) -> str:
    """`intel-cpu`, `pocl`, or the device's own name in lower case: "NVIDIA H200" is `nvidia-h200`."""
    if facts.kind == "cpu" and facts.platform == "Portable Computing Language":
        return POCL
    if facts.kind == "cpu" and facts.platform.startswith("Intel"):
        return INTEL_CPU
    if "nvidia" in facts.vendor.lower():
        return _nvidia_driver.slug(facts.name)
    name = re.sub(r"\((r|tm|c)\)", " ", facts.name.lower())
    return re.sub(r"[^a-z0-9]+", "-", name).strip("-") or "device"


def named(devices: Iterable[T], facts: Callable[[T], Facts]) -> dict[str, T]:
    """The devices by their targets' names: GPUs first, then Intel's CPU runtime, PoCL and any other."""
    slugs = [(slug(facts(device)), facts(device), device) for device in devices]
    slugs.sort(key=lambda entry: _rank(*entry[:2]))
    names = _nvidia_driver.numbered([name for name, _, _ in slugs])
    return dict(zip(names, (device for _, _, device in slugs), strict=True))


def _rank(name: str, facts: Facts) -> int:
    if facts.kind == "gpu":
        return 0
    return {INTEL_CPU: 1, POCL: 2}.get(name, 3)
