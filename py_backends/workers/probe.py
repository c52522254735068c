"""Finds the backends of this machine, plug-ins included. Each is probed in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from py_backends import registry
from py_backends.contract import Backend, Target
from py_backends.plugins import Plugin
from py_backends.system.signals import children_are_waited_for
from py_backends.workers.process import Worker, WorkerFailed

_AT_ONCE = 4
_UNKNOWN = "unknown"
"""The target of a backend whose targets could not be listed."""


class BackendTarget(NamedTuple):
    """A backend and one of its targets."""

    backend: str
    target: Target


def timed_targets(found: Sequence[BackendTarget]) -> set[tuple[str, str]]:
    """The backends and targets that can be timed."""
    return {(backend, target.name) for backend, target in found if target.available and not target.emulated}


@dataclass(frozen=True)
class BroughtKernel:
    """A kernel of a plug-in.

    package: the distribution, with its version.
    backends: those that have a source for it.
    reason, fix: why it is not available, and what would change that; None if it is.
    """

    kernel: str
    package: str
    backends: tuple[str, ...]
    reason: str | None = None
    fix: str | None = None


def backends() -> list[BackendTarget]:
    """Every backend with every target: available or not, device, version, the reason and the fix."""
    return probe(names())


def names() -> list[str]:
    """Every backend that doctor reports on: those that a request may name, and refused ones."""
    return sorted({*registry.backend_names(), *registry.refused_backends()})


def origin(backend: str) -> str | None:
    """The package of a backend from a plug-in, with its version; None for the project's own."""
    plugin = registry.backend_plugin(backend)
    return plugin.origin if plugin and plugin.refusal is None else None


def kernels() -> list[BroughtKernel]:
    """Every kernel that a plug-in declares, with its fault if it has one."""
    return [_brought(plugin) for plugin in registry.kernel_plugins()]


def _brought(plugin: Plugin) -> BroughtKernel:
    if plugin.refusal is not None:
        return BroughtKernel(plugin.name, plugin.origin, (), plugin.refusal, plugin.fix)
    wrong = registry.broken_kernels().get(plugin.name)
    found = tuple(name for name in registry.backend_names() if registry.kernel_files(plugin.name, name))
    if wrong is not None:
        return BroughtKernel(plugin.name, plugin.origin, found, wrong.reason, wrong.fix)
    return BroughtKernel(plugin.name, plugin.origin, found)


@children_are_waited_for()
def probe(names: Sequence[str], targets: Sequence[str] = (), threads: Sequence[int] = ()) -> list[BackendTarget]:
    """Every target of the named backends, in their order.

    targets: names of further targets, which some backends have without listing them.
    threads: numbers of threads. For each, a target tells which target of its kind has that many.

    A driver that crashes or hangs while it is probed gives a missing target, with that reason.
    """
    workers: list[Worker] = []
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        try:
            asked = {"named": list(targets), "threads": list(threads)}
            found = list(pool.map(lambda name: _targets(name, asked, workers), names))
        except KeyboardInterrupt:
            for worker in workers:
                worker.kill()  # so that nothing waits for a driver that hangs
            raise
    return [BackendTarget(name, target) for name, targets in zip(names, found, strict=True) for target in targets]


def _targets(backend: str, asked: Mapping[str, Any], workers: list[Worker]) -> list[Target]:
    """The targets of a backend, and a missing one with the reason if a plug-in's backend of that name was refused."""
    found = _probed(backend, asked, workers) if backend in registry.backend_names() else []
    refused = registry.refused_backends().get(backend)
    return [*found, _unknown(refused.reason, refused.fix)] if refused else found


def _probed(backend: str, asked: Mapping[str, Any], workers: list[Worker]) -> list[Target]:
    try:
        with _worker(workers) as worker:
            answer = worker.ask("targets", backend=backend, **asked)
    except WorkerFailed as failed:
        return [_missing(backend, failed)]
    targets = [Target(**fields | {"on_threads": dict(fields["on_threads"])}) for fields in answer["targets"]]
    return [_started(backend, target, workers) if target.environment else target for target in targets]


def _started(backend: str, target: Target, workers: list[Worker]) -> Target:
    """The target, or a missing one if it does not start.

    Its variables must be set before anything is imported, so it needs a worker of its own.
    """
    try:
        with _worker(workers, target.environment) as worker:
            worker.ask("open", backend=backend, target=target.name, threads=1)
    except WorkerFailed as failed:
        return Target.missing(target.name, failed.reason, failed.fix, target.dtypes)
    return target


@contextmanager
def _worker(workers: list[Worker], environment: Mapping[str, str] | None = None) -> Iterator[Worker]:
    """A worker of its own. It is among the `workers` before it is asked, so that others can end it."""
    worker = Worker(environment)
    workers.append(worker)
    try:
        yield worker
    finally:
        worker.close()


def _missing(backend: str, failed: WorkerFailed) -> Target:
    """The missing target of a backend that could not be probed. The reason names the package of a plug-in."""
    if failed.status == "unavailable":
        return _unknown(failed.reason, failed.fix)
    plugin = registry.backend_plugin(backend)
    whose = f" in {plugin.origin}" if plugin else ""
    return _unknown(f"probing it{whose} failed: {failed.reason}", failed.fix or (plugin.fix if plugin else None))


def _unknown(reason: str, fix: str | None) -> Target:
    """The missing target of a backend that could not be probed. It is taken to have the usual number formats."""
    return Target.missing(_UNKNOWN, reason, fix, dict.fromkeys(registry.promised_kernels(), Backend.dtypes))
