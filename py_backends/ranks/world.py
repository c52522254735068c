"""A client's side of some ranks: starts them, sends requests, and says how they ended."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import shutil
import socket
import subprocess
import sys
import weakref
from collections import deque
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from threading import RLock
from time import monotonic, sleep
from typing import Any

from py_backends.contract import Array
from py_backends.errors import BackendUnavailable
from py_backends.ranks import SOCKET, endings, launcher, new_folder, served
from py_backends.ranks.engine import engine
from py_backends.ranks.log import Log
from py_backends.ranks.progress import who_computes
from py_backends.system import interpreter, surroundings
from py_backends.system.channel import Channel
from py_backends.system.shared_memory import SharedMemory, behind

_STARTS_WITHIN, _LOOKS_EVERY = 60.0, 0.002
_ENDS_WITHIN = 10.0
"""Seconds that a keeper may take to give ranks a moment, and to kill them."""
_ANSWERS_WITHIN = 2.0
"""Seconds in which an interrupted call may still end by itself."""
_SOON, _QUIET = 1.0, 5.0
"""After how many seconds to say that ranks wait for others, and seconds between two checks which they are."""
_SHARED = "/dev/shm"  # noqa: S108  # where Linux keeps what processes share (shm_overview(7))
_SHARED_BY_A_RANK = 6 << 20
"""Bytes that MPICH's wheel takes there for a rank, measured with 2 to 16 of them: 5.3 MiB."""
_numbers = count()
"""Numbers of buffers. No two buffers have the same, on any ranks."""


class RanksEnded(RuntimeError):
    """The ranks have ended. Says which was the first, and how it ended, if that is known."""


