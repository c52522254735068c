"""Finds the rounds in which something else used the CPUs. Signals and thresholds are fixed beforehand.

A round that shows a signal says more about other programs than about the kernels. The signals are:

steal: the host of a virtual machine took its CPUs away, for more than `MOST_STEAL` of the round's CPU time.
    This is 2%, twice the narrowest band within which two rows are the same.
others: processes that are not ours used our CPUs, for more than `MOST_OTHERS` of one CPU. Ours are this process and all
    its descendants: workers, and compilers and ranks that backends run. An idle system uses a few hundredths of a CPU.
    If a tenth of one CPU is taken away, a kernel whose threads share their work evenly ends a tenth later.

Linux counts in ticks of 10 ms, so both thresholds allow for rounding, and a round of 50 ms can hardly show a signal.
Time for which our threads waited (/proc/pressure/cpu) is no signal. A backend with more threads than CPUs causes such
waiting itself.
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
"""A part of the round's CPU time: its seconds times the CPUs that we may use."""
MOST_OTHERS = 0.10
"""CPU seconds of other processes in a second of the round."""
_TICK = 1 / os.sysconf("SC_CLK_TCK")
_TICKS_ALLOWED = 2
"""Rounding errors of one CPU: a reading is rounded at both ends of the round. CPUs add in quadrature."""


@dataclass(frozen=True)
class Reading:
    """The system's counters at one moment, in seconds.

    at: the monotonic clock.
    idle, steal: the sums over the CPUs that we may use; None if the system does not report them.
    ours: the CPU time of each of our processes, by its number.
    """

    at: float
    idle: float | None = None
    steal: float | None = None
    ours: Mapping[int, float] = field(default_factory=dict)


class Interference:
    """Watches one round after the other. A reading takes a few milliseconds."""

    def __init__(self, read: Callable[[], Reading] | None = None, cpus: int | None = None) -> None:
        """Tests may replace the system's own readings (`read`) and its number of CPUs (`cpus`)."""
        self._read = read or read_system
        self._cpus = cpus or len(os.sched_getaffinity(0))
        self._begin = self._read()

    def begin(self) -> None:
        """A round begins."""
        self._begin = self._read()

    def end(self) -> list[str]:
        """Return the signals that the round showed. An undisturbed round shows none."""
        begin, end = self._begin, self._read()
        if begin.idle is None or end.idle is None or begin.steal is None or end.steal is None:
            return []
        seconds = end.at - begin.at
        rounding = _TICKS_ALLOWED * _TICK * math.sqrt(self._cpus)
        steal = end.steal - begin.steal
        seen = ["steal"] if steal > MOST_STEAL * seconds * self._cpus + rounding else []
        ours = _used(begin.ours, end.ours)
        if ours is not None:
            # Busy time is what was not idle: Linux measures idle time, and only samples busy time.
            others = seconds * self._cpus - (end.idle - begin.idle) - steal - ours
            seen += ["others"] if others > MOST_OTHERS * seconds + rounding else []
        return seen


def _used(begin: Mapping[int, float], end: Mapping[int, float]) -> float | None:
    """CPU seconds between two readings; None if a process ended in between and its parent has not waited for it yet.

    Once the parent has waited, the parent's figure includes that of the child.
    """
    used = sum(end.values()) - sum(begin.values())
    return used if used >= 0 else None


def our_processes() -> list[int]:
    """The calling process and all its descendants: workers, and what a backend's library runs.

    If this process is the child of a rank, the result is the launcher and all its descendants.
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
    except (OSError, ValueError):  # no such file, or one that we may not read
        return Reading(at, ours=ours)
    if not any(counted):  # a sandbox shows zeros only
        return Reading(at, ours=ours)
    idle, steal = counted
    return Reading(at, idle * _TICK, steal * _TICK, ours)


def _ticks(stat: str, cpus: set[int]) -> tuple[int, int]:
    """The idle and the stolen ticks of these CPUs: see proc(5). Idle includes waiting for devices.

    Raises ValueError if one of them has no line, as in some containers: it would pass for one that is never idle.
    """
    idle, steal, told = 0, 0, set[int]()
    for line in stat.splitlines():
        name, *columns = line.split()
        if name.startswith("cpu") and name != "cpu" and (number := int(name.removeprefix("cpu"))) in cpus:
            told.add(number)
            _, _, _, idled, waited, _, _, stolen = map(int, columns[:8])
            idle += idled + waited
            steal += stolen
    if told != cpus:
        raise ValueError(f"no ticks of CPU {min(cpus - told)}")
    return idle, steal


def _cpu_seconds(pid: int) -> float | None:
    """CPU seconds of all threads of a process, and of the children that it has waited for; None if it is gone.

    The process's own time is exact to the nanosecond.
    """
    process_clock = (~pid << 3) | 2  # as clock_getcpuclockid(3) computes it
    try:
        times = psutil.Process(pid).cpu_times()
        waited_for: float = times.children_user + times.children_system
        return clock_gettime(process_clock) + waited_for
    except (OSError, psutil.Error):
        return None
