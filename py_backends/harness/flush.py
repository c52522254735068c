"""Empties caches of what a kernel left in them, so that its next launch is a cold one."""

from __future__ import annotations

import ctypes
import os

import numpy as np

from py_backends import caches
from py_backends.contract import Array, Device

MOST_BYTES = 2**28
"""No flush writes more, a few hundredths of a second. The last level of a server may have more, but shared by all
of its cores: on one with 480 MB, additions of a megabyte took as long after 256 MiB as after 960, within a tenth."""
_LINE = 64
"""Bytes of a cache line, or half of one: no line is left out."""
_WORDS = _LINE // 8


def flush(device: Device) -> int:
    """Write twice the last level of cache (at most `MOST_BYTES`), and as much to a device that is not the CPU.

    Each CPU that this process may use does its part, so that the caches that only it has are overwritten too: it is
    given at least twice their size. Returns how many bytes were written in all.

    The calling thread goes from CPU to CPU and ends where it began. With a thread on each, the system's scheduler finds
    the caller on another CPU afterwards, often that of one of the kernel's threads, and a launch takes milliseconds.
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
    """Read and write each line, on that CPU. To fill the memory would not do: that may go past the caches."""
    os.sched_setaffinity(0, {cpu})  # of the calling thread
    words = memory[:, 0]
    np.add(words, 1, out=words)


def _current_cpu() -> int:
    """On which CPU the calling thread runs just now."""
    number: int = ctypes.CDLL(None).sched_getcpu()
    return number