class World:
    """Some ranks with some threads each, started for this process or there before it.

    Several threads may call its methods.

    machines: how many they run on.
    processes: those of the ranks on this machine, if this process has started them.
    """

    def __init__(self, ranks: int, threads: int) -> None:
        """Raises BackendUnavailable if they do not start, or others than expected do."""
        self._lock = RLock()
        self._process = os.getpid()
        self._log = Log()
        self._keeper: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        self._first_number = next(_numbers)
        self._keys: weakref.WeakKeyDictionary[SharedMemory, int] = weakref.WeakKeyDictionary()
        self._known: set[tuple[int, bool]] = set()
        self._forgotten: deque[int] = deque()
        self._released: deque[int] = deque()
        self._staged: SharedMemory | None = None
        there = served()
        self._folder: Path | None = None
        try:
            self._channel = self._connected(there.address if there else self._start(ranks, threads), ranks)
            weakref.finalize(self, _part, self._channel, self._keeper, self._process)
            _worlds.add(self)
            opened = self.ask("open", ranks=ranks, threads=threads)
        except BaseException:
            self.close()
            raise
        self.machines: int = opened["machines"]
        self.processes: tuple[int, ...] = () if there else tuple(opened["processes"])
        if opened["ranks"] < ranks or (self._keeper and opened["ranks"] != ranks):
            self.close()
            fix = launcher.pmi_is_needed() if opened["ranks"] == 1 and self._keeper else None
            raise BackendUnavailable(f"{ranks} ranks were to start, and {opened['ranks']} did", fix)

    @property
    def alive(self) -> bool:
        """Whether this process can send them requests. A forked process cannot."""
        return self._channel is not None and self._process == os.getpid()

    def has(self, number: int) -> bool:
        """Whether a buffer was made on these ranks, and not on others that have ended."""
        return number > self._first_number

    def ask(
        self,
        do: str,
        array: Array | None = None,
        *,
        writable: bool = False,
        **arguments: Any,
    ) -> dict[str, Any]:
        """Let all ranks do something, the first one with an array. RanksEnded if they ended over it."""
        with self._lock:
            while released := _taken(self._released, _MOST_RELEASED):
                self._exchange({"do": "release", "buffers": released}, [])
            try:
                memory, descriptors, written_back = self._shared(array, writable)
                answer = self._exchange({"do": do, **arguments, **memory}, descriptors)
            except BaseException:
                self._known.clear()  # it may not have arrived, so it is sent and mapped again
                raise
            if written_back is not None and array is not None:
                array[...] = written_back
        if answer.get("failed") == "unavailable":
            raise BackendUnavailable(answer["reason"], answer["fix"])
        return answer

    def new_number(self) -> int:
        """The number of a new buffer."""
        return next(_numbers)

    def release(self, number: int) -> None:
        """Release a buffer together with the next request, so that it costs no message of its own."""
        self._released.append(number)

    def close(self) -> None:
        """End the ranks: in good order if they are idle, otherwise after a moment."""
        self._hang_up()
        if self._keeper and self._process == os.getpid():
            self._keeper.terminate()
            self._await_keeper()
            if self._folder:
                shutil.rmtree(self._folder, ignore_errors=True)  # if somebody has killed the keeper

    def abandon(self) -> None:
        """In a forked process, close what leads to the ranks of its parent."""
        self._lock = RLock()  # a thread that is not here may have held it
        self._hang_up()
        if self._keeper:
            self._keeper.returncode = 0  # in any case: its parent waits for it

    def _hang_up(self) -> None:
        channel, self._channel = self._channel, None
        if channel:
            channel.close()
        self._staged = None

    def _await_keeper(self) -> None:
        """Wait until everything that ranks and launcher wrote is there, and nothing of them is left."""
        if self._keeper:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._keeper.wait(_ENDS_WITHIN)

    def _start(self, ranks: int, threads: int) -> str:
        """Start ranks, and a keeper that ends them with this process. Returns where the first will listen."""
        found = engine()
        self._folder = new_folder()
        folder = str(self._folder)
        # A launcher that the user names has its own ways to bind ranks.
        shares = [] if os.environ.get(launcher.TEMPLATE) else _shares(ranks, threads)
        rank = interpreter.command("py_backends.ranks.rank", folder, json.dumps(shares))
        command = [*found.command(ranks), *rank]
        with interpreter.without_fork_handlers():
            self._keeper = subprocess.Popen(
                interpreter.command("py_backends.ranks.keeper", str(os.getpid()), folder, *command),
                env=launcher.without_launcher(surroundings.environment(found.environment)),
                stdin=subprocess.DEVNULL,
                stdout=self._log.descriptor,
                stderr=self._log.descriptor,
                start_new_session=True,  # it outlives us by a moment, and ignores Ctrl-C
            )
        return str(self._folder / SOCKET)

    def _connected(self, address: str, ranks: int) -> Channel:
        """The connection to the first rank, once that listens. BackendUnavailable if it never does."""
        until = monotonic() + _STARTS_WITHIN
        while monotonic() < until:
            end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            try:
                end.connect(address)
            except (FileNotFoundError, ConnectionRefusedError):
                end.close()
            else:
                _, user = endings.other_end(end)
                if user != os.geteuid():  # somebody who took the abstract name of ranks that have ended
                    end.close()
                    raise BackendUnavailable("another user listens where the ranks of this command should")
                return Channel(end)
            if self._keeper and self._keeper.poll() is not None:
                told = self._log.told()
                fix = _more_shared_memory(ranks) or _try_the_launcher()
                # A rank that has said what it lacks knows it better.
                raise BackendUnavailable(f"the ranks did not start{told}", None if told.startswith(": rank ") else fix)
            sleep(_LOOKS_EVERY)
        reason = f"no rank answered on this machine within {_STARTS_WITHIN:g} s{self._log.told()}"
        raise BackendUnavailable(reason, _try_the_launcher())

    def _exchange(self, request: dict[str, Any], descriptors: Sequence[int]) -> dict[str, Any]:
        """Send a request, and wait for its answer. An interruption leaves no answer for the next request."""
        channel = self._channel
        if channel is None:
            raise RanksEnded(f"the ranks have ended{self._log.told()}")
        forgotten = _taken(self._forgotten, _MOST_RELEASED)
        try:
            channel.send({**request, "forgotten": forgotten}, descriptors)
            self._wait_for_answer(channel)
            received = channel.receive()
        except ConnectionError:
            received = None
        except BaseException:
            if channel.fileno() < 0:  # closed at the interpreter's end: this is a daemon thread
                raise SystemExit from None  # which ends without a word
            self._end_unless_it_answers(channel)
            raise
        if received is None:
            self._hang_up()
            self._await_keeper()
            raise RanksEnded(f"the ranks ended during '{request['do']}'{self._log.told()}")
        self._log.trim()
        return received[0]

    def _wait_for_answer(self, channel: Channel) -> None:
        """Wait until there is an answer. If the same ranks compute for long while the others wait, say so."""
        poll = select.poll()
        poll.register(channel.fileno(), select.POLLIN)
        began = monotonic()
        before: Sequence[int] = ()
        while not poll.poll(1000 * (_SOON if before else _QUIET)):
            computing = who_computes(self._folder) if self._folder else []
            if computing and computing == before:
                late = " and ".join(map(str, computing))
                told = f"rank {late} has computed for {monotonic() - began:.0f} s, and others wait for it\n"
                with contextlib.suppress(Exception):  # it may be None, or closed: a remark ends no call
                    sys.stderr.write(told)
                    sys.stderr.flush()
                return
            before = computing

    def _end_unless_it_answers(self, channel: Channel) -> None:
        """End an interrupted call, if need be with its ranks. New ones start when needed."""
        poll = select.poll()
        poll.register(channel.fileno(), select.POLLIN)
        try:
            answered = poll.poll(1000 * _ANSWERS_WITHIN) and channel.receive()
        except BaseException:
            self.close()
            raise
        if not answered:
            self.close()

    def _shared(self, array: Array | None, writable: bool) -> tuple[dict[str, Any], list[int], Array | None]:
        """How to tell the first rank about an array: message, descriptors to send, and memory to copy back from."""
        if array is None or not array.nbytes:
            return {}, [], None
        place, written_back = behind(array), None
        if place is None:
            staged = self._room(array.nbytes)
            copy = staged.bytes[: array.nbytes].view(array.dtype)
            copy[...] = array
            place, written_back = behind(staged.bytes), copy if writable else None
        assert place is not None, "what this process has made lies somewhere"
        memory, first = place
        key = self._keys.get(memory)
        if key is None:
            key = self._keys[memory] = next(_numbers)
            weakref.finalize(memory, _forget, key, self._known, self._forgotten)
        descriptors = []
        if (key, writable) not in self._known:
            descriptors = [memory.descriptor]
            self._known.add((key, writable))
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
        """Memory that the first rank can map, for arrays that it cannot reach."""
        if self._staged is None or self._staged.bytes.nbytes < needed:
            self._staged = None  # first, since the system may not have both, nor give any
            self._staged = SharedMemory.create(needed)
        return self._staged


