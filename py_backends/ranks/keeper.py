"""Owns the launcher of some ranks, so that none of them is left behind, however their client ends.

`python -m py_backends.ranks.keeper CLIENT FOLDER COMMAND...` runs the command. It waits until the command or the
process CLIENT has ended. Then ranks that are stopped continue. All have a moment to end in good order, and are killed.
It makes the folder, and removes it with all that the ranks had there and in shared memory. The keeper itself never
stops.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from time import monotonic

import psutil

from py_backends.ranks import endings
from py_backends.ranks.log import FIRST, say
from py_backends.ranks.progress import last_words
from py_backends.system.descriptors import process_descriptor
from py_backends.system.signals import children_are_waited_for

_MOMENT = 1.0
"""Seconds in which idle ranks end by themselves."""
_LOOKS_EVERY = 0.05
_LOOKS_AT_LEAST_EVERY = 5.0
"""Seconds between looks at what ranks share: when they have just started, and later. MPI may map more at any time."""
_DIES_WITHIN = 0.1
"""Seconds that a killed launcher takes to end after its ranks."""
_SHARED = Path("/dev/shm")  # noqa: S108  # where Linux keeps it (shm_overview(7))
_OF_MPI = "mpich_shm_*", "ucx_shm_posix_*", "vader_segment.*", "sm_segment.*"
"""The names of MPICH's files there, of its UCX's and of Open MPI's. A rank that ends by a fault leaves them behind."""
_OF_HYDRA = "/tmp/", "hydra_hwloc_xmlfile_*"  # noqa: S108  # MPICH's, wherever TMPDIR is
"""A description of the machine for starting ranks. A killed launcher leaves it behind."""


def _adopt_orphans() -> None:
    """Ask Linux to make this process the parent of its orphaned descendants."""
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
    """Files that lie in shared memory itself, and that processes have mapped.

    MPI's do, which removes them if it ends in good order. A whole environment may lie in a folder there.
    """
    found: set[str] = set()
    for process in processes:
        with contextlib.suppress(psutil.Error, OSError):
            found.update(each.path for each in process.memory_maps() if Path(each.path).parent == _SHARED)
    return found


def _abandoned(files: set[str]) -> set[str]:
    """Those of this user's files that no process has: what ranks leave that end before they could be looked at.

    Whoever makes such a file has it open until it is mapped, so open files are read before mapped ones.
    """
    for process in psutil.process_iter() if files else ():
        try:
            files = files - {each.path for each in process.open_files()}
        except psutil.AccessDenied:
            if process.uids().effective == os.geteuid():  # it hides what it has, and may have any of them
                return set()
        except (psutil.Error, OSError):
            pass  # it has ended
        files = files - _shared_files([process])
    return {path for path in files if _is_ours(path)}


def _is_ours(path: str) -> bool:
    with contextlib.suppress(OSError):
        return Path(path).stat().st_uid == os.geteuid()
    return False


def _of_others() -> set[str]:
    """What lies where ranks leave files behind."""
    return _descriptions() | set(map(str, _SHARED.glob("*")))


def _descriptions() -> set[str]:
    folder, names = _OF_HYDRA
    return set(map(str, Path(folder).glob(names)))


