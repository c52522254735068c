"""The first CPU, as Linux describes it."""

from __future__ import annotations

import platform
import re
from functools import cache
from pathlib import Path

_CPUS = Path("/proc/cpuinfo")
_OF_ITS_KIND = (
    *("vendor_id", "cpu family", "model", "model name", "stepping", "flags"),
    *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features"),  # of Arm
    *("cpu", "revision", "isa"),  # of others
)
"""Entries of Linux's description."""


@cache
def name() -> str | None:
    """Its name for itself; None where the system tells none, as on Arm."""
    return _told("model name")


def features() -> set[str]:
    """The instructions that it has, by Linux's names; empty where the system lists none, as on Arm.

    An emulator may pass on the list of its host.
    """
    return set((_told("flags") or "").split())


@cache
def identity() -> tuple[str, ...]:
    """What tells this kind of CPU from others, by its own instructions too, which a virtual machine may hide."""
    told = ((entry, _told(entry)) for entry in _OF_ITS_KIND)
    return platform.machine(), *(f"{entry}: {value}" for entry, value in told if value is not None)


def _told(entry: str) -> str | None:
    try:
        first = _CPUS.read_text(encoding="utf-8").partition("\n\n")[0]
    except (OSError, UnicodeDecodeError):  # another system
        return None
    found = re.search(rf"^{entry}\s*: *(.*\S)", first, re.MULTILINE)
    return found[1] if found else None
