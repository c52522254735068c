"""Owns the launcher of some ranks, so that nothing of them is left behind however their client ends.

`python -m py_backends.ranks.keeper CLIENT FOLDER COMMAND...` runs the command and waits until it has ended, or until
the process CLIENT has: then the ranks, which may be stopped, are continued, have a moment to end in good order, and are
killed. What they had in the folder, and in shared memory, is removed. It is never stopped itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from time import monotonic

import psutil

_MOMENT = 1.0
"""Seconds in which ranks end by themselves, where they do nothing."""
_LOOKS_EVERY = 0.5
_SHARED = "/dev/shm/"  # noqa: S108  # where Linux keeps it (shm_overview(7))


def _adopt_orphans() -> None:
    """Ask Linux to make this process the parent of what its descendants leave behind."""
    set_child_subreaper = 36  # PR_SET_CHILD_SUBREAPER in <linux/prctl.h>
    ctypes.CDLL(None).prctl(set_child_subreaper, 1)


def _started() -> list[psutil.Process]:
    found: list[psutil.Process] = psutil.Process().children(recursive=True)
    return found


def _send(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.send_signal(number)


def _shared_files(processes: Iterable[psutil.Process]) -> set[str]:
    """Files of shared memory that processes have mapped: MPI's, which it removes if it ends in good order."""
    found: set[str] = set()
    for process in processes:
        with contextlib.suppress(psutil.Error, OSError):
            found.update(each.path for each in process.memory_maps() if each.path.startswith(_SHARED))
    return found


class Keeper:
    """One launcher, for one client."""

    def __init__(self, client: int, folder: Path, command: Sequence[str]) -> None:
        self._folder = folder
        self._client = os.pidfd_open(client)  # ProcessLookupError where it has ended already
        self._launcher = subprocess.Popen(command, env={**os.environ, "TMPDIR": str(folder)})
        self._shared: set[str] = set()

    def wait(self) -> None:
        """Return when the launcher has ended or the client has, noting meanwhile what ranks share."""
        poll = select.poll()
        for descriptor in (self._client, os.pidfd_open(self._launcher.pid)):
            poll.register(descriptor, select.POLLIN)
        while not poll.poll(1000 * _LOOKS_EVERY):
            if not self._shared:
                self._shared = _shared_files(_started())

    def end(self) -> None:
        """End what is left of the ranks, and remove what they had."""
        left = _started()
        self._shared |= _shared_files(left)
        _send(left, signal.SIGCONT)
        until = monotonic() + _MOMENT
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._launcher.wait(_MOMENT)
        psutil.wait_procs(left, max(0.0, until - monotonic()) if self._launcher.poll() is None else 0.1)
        while left := _started():
            _send(left, signal.SIGKILL)
            psutil.wait_procs(left, 0.1)
        for path in self._shared:
            with contextlib.suppress(OSError):
                os.unlink(path)
        shutil.rmtree(self._folder, ignore_errors=True)


def main() -> None:
    """Keep the ranks of a client."""
    client, folder, *command = sys.argv[1:]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends with its client, and with nothing else
    _adopt_orphans()
    keeper = Keeper(int(client), Path(folder), command)
    try:
        keeper.wait()
    finally:
        keeper.end()


if __name__ == "__main__":
    main()
