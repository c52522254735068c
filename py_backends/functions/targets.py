"""The targets of a backend, probed in this process."""

from __future__ import annotations

from collections.abc import Iterable

from py_backends import plugins, registry
from py_backends.contract import Target
from py_backends.functions import trial
from py_backends.system import surroundings


@surroundings.opening()
def targets_of(backend: str, named: Iterable[str] = ()) -> list[Target]:
    """Every probed target of a backend, and further ones that it has under the given names.

    Raises the errors of `registry.backend`, BackendUnavailable if its library would end this process, and others if the
    targets of a plug-in are invalid.
    """
    plugin, asked = registry.backend_plugin(backend), registry.backend(backend)
    trial.check(backend, asked.obeys)
    found = plugins.targets(plugin, asked) if plugin else asked.targets()
    names = {target.name for target in found}
    others = [each for each in dict.fromkeys(named) if each not in names]
    further = (plugins.target(plugin, asked, each) if plugin else asked.target(each) for each in others)
    return [*found, *filter(None, further)]
