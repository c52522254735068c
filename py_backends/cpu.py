"""The first CPU, as Linux describes it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_CPUS = Path("/proc/cpuinfo")


@cache
def name() -> str | None:
    """Its name for itself; None where the system tells none, as on Arm."""
    return _told("model name")


def features() -> set[str]:
    """The instructions that it has, by Linux's names; empty where the system lists none, as on Arm.

    An emulator may pass on the list of its host.
    """
    return set((_told("flags") or "").split())


def _told(entry: str) -> str | None:
    try:
        first = _CPUS.read_text(encoding="utf-8").partition("\n\n")[0]
    except (OSError, UnicodeDecodeError):  # another system
        return None
    found = re.search(rf"^{entry}\s*: *(.*\S)", first, re.MULTILINE)
    return found[1] if found else None