class Keeper:
    """One launcher, for one client."""

    def __init__(self, client: int, folder: Path, command: Sequence[str]) -> None:
        """Raises ProcessLookupError if the client has already ended."""
        self._client = process_descriptor(client)
        self._told, tells = os.pipe()
        signal.signal(signal.SIGTERM, lambda *_: os.write(tells, b"."))
        self._folder = folder
        self._of_others = _of_others()
        self._left_behind: set[str] = set()
        folder.mkdir(0o700)
        self._listener = endings.listen(folder)
        self._launcher = subprocess.Popen(command, env={**os.environ, "TMPDIR": str(folder)})
        self._connections: list[socket.socket] = []
        self._rank_of: dict[int, int] = {}  # by a descriptor that can be read once this rank has ended
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # ours alone: each rank takes two descriptors

    def wait(self) -> None:
        """Wait until the launcher, a rank or the client has ended, or the client is done with it (SIGTERM).

        Notes what the ranks share, and which was the first to end.
        """
        launcher, poll = process_descriptor(self._launcher.pid), select.epoll()
        for descriptor in (self._client, self._told, launcher, self._listener.fileno()):
            poll.register(descriptor, select.EPOLLIN)
        pause, known = _LOOKS_EVERY, 0
        while not (ended := self._ended(poll, pause)):
            if self._rank_of:
                self._note_files_of(_started())
            pause = min(2 * pause, _LOOKS_AT_LEAST_EVERY) if len(self._rank_of) == known else _LOOKS_EVERY
            known = len(self._rank_of)
        first, *_ = ended
        if first == launcher or (first in self._rank_of and self._launcher_was_killed()):
            code = self._launcher.wait()
            # Where no rank has started, its own words say more, if there are any.
            first_words = FIRST if self._rank_of or code < 0 else ""
            say(f"{first_words}the launcher {'was ended by signal' if code < 0 else 'exited with code'} {abs(code)}")
        elif first in self._rank_of:
            say(f"{FIRST}rank {self._rank_of[first]} was killed (out of memory?), or exited")

    def _ended(self, poll: select.epoll, pause: float) -> list[int]:
        """What ends within so many seconds, by descriptors, in Linux's order. Accepts the ranks that start."""
        happened = [descriptor for descriptor, _ in poll.poll(pause)]
        while self._listener.fileno() in happened:
            self._accept(poll)
            happened = [descriptor for descriptor, _ in poll.poll(0)]
        return happened

    def _note_files_of(self, processes: Iterable[psutil.Process]) -> None:
        """Note what these processes of ours share, and before the first rank is there, what the launcher describes."""
        self._left_behind |= _shared_files(processes)
        if not self._rank_of:
            # Some may belong to other ranks that are just starting. These have read it, or find out by themselves.
            self._left_behind |= _descriptions()

    def _accept(self, poll: select.epoll) -> None:
        """Accept a rank, and watch for its end."""
        self._note_files_of(())  # what the launcher describes
        connection, process, rank = endings.accept(self._listener)
        self._connections.append(connection)
        descriptors = [connection.fileno()]
        with contextlib.suppress(OSError):
            descriptors.append(process_descriptor(process))  # a child of a rank may hold its connection
        for descriptor in descriptors:
            poll.register(descriptor, select.EPOLLIN)
            self._rank_of[descriptor] = rank
        endings.confirm(connection)

    def _launcher_was_killed(self) -> bool:
        """Whether a rank ended because its launcher was being killed, which drops its ranks before it is dead.

        A launcher that ends because of a rank exits with a code.
        """
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._launcher.wait(_DIES_WITHIN) < 0
        return False

    def end(self) -> None:
        """End the remaining ranks, and remove what they had."""
        left = _started()
        self._note_files_of(left)
        _send(left, signal.SIGCONT)
        until = monotonic() + _MOMENT
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._launcher.wait(_MOMENT)
        psutil.wait_procs(left, max(0.0, until - monotonic()) if self._launcher.poll() is None else 0.1)
        while left := _started():
            _send(left, signal.SIGSTOP)
            self._note_files_of(left)  # again: ranks that were just starting share more by now
            _send(left, signal.SIGKILL)
            psutil.wait_procs(left, 0.1)
        of_mpi = {str(path) for name in _OF_MPI for path in _SHARED.glob(name)}
        self._left_behind |= _abandoned(of_mpi - self._of_others - self._left_behind)
        for path in self._left_behind - self._of_others:
            with contextlib.suppress(OSError):
                os.unlink(path)
        say(last_words(self._folder))
        shutil.rmtree(self._folder, ignore_errors=True)


@children_are_waited_for()
def main() -> None:
    """Keep the ranks of a client."""
    client, folder, *command = sys.argv[1:]
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # a terminal's signals are for the client to handle
    _adopt_orphans()
    try:
        keeper = Keeper(int(client), Path(folder), command)
    except ProcessLookupError:
        return
    try:
        keeper.wait()
    finally:
        keeper.end()


if __name__ == "__main__":
    main()
