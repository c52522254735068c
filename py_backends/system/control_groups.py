"""Control groups: the memory and the CPU time that Linux gives a process and those beside it (cgroups(7)).

A container, a job of a cluster and a service of systemd have groups of their own. Any group above may have the limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_SELF = Path("/proc/self")
_OLD, _NEW = "cgroup", "cgroup2"
"""The kinds of the file system: versions 1 and 2."""
_OF_MEMORY = {
    _OLD: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
    _NEW: ("memory.max", "memory.current", ""),
}
"""By the kind: files with the limit and the use of memory. The last entry is how names in `memory.stat` begin that
count the groups below too."""


class Group(NamedTuple):
    """A group of this process: its folder, and the kind of the file system in which it is."""

    folder: Path
    kind: str


def memory_left() -> list[int]:
    """Bytes that each group with a limit may still allocate.

    What a group uses includes files in the page cache, which Linux drops for who needs memory.
    """
    return [left for group in _groups("memory") if (left := _left_in(group)) is not None]


def cpu_quota() -> float | None:
    """How many CPUs' time this process and those beside it may use, on average; None without a limit.

    From `cpu.max` in version 2 of control groups, and `cpu.cfs_quota_us` in version 1.
    """
    return min((quota for group in _groups("cpu") if (quota := _quota_of(group)) is not None), default=None)


def _left_in(group: Group) -> int | None:
    *names, whole = _OF_MEMORY[group.kind]
    try:
        limit, used, parts = ((group.folder / name).read_text().strip() for name in (*names, "memory.stat"))
    except OSError:  # the group at the top of version 2 has no such files, nor one without the controller of memory
        return None
    cached = sum(map(int, re.findall(rf"^{whole}(?:in)?active_file (\d+)$", parts, re.MULTILINE)))
    return None if limit == "max" else int(limit) - int(used) + cached


def _quota_of(group: Group) -> float | None:
    names = ("cpu.max",) if group.kind == _NEW else ("cpu.cfs_quota_us", "cpu.cfs_period_us")
    try:
        quota, period = " ".join((group.folder / name).read_text() for name in names).split()
    except (OSError, ValueError):  # as for memory
        return None
    return None if quota in {"max", "-1"} else int(quota) / int(period)


def _groups(controller: str) -> Iterator[Group]:
    """The group of this process for a controller, and all above it, as far as they are mounted."""
    try:
        groups, mounts = ((_SELF / name).read_text(errors="replace") for name in ("cgroup", "mountinfo"))
    except OSError:  # hidden from us
        return
    ours = {}
    for line in groups.splitlines():
        hierarchy, controllers, path = line.split(":", 2)
        if hierarchy == "0" or controller in controllers.split(","):
            ours[_NEW if hierarchy == "0" else _OLD] = path
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        (_, _, _, root, point, *_), (kind, *_, options) = before.split(" "), after.split(" ")
        if kind in ours and (kind == _NEW or controller in options.split(",")):
            at = Path(re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), point))  # blanks, as proc(5) says
            for below in _down_to(ours[kind], root):
                yield Group(at / below, kind)


def _down_to(group: str, root: str) -> list[Path]:
    """The path of a group below the one that is mounted, and the paths above it.

    In a container the two may be names of different namespaces. The mounted group then is the container's own.
    """
    path = Path(group)
    if ".." in path.parts or not path.is_relative_to(root):
        return [Path()]
    below = path.relative_to(root)
    return [below, *below.parents]
