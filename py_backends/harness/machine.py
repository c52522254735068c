"""Describes the machine on which results were taken."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
from functools import cache
from pathlib import Path
from typing import Any

_INSTRUCTION_SETS = (
    "sse2", "avx", "avx2", "fma", "avx512f", "avx512_bf16", "avx512_fp16", "amx_tile", "asimd", "sve",
)  # fmt: skip


def cpus() -> int:
    """Logical CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def busy_cpus() -> float:
    """How many logical CPUs others are using just now, measured over a fifth of a second."""
    import psutil

    fraction: float = psutil.cpu_percent(interval=0.2) / 100
    return round(fraction * (psutil.cpu_count() or 1), 2)


def free_memory() -> int:
    """Bytes that this process may still take, by the machine's memory and its control group's limit."""
    import psutil

    free: int = psutil.virtual_memory().available
    group = Path("/sys/fs/cgroup")
    try:
        limit, used = ((group / name).read_text().strip() for name in ("memory.max", "memory.current"))
    except OSError:  # no control group of version 2, or none with a limit
        return free
    return free if limit == "max" else min(free, int(limit) - int(used))


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
