"""Finds out what this machine has: every backend is probed in a process of its own."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from py_backends import _discovery
from py_backends._contract import Target
from py_backends.harness.workers import Worker, WorkerFailed

_AT_ONCE = 4


class BackendTarget(NamedTuple):
    """A backend and one of the targets on which it may run here."""

    backend: str
    target: Target


def backends() -> list[BackendTarget]:
    """Every backend with every target: available or not, device, version, the reason and the fix."""
    return probe(_discovery.backend_names())


def probe(names: Sequence[str]) -> list[BackendTarget]:
    """Every target of the named backends, in their order.

    A driver that crashes or hangs while it is looked for is a target that is missing, with that reason.
    """
    workers: list[Worker] = []
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        try:
            found = list(pool.map(lambda name: _targets(name, workers), names))
        except KeyboardInterrupt:
            for worker in workers:
                worker.kill()  # nobody is to wait for a driver that hangs
            raise
    return [BackendTarget(name, target) for name, targets in zip(names, found, strict=True) for target in targets]


def _targets(backend: str, workers: list[Worker]) -> list[Target]:
    worker = Worker()
    workers.append(worker)
    try:
        answer = worker.ask("targets", backend=backend)
    except WorkerFailed as failed:
        return [Target.missing("unknown", f"looking for it failed: {failed.reason}", failed.fix)]
    finally:
        worker.close()
    targets: list[dict[str, Any]] = answer["targets"]
    return [Target(**fields) for fields in targets]
