"""Finds the backends of this machine, each probed in a process of its own, and those of plug-ins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

from py_backends import registry
from py_backends.contract import Backend, Target
from py_backends.harness.workers import Worker, WorkerFailed
from py_backends.plugins import Plugin

_AT_ONCE = 4
_NOWHERE = "unknown"
"""The target of a backend that does not come to say what targets it has."""


class BackendTarget(NamedTuple):
    """A backend and one of the targets on which it may run here."""

    backend: str
    target: Target


@dataclass(frozen=True)
class BroughtKernel:
    """A kernel of a plug-in.

    package: the distribution, with its version.
    backends: those that it has a text for.
    reason, fix: why it is not there, and what would change that; None where it is.
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
    """Every backend that doctor reports on: those that a request may name, and those that are refused."""
    return sorted({*registry.backend_names(), *registry.refused_backends()})


def origin(backend: str) -> str | None:
    """The package of a backend from a plug-in, with its version; None for the project's own."""
    plugin = registry.backend_plugin(backend)
    return plugin.origin if plugin and plugin.refusal is None else None


def kernels() -> list[BroughtKernel]:
    """Every kernel that a plug-in promises, with what is wrong with it."""
    return [_brought(plugin) for plugin in registry.kernel_plugins()]


def _brought(plugin: Plugin) -> BroughtKernel:
    if plugin.refusal is not None:
        return BroughtKernel(plugin.name, plugin.origin, (), plugin.refusal, plugin.fix)
    wrong = registry.broken_kernels().get(plugin.name)
    found = tuple(name for name in registry.backend_names() if registry.kernel_files(plugin.name, name))
    if wrong is not None:
        return BroughtKernel(plugin.name, plugin.origin, found, wrong.reason, wrong.fix)
    return BroughtKernel(plugin.name, plugin.origin, found)


def probe(names: Sequence[str], targets: Sequence[str] = (), threads: Sequence[int] = ()) -> list[BackendTarget]:
    """Every target of the named backends, in their order, and those beyond that some have under the named `targets`.

    threads: numbers of threads, for which targets say what they are on so many.
    A driver that crashes or hangs while it is looked for is a target that is missing, with that reason.
    """
    workers: list[Worker] = []
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        try:
            asked = {"named": list(targets), "threads": list(threads)}
            found = list(pool.map(lambda name: _targets(name, asked, workers), names))
        except KeyboardInterrupt:
            for worker in workers:
                worker.kill()  # nobody is to wait for a driver that hangs
            raise
    return [BackendTarget(name, target) for name, targets in zip(names, found, strict=True) for target in targets]


def _targets(backend: str, asked: Mapping[str, Any], workers: list[Worker]) -> list[Target]:
    """The targets of a backend; for a plug-in with a name that it cannot have, the reason."""
    found = _probed(backend, asked, workers) if backend in registry.backend_names() else []
    refused = registry.refused_backends().get(backend)
    return [*found, _nowhere(refused.reason, refused.fix)] if refused else found


def _probed(backend: str, asked: Mapping[str, Any], workers: list[Worker]) -> list[Target]:
    worker = Worker()
    workers.append(worker)
    try:
        answer = worker.ask("targets", backend=backend, **asked)
    except WorkerFailed as failed:
        return [_missing(backend, failed)]
    finally:
        worker.close()
    targets = [Target(**fields | {"on_threads": dict(fields["on_threads"])}) for fields in answer["targets"]]
    return [_started(backend, target, workers) if target.environment else target for target in targets]


def _started(backend: str, target: Target, workers: list[Worker]) -> Target:
    """A target that needs variables set before anything is imported, which the worker above had not: does it start?"""
    worker = Worker(environment=target.environment)
    workers.append(worker)
    try:
        worker.ask("open", backend=backend, target=target.name, threads=1)
    except WorkerFailed as failed:
        return Target.missing(target.name, failed.reason, failed.fix, target.dtypes)
    finally:
        worker.close()
    return target


def _missing(backend: str, failed: WorkerFailed) -> Target:
    """What is said of a backend that could not be asked. A plug-in's is named by its package."""
    if failed.status == "unavailable":
        return _nowhere(failed.reason, failed.fix)
    plugin = registry.backend_plugin(backend)
    whose = f" in {plugin.origin}" if plugin else ""
    return _nowhere(f"probing it{whose} failed: {failed.reason}", plugin.fix if plugin else None)


def _nowhere(reason: str, fix: str | None) -> Target:
    """What stands for the targets of a backend that cannot be asked, nor which formats it takes: as most, then."""
    return Target.missing(_NOWHERE, reason, fix, dict.fromkeys(registry.promised_kernels(), Backend.dtypes))
