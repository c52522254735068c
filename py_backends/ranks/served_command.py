"""One command among ranks that a launcher started: `mpirun -n P py-backends compare` is one comparison, not P.

Every process becomes a rank. The first one starts the command as its child, which finds these ranks by a variable
and starts none of its own.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
from collections.abc import Sequence

from py_backends.errors import BackendUnavailable, WrongRequest
from py_backends.ranks import SERVED, launcher, messages
from py_backends.ranks.interface import MPI
from py_backends.ranks.rank import Clients, Ranks
from py_backends.ranks.session import FIRST
from py_backends.system import interpreter, surroundings
from py_backends.system.descriptors import process_descriptor


def serve_command(arguments: Sequence[str], interrupting: Sequence[signal.Signals]) -> int:
    """Run a command on the first rank, and serve it with all ranks. Returns its exit code on every rank.

    Raises WrongRequest if the processes are no ranks of one world, and BackendUnavailable if messages get lost.

    interrupting: the signals upon which a command writes what is finished, and ends. Launchers and schedulers send them
        to ranks. So the first one passes them on, and the others wait for its end.
    """
    world = MPI.COMM_WORLD
    try:
        launcher.check_world(world.size)
    except BackendUnavailable as error:
        raise WrongRequest(str(error)) from error
    messages.check(world)
    ranks = Ranks(world)
    cpus, threads = _cpus_and_threads(world)
    if world.rank != FIRST:
        for number in interrupting:
            signal.signal(number, signal.SIG_IGN)
        ranks.follow()
        return int(world.bcast(None, FIRST))
    code = 1
    try:
        code = _run(arguments, interrupting, ranks, cpus, f"{world.size}x{threads}")
    finally:  # the others wait for it, also where it has failed
        ranks.pass_on({"do": "end"})
        world.bcast(code, FIRST)
    return code


def _run(
    arguments: Sequence[str], interrupting: Sequence[signal.Signals], ranks: Ranks, cpus: set[int], shape: str
) -> int:
    """Run the command as a child of the first rank. Returns its exit code."""
    name = f"py-backends-{secrets.token_hex(6)}"
    clients = Clients(ranks, f"\0{name}")
    child = subprocess.Popen(
        interpreter.command("py_backends", *arguments),
        env=launcher.without_launcher(surroundings.environment({SERVED: f"{shape}:{name}"})),
    )
    for number in interrupting:
        signal.signal(number, lambda number, _: child.send_signal(number))
    os.sched_setaffinity(child.pid, cpus)  # otherwise it has only the core of this rank
    clients.serve(until=process_descriptor(child.pid))
    code = child.wait()
    return code if code >= 0 else 128 - code  # ended by a signal, as a shell tells it


def _cpus_and_threads(world: MPI.Intracomm) -> tuple[set[int], int]:
    """The CPUs of all ranks of this machine, and for how many threads each rank of the world has CPUs."""
    here = os.uname().nodename, frozenset(os.sched_getaffinity(0))
    of_all = world.allgather(here)
    cpus = set().union(*(own for node, own in of_all if node == here[0]))
    return cpus, max(1, min(len(own) // of_all.count((node, own)) for node, own in of_all))
