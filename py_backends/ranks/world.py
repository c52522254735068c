"""A client's side of some ranks: starts them, asks them, and tells how they ended."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import tempfile
import weakref
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from threading import RLock
from time import monotonic, sleep
from typing import Any

from py_backends import interpreter
from py_backends.channel import Channel
from py_backends.contract import Array
from py_backends.errors import BackendUnavailable
from py_backends.ranks import launcher, served
from py_backends.ranks.engine import engine
from py_backends.shared_memory import SharedMemory, behind

_SOCKET = "ranks"
_STARTS_WITHIN, _LOOKS_EVERY = 60.0, 0.002
_RELEASED_AT_ONCE = 50
"""Buffers whose numbers one command has room for."""
_MOST_LINES, _LONGEST_LINE, _END_OF_LOG = 3, 500, 4096


class RanksEnded(RuntimeError):
    """The ranks are gone; says what they last wrote."""


class World:
    """Some ranks, of some threads each, started for this process or there before it.

    Its methods may be called from several threads.
    """

    def __init__(self, ranks: int, threads: int) -> None:
        """BackendUnavailable where they do not start, or other ones do."""
        self._lock = RLock()
        self._log = _Log()
        self._keeper: subprocess.Popen[bytes] | None = None
        there = served()
        folder = there.folder if there else self._start(ranks, threads)
        self._channel = self._connected(folder)
        self._numbers = count()
        self._known: set[tuple[int, bool]] = set()
        self._forgotten: list[int] = []
        self._released: list[int] = []
        self._staged: SharedMemory | None = None
        opened = self.ask("open", ranks=ranks, threads=threads)
        self.processes: tuple[int, ...] = () if there else tuple(opened["processes"])
        self.library: str = opened["library"]
        if opened["ranks"] < ranks or (self._keeper and opened["ranks"] != ranks):
            self.close()
            raise BackendUnavailable(f"{ranks} ranks were to start, and {opened['ranks']} did")

    def ask(
        self,
        do: str,
        array: Array | None = None,
        *,
        writable: bool = False,
        **arguments: Any,
    ) -> dict[str, Any]:
        """Have all ranks do something, and the first one with an array; RanksEnded where that was their end."""
        with self._lock:
            memory, descriptors, written_back = self._shared(array, writable)
            while self._released:
                released, self._released = self._released[:_RELEASED_AT_ONCE], self._released[_RELEASED_AT_ONCE:]
                self._exchange({"do": "release", "buffers": released}, [])
            answer = self._exchange({"do": do, **arguments, **memory}, descriptors)
            if written_back is not None and array is not None:
                array[...] = written_back
        if answer.get("failed") == "unavailable":
            raise BackendUnavailable(answer["reason"], answer["fix"])
        return answer

    def new_number(self) -> int:
        """Of a buffer."""
        return next(self._numbers)

    def release(self, number: int) -> None:
        """Let go of a buffer, when something is asked the next time: what a message costs is not lost on it."""
        self._released.append(number)

    def close(self) -> None:
        """Let the ranks end."""
        self._channel.close()
        if self._keeper:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._keeper.wait(_STARTS_WITHIN)

    def _start(self, ranks: int, threads: int) -> Path:
        """Start ranks, and what ends them with this process; the folder where they can be found."""
        found = engine()
        folder = Path(tempfile.mkdtemp(prefix="py-backends-"))
        rank = interpreter.command("py_backends.ranks.rank", str(folder), json.dumps(_shares(ranks, threads)))
        command = [*found.command(ranks), *rank]
        self._keeper = subprocess.Popen(
            interpreter.command("py_backends.ranks.keeper", str(os.getpid()), str(folder), *command),
            env=launcher.without_launcher(interpreter.environment(found.environment)),
            stdin=subprocess.DEVNULL,
            stdout=self._log.descriptor,
            stderr=self._log.descriptor,
            start_new_session=True,  # it outlives us by a moment, and Ctrl-C is not its affair
        )
        return folder

    def _connected(self, folder: Path) -> Channel:
        """The way to the first rank, once that listens; BackendUnavailable where it does not come to it."""
        until = monotonic() + _STARTS_WITHIN
        while monotonic() < until:
            end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            try:
                end.connect(str(folder / _SOCKET))
            except (FileNotFoundError, ConnectionRefusedError):
                end.close()
            else:
                return Channel(end)
            if self._keeper and self._keeper.poll() is not None:
                raise BackendUnavailable(f"the ranks did not start{self._log.told()}")
            sleep(_LOOKS_EVERY)
        raise BackendUnavailable(f"no rank answered on this machine within {_STARTS_WITHIN:g} s{self._log.told()}")

    def _exchange(self, request: dict[str, Any], descriptors: Sequence[int]) -> dict[str, Any]:
        try:
            self._channel.send({**request, "forgotten": self._forgotten}, descriptors)
            self._forgotten = []
            received = self._channel.receive()
        except ConnectionError:
            received = None
        if received is None:
            if self._keeper:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._keeper.wait(_STARTS_WITHIN)  # until all that they wrote is there
            raise RanksEnded(f"the ranks ended during '{request['do']}'{self._log.told()}")
        return received[0]

    def _shared(self, array: Array | None, writable: bool) -> tuple[dict[str, Any], list[int], Array | None]:
        """How the first rank is told of an array, the descriptors that go along, and memory to copy back from."""
        if array is None:
            return {}, [], None
        place, written_back = behind(array), None
        if place is None:
            staged = self._room(array.nbytes)
            copy = staged.bytes[: array.nbytes].view(array.dtype)
            copy[...] = array
            place, written_back = behind(staged.bytes), copy if writable else None
        if place is None:  # no elements
            return {}, [], None
        memory, first = place
        key = id(memory)
        descriptors = []
        if (key, writable) not in self._known:
            descriptors = [memory.descriptor]
            self._known.add((key, writable))
            weakref.finalize(memory, self._forget, key)
        about = {
            "key": key,
            "writable": writable,
            "capacity": memory.bytes.nbytes,
            "first": first,
            "bytes": array.nbytes,
            "dtype": array.dtype.name,
        }
        return {"memory": about}, descriptors, written_back

    def _room(self, needed: int) -> SharedMemory:
        """Memory that the first rank can map, for arrays that lie where it cannot."""
        if self._staged is None or self._staged.bytes.nbytes < needed:
            if self._staged:
                self._staged.close()
            self._staged = SharedMemory.create(max(needed, 1))
        return self._staged

    def _forget(self, key: int) -> None:
        """Memory is gone here, and is to go there."""
        if any(each in self._known for each in ((key, False), (key, True))):
            self._known -= {(key, False), (key, True)}
            self._forgotten.append(key)


class _Log:
    """What ranks and their launcher write, in memory without a name: they never wait for somebody to read it."""

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("py-backends-ranks")
        os.set_inheritable(self.descriptor, False)

    def told(self) -> str:
        """The last lines that say something, to follow a sentence."""
        size = os.fstat(self.descriptor).st_size
        end = os.pread(self.descriptor, _END_OF_LOG, max(0, size - _END_OF_LOG)).decode(errors="replace")
        lines = [line.strip()[-_LONGEST_LINE:] for line in end.splitlines() if line.strip()]
        ours = [line for line in lines if line.startswith("rank ")] or lines[-_MOST_LINES:]
        return f": {' / '.join(ours)}" if ours else ""


def _shares(ranks: int, threads: int) -> list[list[int]]:
    """The CPUs of each rank, where there are enough for all of their threads; none where the system is to decide."""
    cpus = sorted(os.sched_getaffinity(0))
    if ranks * threads > len(cpus):
        return []
    return [cpus[rank * threads : (rank + 1) * threads] for rank in range(ranks)]
