"""The sizes of the CPU's caches in bytes, as Linux reports them, for kernels in Python. C++ uses `workspace.hpp`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


def first_level_cache() -> int:
    """The bytes of a core's first-level data cache; a usual size if the system does not report it."""
    return _sizes().get(1, 2**15)


def second_level_cache() -> int:
    """The bytes of a core's second-level cache; a usual size if the system does not report it."""
    return _sizes().get(2, 2**20)


def last_level_cache() -> int:
    """The bytes of the last-level cache; a usual size if the system does not report it."""
    sizes = _sizes()
    return sizes[max(sizes)] if max(sizes, default=0) > 2 else min(4 * second_level_cache(), 2**25)


def effective_cache() -> int:
    """The bytes beyond which results go past the caches; `workspace.hpp` says why a large last level is not taken."""
    return min(last_level_cache(), 96 * 2**20)


def by_level() -> dict[int, int]:
    """The bytes of every level that the system reports. Usually several cores share the last one."""
    return dict(sorted(_sizes().items()))


@cache
def _sizes() -> dict[int, int]:
    """The bytes by level, without caches for instructions only."""
    found = {}
    for folder in _CACHES.glob("index*"):
        try:
            level, kind, size = (
                (folder / each).read_text(encoding="ascii").strip() for each in ("level", "type", "size")
            )
        except OSError:  # where the firmware tells no size, Linux has no such file
            continue
        if kind != "Instruction" and size[:-1].isdecimal() and size[-1] in _UNITS:
            found[int(level)] = int(size[:-1]) * _UNITS[size[-1]]
    return found
