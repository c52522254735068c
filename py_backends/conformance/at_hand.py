"""What this machine has, probed once a test session when a test asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter

from py_backends import registry
from py_backends.contract import Target
from py_backends.workers.probe import BackendTarget, probe

_probed: dict[tuple[str, tuple[str, ...]], list[Target]] = {}


def found(names: Sequence[str] | None = None, targets: Sequence[str] = ()) -> list[BackendTarget]:
    """Every target of these backends, or of all where None. Missing ones are included.

    So are those of `targets` that a backend has only when they are named.
    """
    names, named = registry.backend_names() if names is None else names, tuple(targets)
    new = [name for name in names if (name, named) not in _probed]
    _probed.update({(name, named): [] for name in new})
    for name, target in probe(new, named) if new else ():
        _probed[name, named].append(target)
    return [BackendTarget(name, target) for name in names for target in _probed[name, named]]


def targets_of(backend: str) -> list[Target]:
    """Every target of a backend, missing ones included."""
    return [target for _, target in found([backend])]


def at_hand(names: Sequence[str] | None = None) -> list[BackendTarget]:
    """What tests run on: the targets that are there. A backend without any has the one that says why."""
    chosen = []
    for _, of_backend in groupby(found(names), key=attrgetter("backend")):
        every = list(of_backend)
        chosen += [each for each in every if each.target.available] or every[:1]
    return chosen


def has_device(backend: str) -> bool:
    """Whether a backend has a target that is not emulated."""
    return any(target.available and not target.emulated for target in targets_of(backend))


def why_missing(backend: str, target: Target | None = None) -> str | None:
    """Why a backend, or one of its targets, is not there, with the fix. None where it is."""
    candidates = [target] if target else targets_of(backend)
    if any(candidate.available for candidate in candidates):
        return None
    missing = candidates[0]
    return f"{missing.reason} (to change that: {missing.fix})"
