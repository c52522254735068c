"""The program of a rank. It waits for commands without using a core, and does them together with the other ranks.

Clients are processes that have opened a device of ranks. The first rank answers them at a Unix socket, and passes their
requests on to all ranks. `world` starts this as `python -m py_backends.ranks.rank FOLDER CPUS` under a launcher of MPI.
"""

from __future__ import annotations

import faulthandler
import json
import os
import select
import socket
import sys
import traceback
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import numpy as np

from py_backends.contract import Array
from py_backends.errors import BackendUnavailable
from py_backends.ranks import SOCKET, endings, launcher, messages
from py_backends.ranks.communicator import CountingCommunicator, Tally
from py_backends.ranks.interface import MPI
from py_backends.ranks.log import say
from py_backends.ranks.progress import Progress
from py_backends.ranks.session import FIRST, Session
from py_backends.system.channel import Channel
from py_backends.system.shared_memory import SharedMemory

_LARGEST_COMMAND = 1024
"""Every command is sent as so many bytes, since a waiting rank cannot know its length."""
_SPINS, _NAPS = 0.005, 0.003
"""For how many seconds an idle rank polls for the next command, which may follow at once. Then it sleeps the second
number of seconds between two checks. MPI itself would use a whole core to wait."""


class Ranks:
    """All ranks of the world, with a session for each client. Every rank has the same sessions."""

    def __init__(self, world: MPI.Intracomm, folder: Path | None = None) -> None:
        """`folder` shows to those who wait for the ranks which of them compute."""
        self._world = world
        self._aborted = False
        self._progress = Progress(folder, world.rank, world.size)
        self._sessions: dict[int, Session | None] = {}
        self._command = np.zeros(_LARGEST_COMMAND, np.uint8)

    def pass_on(self, command: dict[str, Any]) -> None:
        """Send a command from the first rank to all others."""
        encoded = json.dumps(command).encode()
        assert len(encoded) <= _LARGEST_COMMAND, "a command is a few names and numbers"
        self._command[:] = ord(" ")
        self._command[: len(encoded)] = np.frombuffer(encoded, np.uint8)
        self._world.Ibcast([self._command, MPI.BYTE], FIRST).Wait()

    def follow(self) -> None:
        """What all ranks but the first do: the commands that it passes on, until they are to end."""
        while (command := self._next())["do"] != "end":
            self.do(command, None)

    def _next(self) -> dict[str, Any]:
        request = self._world.Ibcast([self._command, MPI.BYTE], FIRST)
        spun = monotonic() + _SPINS
        while not request.Test():
            if monotonic() < spun:
                os.sched_yield()
            else:
                sleep(_NAPS)
        command: dict[str, Any] = json.loads(self._command.tobytes())
        return command

    def do(self, command: dict[str, Any], memory: Array | None) -> dict[str, Any]:
        """Do a command together with all ranks. The first rank's return value is the answer.

        An error in the middle leaves the others waiting for this rank, so it ends them all.
        """
        arguments = dict(command)
        do, client = arguments.pop("do"), arguments.pop("client")
        if memory is not None:
            arguments["memory"] = memory
        try:
            answer: dict[str, Any] = getattr(self, f"_{do}", partial(self._in_session, do))(client, **arguments)
        except BaseException:  # also a kernel's sys.exit
            self.abort()
            raise
        return answer

    def _in_session(self, do: str, client: int, **arguments: Any) -> dict[str, Any]:
        """Do what a session does alone, if this is one of the client's ranks. There is nothing to answer."""
        if session := self._sessions[client]:
            getattr(session, do)(**arguments)
        return {}

    def abort(self) -> None:
        """End all ranks for an error in this one, and say so once. Otherwise they would wait for it for ever."""
        if self._aborted:
            return
        self._aborted = True
        traceback.print_exc()
        line = f"rank {self._world.rank}: {_last_line()}"
        self._progress.say(line)
        say(line)
        self._world.Abort(1)

    def _open(self, client: int, ranks: int, threads: int) -> dict[str, Any]:
        """Open a session of the first so many ranks. The others have none."""
        world = self._world
        some = world.Split(0 if world.rank < ranks else MPI.UNDEFINED, world.rank)
        processes = world.gather((os.uname().nodename, os.getpid()), FIRST) or []
        self._sessions[client] = None
        if isinstance(some, MPI.Intracomm) and some:
            self._sessions[client] = Session(CountingCommunicator(some, Tally(progress=self._progress)), threads)
        here = os.uname().nodename
        return {
            "ranks": world.size,
            "machines": len({node for node, _ in processes[:ranks]}),
            "processes": [pid for node, pid in processes if node == here],
        }

    def _close(self, client: int) -> dict[str, Any]:
        if session := self._sessions.pop(client, None):  # none if the client has left before it opened one
            session.ranks.free()
        return {}

    def _prepare(self, client: int, **what: str) -> dict[str, Any]:
        by, failed = "", None
        if session := self._sessions[client]:
            try:
                by = session.prepare(**what)
            except BackendUnavailable as unavailable:
                failed = unavailable.reason, unavailable.fix
        said = self._world.gather((by, failed), FIRST) or []
        for _, failed in said:
            if failed:
                return {"failed": "unavailable", "reason": failed[0], "fix": failed[1]}
        return {"by": list(dict.fromkeys(by for by, _ in said if by))}

    def _measure(self, client: int, **what: Any) -> dict[str, Any]:
        session = self._sessions[client]
        return {} if session is None else {"seconds": session.measure(**what)}

    def _launch(self, client: int, **what: Any) -> dict[str, Any]:
        """For each rank, the seconds of the kernel and of communication in it, and the bytes that it sent and held."""
        session = self._sessions[client]
        if session is None:
            return {}
        figures = np.array(session.launch(**what), np.float64)
        of_all = np.empty((session.ranks.size, len(figures)))
        session.ranks.mpi.Gather(figures, of_all, FIRST)
        if session.ranks.rank != FIRST:
            return {}
        kernel, communicating, sent, held = of_all.T.tolist()
        counts = {"sent": list(map(int, sent)), "held": list(map(int, held))}
        return {"kernel": kernel, "communicating": communicating} | counts


