"""What this machine has, as tests ask for it: probed once a test session."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from py_backends import registry
from py_backends.contract import Target
from py_backends.harness.doctor import BackendTarget, probe

_probed: dict[str, list[Target]] = {}


@cache
def found() -> list[BackendTarget]:
    """Every backend with every target."""
    names = registry.backend_names()
    _probe(names)
    return [BackendTarget(name, target) for name in names for target in _probed[name]]


def targets_of(backend: str) -> list[Target]:
    """Every target of a backend, those that are missing too."""
    _probe([backend])
    return _probed[backend]


def at_hand(names: Sequence[str] | None = None) -> list[BackendTarget]:
    """What tests run on: the targets that are there, and of a backend without any the one that says why."""
    names = registry.backend_names() if names is None else names
    _probe(names)
    return [
        BackendTarget(name, target)
        for name in names
        for target in _probed[name]
        if target.available or (target is _probed[name][0] and not any(each.available for each in _probed[name]))
    ]


def has_device(backend: str) -> bool:
    """Whether a backend has a target that is not emulated."""
    return any(target.available and not target.emulated for target in targets_of(backend))


def why_missing(backend: str, target: Target | None = None) -> str | None:
    """The reason why a backend, or one target of it, is not there, with the fix; None where it is."""
    candidates = [target] if target else targets_of(backend)
    if any(candidate.available for candidate in candidates):
        return None
    missing = candidates[0]
    return f"{missing.reason} (to change that: {missing.fix})"


def _probe(names: Sequence[str]) -> None:
    unknown = [name for name in names if name not in _probed]
    for name in unknown:
        _probed[name] = []
    for name, target in probe(unknown) if unknown else ():
        _probed[name].append(target)