def _forget(key: int, known: set[tuple[int, bool]], forgotten: deque[int]) -> None:
    """Memory is gone: the first rank is told with the next message."""
    known -= {(key, True), (key, False)}
    forgotten.append(key)


def _part(channel: Channel, keeper: subprocess.Popen[bytes] | None, process: int) -> None:
    """End ranks that nobody needs any more, and wait for their keeper, since nobody else will."""
    if process != os.getpid():
        return
    channel.close()
    if keeper:
        with contextlib.suppress(subprocess.TimeoutExpired):
            keeper.wait(_ENDS_WITHIN)


_MOST_RELEASED = 80
"""How many buffers, or pieces of memory, one message releases at most, since its size is limited."""


def _taken(numbers: deque[int], most: int) -> list[int]:
    """Take at most so many from the front of a queue that any thread may extend."""
    return [numbers.popleft() for _ in range(min(most, len(numbers)))]


_worlds: weakref.WeakSet[World] = weakref.WeakSet()


def _abandon_all() -> None:
    for world in list(_worlds):
        world.abandon()
    _worlds.clear()


@atexit.register
def _close_all() -> None:
    """Leave nothing behind when this process ends."""
    for world in list(_worlds):
        world.close()


os.register_at_fork(after_in_child=_abandon_all)


def _more_shared_memory(ranks: int) -> str | None:
    """The fix where shared memory has no room for so many ranks, which then end by a fault. Docker gives only 64 MB."""
    there = os.statvfs(_SHARED)
    free = there.f_bavail * there.f_frsize
    if free >= ranks * _SHARED_BY_A_RANK:
        return None
    has = f"{_SHARED} has {free >> 20} MB free, and a rank may take {_SHARED_BY_A_RANK >> 20}"
    return f"{has}: make it larger, in Docker by docker run --shm-size=1g"


def _try_the_launcher() -> str | None:
    """The fix where a launcher that the user names has started no rank."""
    template = os.environ.get(launcher.TEMPLATE)
    return template and f"try the launcher by itself, for instance: {template.replace(launcher.RANKS, '2')} hostname"


def _shares(ranks: int, threads: int) -> list[list[int]]:
    """The CPUs of each rank, if there are enough for all of their threads. Empty if the system is to decide."""
    cpus = sorted(os.sched_getaffinity(0))
    if ranks * threads > len(cpus):
        return []
    return [cpus[rank * threads : (rank + 1) * threads] for rank in range(ranks)]
