"""Tells rounds in which something else took the CPUs, by signals and thresholds that were named beforehand.

A round that shows one of them says more about the neighbours than about the kernels. The signals:

steal: a virtual machine's CPUs were taken away by its host. More than `MOST_STEAL` of the round's CPU time.
    A fiftieth is twice the narrowest band (1%) within which two equal things are told to be the same.
others: processes of this system that are not ours used our CPUs. Ours are this one and all that it started, and they
    in turn: workers, and a compiler or a rank that a backend runs. More than `MOST_OTHERS` of one CPU. What
    an idle system does by itself takes a few hundredths of one; a kernel whose threads share their work
    evenly ends a tenth later where one of its CPUs is taken for a tenth of the time.

Linux counts in ticks of 10 ms, so either has an allowance for what rounding to ticks can seem to be, and a
round of 50 ms can hardly show anything. Time for which our threads waited (/proc/pressure/cpu) is no signal:
a backend with more threads than there are CPUs makes its own.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import CLOCK_MONOTONIC, clock_gettime

import psutil

from py_backends.ranks import served

MOST_STEAL = 0.02
"""Of the round's CPU time: of its seconds times the CPUs that we may use."""
MOST_OTHERS = 0.10
"""Of one CPU: CPU seconds of others in a second of the round."""
_TICK = 1 / os.sysconf("SC_CLK_TCK")
_TICKS_ALLOWED = 2
"""Of each CPU, added as independent errors are: a reading is rounded at either end of the round."""


@dataclass(frozen=True)
class Reading:
    """What the system had counted at one moment, in seconds.

    at: of the monotonic clock.
    idle, steal: of the CPUs that we may use, together; None where the system does not tell.
    ours: what each of our processes has used, by its number.
    """

    at: float
    idle: float | None = None
    steal: float | None = None
    ours: Mapping[int, float] = field(default_factory=dict)


class Interference:
    """Watches one round after the other; a reading takes a few milliseconds.

    signals: those that this system can show. The others are never seen.
    """

    def __init__(self, read: Callable[[], Reading] | None = None, cpus: int | None = None) -> None:
        """`read` and `cpus` stand in for the system's own, where a test wants others."""
        self._read = read or read_system
        self._cpus = cpus or len(os.sched_getaffinity(0))
        first = self._read()
        self.signals: tuple[str, ...] = ("steal", "others") if first.idle is not None else ()
        self._begin = first

    def begin(self) -> None:
        """A round begins."""
        self._begin = self._read()

    def end(self) -> list[str]:
        """The round has ended: the signals that it showed, none where it was undisturbed."""
        begin, end = self._begin, self._read()
        if begin.idle is None or end.idle is None or begin.steal is None or end.steal is None:
            return []
        seconds = end.at - begin.at
        rounding = _TICKS_ALLOWED * _TICK * math.sqrt(self._cpus)
        steal = end.steal - begin.steal
        seen = ["steal"] if steal > MOST_STEAL * seconds * self._cpus + rounding else []
        ours = _used(begin.ours, end.ours)
        if ours is not None:
            # What was not idle, rather than what was counted as busy: Linux measures the one and samples the other.
            others = seconds * self._cpus - (end.idle - begin.idle) - steal - ours
            seen += ["others"] if others > MOST_OTHERS * seconds + rounding else []
        return seen


def _used(begin: Mapping[int, float], end: Mapping[int, float]) -> float | None:
    """CPU seconds between two readings; None where a process ended in between and nobody has waited for it yet.

    The one that waited has its figure from then on.
    """
    used = sum(end.values()) - sum(begin.values())
    return used if used >= 0 else None


def our_processes() -> list[int]:
    """The calling process and all that it started, and they in turn: workers, and what a backend's library runs.

    Where a launcher has started ranks and we are the child of one, all that the launcher has started.
    """
    this = psutil.Process()
    if served():
        _, this, *_ = this.parents()
    return [this.pid, *(process.pid for process in this.children(recursive=True))]


def read_system() -> Reading:
    """A reading of this system, and of our processes."""
    at = clock_gettime(CLOCK_MONOTONIC)
    ours = {pid: seconds for pid in our_processes() if (seconds := _cpu_seconds(pid)) is not None}
    try:
        counted = _ticks(Path("/proc/stat").read_text(encoding="ascii"), os.sched_getaffinity(0))
    except (OSError, ValueError):  # not Linux as we know it, or hidden from us
        return Reading(at, ours=ours)
    if not any(counted):  # a sandbox whose file has nothing but zeros
        return Reading(at, ours=ours)
    idle, steal = counted
    return Reading(at, idle * _TICK, steal * _TICK, ours)


def _ticks(stat: str, cpus: set[int]) -> tuple[int, int]:
    """Ticks that these CPUs were idle (waiting for devices included), and those that were stolen: see proc(5)."""
    idle = steal = 0
    for line in stat.splitlines():
        name, *columns = line.split()
        if name.startswith("cpu") and name != "cpu" and int(name.removeprefix("cpu")) in cpus:
            _, _, _, idled, waited, _, _, stolen = map(int, columns[:8])
            idle += idled + waited
            steal += stolen
    return idle, steal


def _cpu_seconds(pid: int) -> float | None:
    """CPU time of all threads of a process, to the nanosecond, and of the children it has waited for; None if gone."""
    process_clock = (~pid << 3) | 2  # clock_getcpuclockid(3) computes it so
    try:
        times = psutil.Process(pid).cpu_times()
        waited_for: float = times.children_user + times.children_system
        return clock_gettime(process_clock) + waited_for
    except (OSError, psutil.Error):
        return None
