"""MPI: ranks are processes that share no memory, of one thread or several. The fastest backend computes in each."""

from __future__ import annotations

import os
import re

from py_backends import contract
from py_backends.contract import Target
from py_backends.errors import BackendUnavailable, WrongRequest
from py_backends.limits import MOST_THREADS
from py_backends.number_formats import DTYPES
from py_backends.ranks import served
from py_backends.ranks.device import Device
from py_backends.ranks.engine import engine
from py_backends.system import cpu

_TARGET = re.compile(r"([1-9]\d{0,4})x([1-9]\d{0,4})", re.ASCII)


class Backend(contract.Backend):
    """Targets are ranks x threads of each: distributed memory, shared memory, and mixtures."""

    dtypes = DTYPES

    def targets(self) -> list[Target]:
        there = served()
        if there:
            names = [f"{there.ranks}x{there.threads}", f"1x{there.threads}"]
        else:
            names = _memory_models(len(os.sched_getaffinity(0)))
        return [_target(name) for name in dict.fromkeys(names)]

    def target(self, name: str) -> Target | None:
        """Any number of ranks of any number of threads, each up to `MOST_THREADS`."""
        try:
            _ranks_and_threads(name)
        except WrongRequest:
            return None
        return _target(name)

    def on_threads(self, target: str, threads: int) -> str | None:
        """One rank of all threads, or at most as many ranks as fit with the target's threads."""
        ranks, of_each = map(int, target.split("x"))
        if ranks == 1 < of_each or threads < of_each:
            ranks, of_each = 1, threads
        elif threads % of_each == 0:
            ranks = threads // of_each
        else:
            return None
        there = served()
        enough = there is None or (ranks <= there.ranks and of_each <= there.threads)
        return f"{ranks}x{of_each}" if enough else None

    def open(self, target: str, threads: int) -> contract.Device:
        ranks, of_each = _ranks_and_threads(target)
        return Device(ranks, of_each, threads)


def _target(name: str) -> Target:
    there = served()
    try:
        ranks, _ = _ranks_and_threads(name)
    except WrongRequest as wrong:  # a launcher may start any number
        return Target.missing(name, str(wrong), "have the launcher start fewer")
    if there and ranks > there.ranks:
        return Target.missing(name, f"the launcher has started {there.ranks} ranks", f"have it start {ranks}")
    try:
        version = "ranks of the launcher" if there else engine().name
    except BackendUnavailable as unavailable:
        return Target.missing(name, unavailable.reason, unavailable.fix)
    return Target(name, device=cpu.name(), version=version, borrowed=True)


def _memory_models(cpus: int) -> list[str]:
    """Ranks x threads: distributed memory, shared memory, and the most even mixture."""
    divisors = [ranks for ranks in range(1, cpus + 1) if cpus % ranks == 0]
    between = min(divisors, key=lambda ranks: (abs(ranks - cpus // ranks), -ranks))
    return list(dict.fromkeys(f"{ranks}x{cpus // ranks}" for ranks in (cpus, between, 1)))


def _ranks_and_threads(target: str) -> tuple[int, int]:
    named = _TARGET.fullmatch(target)
    if named is None:
        raise WrongRequest(f"a target of mpi is RANKSxTHREADS, such as 2x1, not {target!r}")
    ranks, threads = map(int, named.groups())
    if max(ranks, threads) > MOST_THREADS:
        raise WrongRequest(f"{target} is more than {MOST_THREADS} ranks or threads")
    return ranks, threads
