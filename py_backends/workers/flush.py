"""Flushes what a kernel left in the caches, so that its next launch is cold."""

from __future__ import annotations

import ctypes
import os

import numpy as np

from py_backends.contract import Array, Device
from py_backends.system import caches

MOST_BYTES = 2**28
"""No flush writes more, which takes a few hundredths of a second. The last-level cache of a server may be larger, but
all of its cores share it. On a server with 480 MB, additions of 1 MB were measured after a flush of 256 MiB and of 960
MiB. The times agreed within a tenth."""
_LINE = 64
"""Bytes of a cache line. If lines are twice as long, none is left out either."""
_WORDS = _LINE // 8


def flush(device: Device) -> int:
    """Write twice the size of the last-level cache, at most `MOST_BYTES`, and as much to a device that is not the CPU.

    Each CPU that this process may use writes a part of at least twice the size of its private caches, so these are
    flushed too. Returns the number of bytes written.

    The calling thread moves from CPU to CPU and ends where it began. A thread on each CPU would do worse: afterwards,
    the scheduler often puts the caller on the CPU of a kernel's thread. Then a launch takes milliseconds.
    """
    allowed, here = os.sched_getaffinity(0), _current_cpu()
    memory = np.empty((_lines_of_one_cpu(len(allowed)) * len(allowed), _WORDS), np.uint64)
    if not device.on_cpu:
        device.release(device.upload(memory.reshape(-1)))
    cpus = sorted(allowed, key=lambda cpu: (cpu == here, cpu))
    try:
        for part, cpu in zip(np.array_split(memory, len(cpus)), cpus, strict=True):
            _overwrite(part, cpu)
    finally:
        os.sched_setaffinity(0, allowed)
    return memory.nbytes if device.on_cpu else 2 * memory.nbytes


def _lines_of_one_cpu(cpus: int) -> int:
    share = min(2 * caches.last_level_cache(), MOST_BYTES) // cpus
    return max(share, 2 * caches.second_level_cache()) // _LINE


def _overwrite(memory: Array, cpu: int) -> None:
    """Read and write each line on that CPU. Filling the memory would not do: such stores may bypass the caches."""
    os.sched_setaffinity(0, {cpu})  # only of the calling thread
    words = memory[:, 0]
    np.add(words, 1, out=words)


def _current_cpu() -> int:
    """The CPU on which the calling thread is running."""
    number: int = ctypes.CDLL(None).sched_getcpu()
    return number
