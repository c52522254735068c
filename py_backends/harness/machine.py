"""Describes the machine on which results were taken."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
from functools import cache
from typing import Any

_INSTRUCTION_SETS = (
    "sse2", "avx", "avx2", "fma", "avx512f", "avx512_bf16", "avx512_fp16", "amx_tile", "asimd", "sve",
)  # fmt: skip


def cpus() -> int:
    """Logical CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


@cache
def describe() -> dict[str, Any]:
    """The `machine` of the results; its CPU takes about a second to find out, once a process."""
    import cpuinfo  # slow to import, and not needed by most commands
    import psutil

    cpu = cpuinfo.get_cpu_info()
    flags = set(cpu.get("flags", ()))
    return {
        "cpu": cpu.get("brand_raw") or platform.machine(),
        "isa": [name for name in _INSTRUCTION_SETS if name in flags],
        "logical_cpus": cpus(),
        "memory_bytes": psutil.virtual_memory().total,
        "os": platform.platform(),
        "python": platform.python_version(),
        "packages": _packages(),
    }


def _packages() -> dict[str, str]:
    """Versions of what is installed of all that the distribution requires, its extras included."""
    try:
        requirements = importlib.metadata.requires("py-backends") or []
    except importlib.metadata.PackageNotFoundError:  # run from a clone that was never installed
        requirements = ["numpy"]
    versions = {}
    for requirement in requirements:
        name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return dict(sorted(versions.items()))
