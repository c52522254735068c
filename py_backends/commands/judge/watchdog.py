"""Ends workers that take more memory than they may, and says so.

The resident memory counts, without what is shared: a limit of addresses (RLIMIT_AS) would end CUDA and JAX.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil

from py_backends.system import machine

GIGABYTE = 1e9
OFTEN, WHILE_TIMED = 0.1, 1.0
"""Seconds between looks, each of which takes some time of a CPU."""


class Watchdog:
    """Watches the processes that this one has started.

    most: bytes that each may take.
    every: seconds between two looks.
    killed: the largest memory of an ended one, in bytes; 0 where none was.
    """

    def __init__(self, most: float) -> None:
        self.most, self.every, self.killed = most, OFTEN, 0.0
        self._end = threading.Event()

    def look(self) -> None:
        """End those that have more than `most` bytes."""
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):  # it has ended meanwhile
                memory = process.memory_info()
                taken = memory.rss - memory.shared
                if taken > self.most:
                    process.kill()
                    self.killed = max(self.killed, taken)

    def run(self) -> None:
        """Look until `stop`."""
        while not self._end.wait(self.every):
            with suppress(psutil.Error):
                self.look()

    def stop(self) -> None:
        """Let `run` return."""
        self._end.set()


def limit(gigabytes: float | None) -> float:
    """The most bytes of a worker; half of what this process may use where nothing is said."""
    return machine.free_memory() / 2 if gigabytes is None else gigabytes * GIGABYTE


@contextmanager
def watching(most: float) -> Iterator[Watchdog]:
    """Within, no worker keeps more than `most` bytes."""
    watchdog = Watchdog(most)
    thread = threading.Thread(target=watchdog.run, name="py-backends-watchdog", daemon=True)
    thread.start()
    try:
        yield watchdog
    finally:
        watchdog.stop()
        thread.join()