class Clients:
    """What the first rank does: it brings the commands and arrays of all clients to all ranks."""

    def __init__(self, ranks: Ranks, address: str) -> None:
        self._ranks = ranks
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(address)
        self._listener.listen()
        self._clients: dict[int, Channel] = {}
        self._memory: dict[tuple[int, int, bool], SharedMemory] = {}

    def serve(self, *, until: int | None = None) -> None:
        """Answer until the last client has left, or until the descriptor `until` can be read, if there is one."""
        poll = select.poll()
        for descriptor in filter(None, (self._listener.fileno(), until)):
            poll.register(descriptor, select.POLLIN)
        while True:
            for descriptor, _ in poll.poll():
                if descriptor == until:
                    return
                if descriptor == self._listener.fileno():
                    if channel := self._accept():
                        self._clients[channel.fileno()] = channel
                        poll.register(channel.fileno(), select.POLLIN)
                elif not self._answer(descriptor):
                    poll.unregister(descriptor)
                    self._leave(descriptor)
                    if not self._clients and until is None:
                        return

    def _accept(self) -> Channel | None:
        """A new client; None if it belongs to another user, whom an abstract address does not keep away."""
        accepted, _ = self._listener.accept()
        _, user = endings.other_end(accepted)
        if user != os.geteuid():
            accepted.close()
            return None
        return Channel(accepted)

    def _answer(self, client: int) -> bool:
        """Answer one request. False if the client has left."""
        channel = self._clients[client]
        received = channel.receive()
        if received is None:
            return False
        request, descriptors = received
        for key in request.pop("forgotten", ()):
            self._forget(client, key)
        memory = self._array(client, request.pop("memory", None), descriptors)
        command = {"client": client, **request}
        self._ranks.pass_on(command)
        answer = self._ranks.do(command, memory)
        try:
            channel.send(answer)
        except ConnectionError:
            return False
        return True

    def _array(self, client: int, where: dict[str, Any] | None, descriptors: Sequence[int]) -> Array | None:
        """The caller's array, in memory that it shares. It is mapped once, and again for writing."""
        if where is None:
            return None
        key = client, where["key"], where["writable"]
        for descriptor in descriptors:
            if key in self._memory:
                self._memory.pop(key).close()
            self._memory[key] = SharedMemory.attach(descriptor, where["capacity"], writable=where["writable"])
        first = where["first"]
        array: Array = self._memory[key].bytes[first : first + where["bytes"]].view(where["dtype"])
        return array

    def _forget(self, client: int, key: int) -> None:
        for writable in (False, True):
            if memory := self._memory.pop((client, key, writable), None):
                memory.close()

    def _leave(self, client: int) -> None:
        self._clients.pop(client).close()
        for _, key, _ in [each for each in self._memory if each[0] == client]:
            self._forget(client, key)
        command = {"do": "close", "client": client}
        self._ranks.pass_on(command)
        self._ranks.do(command, None)


def _last_line() -> str:
    kind, error, _ = sys.exc_info()
    return f"{kind.__name__ if kind else 'error'}: {error}"


def main() -> None:
    """Serve clients until the last has left."""
    folder, cpus = Path(sys.argv[1]), json.loads(sys.argv[2])
    world = MPI.COMM_WORLD
    try:
        launcher.check_world(world.size)
        messages.check(world)
    except BackendUnavailable as unavailable:
        if world.rank == FIRST:  # the others would say the same
            say(f"rank {FIRST}: {unavailable}")
        sys.exit(1)
    faulthandler.enable()
    ranks = Ranks(world, folder)
    try:
        if len(cpus) == world.size:  # the project has assigned them to as many ranks as there are
            os.sched_setaffinity(0, cpus[world.rank])
        endings.connect(folder, world.rank)
        world.Barrier()  # whoever finds the first rank finds all
        if world.rank == FIRST:
            Clients(ranks, str(folder / SOCKET)).serve()
            ranks.pass_on({"do": "end"})
        else:
            ranks.follow()
    except BaseException:
        ranks.abort()
        raise


if __name__ == "__main__":
    main()
