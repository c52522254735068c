"""Finds the plug-ins of other packages by their entry points, and checks them against the contract.

    [project.entry-points."py_backends"]            [project.entry-points."py_backends.kernels"]
    einsum = "py_backends_einsum"                   axpy = "py_backends_axpy"

The package of a backend has a class `Backend`, and sources in its folder as `kernels/KERNEL/VARIANT/NAME.*`. That of a
kernel has `problem.py` with `PROBLEM`, and sources as `VARIANT/BACKEND.*`. Finding them imports nothing. Any fault of a
plug-in, even in its name, becomes a reason that names its package.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import keyword
import pkgutil
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import numpy as np

import py_backends
from py_backends.contract import Backend, Device, Ladder, Problem, Target
from py_backends.errors import BackendUnavailable, BrokenKernel, WrongRequest, whole_number
from py_backends.problem import RATES, RULES

BACKENDS, KERNELS = "py_backends", "py_backends.kernels"
"""The groups of entry points."""
_TAKEN: Mapping[str, Collection[str]] = {
    # The word for every name, and markers of pytest: those of a backend's tests are named as the backend.
    BACKENDS: {"all", "browser", "filterwarnings", "parametrize", "skip", "skipif", "timeout", "usefixtures", "xfail"},
    # The word for every name, and what else there is in `py_backends`, where a kernel becomes a function.
    KERNELS: {"all", "kernels", "backends", "compare", "BackendUnavailable",
              *(module.name for module in pkgutil.iter_modules(py_backends.__path__))},
}  # fmt: skip
_OPTIONS = {"backend", "variant", "target", "threads", "out", "to"}
"""The options of the Python functions. No input of a kernel may have such a name."""
_MOST_WORK = 2**120
_NAMELESS = "a nameless package", "0"
_MOST_INPUTS = 15
"""A worker can receive this many arrays and the output in one message."""


@dataclass(frozen=True)
class Plugin:
    """One entry point.

    name: of the backend or kernel.
    module: the module that it names, which should be a package.
    package, version: of the distribution that contains it.
    folder: of `module`; None if that is no package, or cannot be found.
    refusal: why it is refused, as a sentence without full stop; None if it is not.
    """

    name: str
    module: str
    package: str
    version: str
    folder: Path | None = None
    refusal: str | None = None

    @property
    def origin(self) -> str:
        """The package with its version."""
        return f"{self.package} {self.version}"

    @property
    def fix(self) -> str:
        """The fix for any fault of it."""
        return f"repair {self.package}, or pip uninstall {self.package}"


def plugins(group: str, own: Collection[str]) -> list[Plugin]:
    """The plug-ins of a group of entry points, sorted by name, refused ones included.

    own: the project's own names, which no plug-in can replace.
    """
    found = sorted(map(_plugin, importlib.metadata.entry_points(group=group)), key=attrgetter("name", "package"))
    taken = {*own, *_TAKEN[group]}
    checked = []
    for name, rivals in groupby(found, key=attrgetter("name")):
        several = list(rivals)
        refusal = _refusal(name, taken, several)
        checked += [replace(plugin, refusal=plugin.refusal or refusal) for plugin in several]
    return checked


def _plugin(entry: importlib.metadata.EntryPoint) -> Plugin:
    plugin = Plugin(entry.name, entry.value, *_package(entry.dist))
    if re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*", entry.value) is None:
        return replace(plugin, refusal=f"{plugin.origin} names {entry.value!r}, which is no package")
    return replace(plugin, folder=_folder(entry.value))


def _package(distribution: importlib.metadata.Distribution | None) -> tuple[str, str]:
    """The name and version of an installed package. A damaged installation may lack either."""
    if distribution is None:
        return _NAMELESS
    names, versions = (distribution.metadata.get_all(what) for what in ("Name", "Version"))
    return (names or _NAMELESS)[0], (versions or _NAMELESS[1:])[0]


def _refusal(name: str, taken: Collection[str], rivals: Sequence[Plugin]) -> str | None:
    """Why the plug-ins of one name are refused; None if they are not."""
    origins = " and ".join(plugin.origin for plugin in rivals)
    bring = "bring" if len(rivals) > 1 else "brings"
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        return f"{origins} {bring} the name {name!r}: names are of letters, digits and underscores, a letter first"
    if name in taken:
        return f"{origins} {bring} the name {name!r}, which py-backends has itself"
    return f"{origins} bring the same name: only one can be installed" if len(rivals) > 1 else None


def _folder(package: str) -> Path | None:
    """The folder of a package, found without importing it."""
    first, *others = package.split(".")
    try:
        spec = importlib.util.find_spec(first)
    except (ImportError, ValueError):  # a broken finder, or a loaded module without a spec
        return None
    places = spec.submodule_search_locations if spec else None
    return next((path for place in places or () if (path := Path(place, *others)).is_dir()), None)


def backend(plugin: Plugin) -> Backend:
    """Import a plug-in's backend and make an instance. Raises BackendUnavailable if that fails."""
    _check_taken(plugin)
    try:
        return checked_backend(importlib.import_module(plugin.module).Backend())
    except (Exception, SystemExit) as error:
        raise BackendUnavailable(f"{plugin.origin} brings no backend: {described(error)}", plugin.fix) from error


def checked_backend(made: object) -> Backend:
    """Return a valid backend. Raises WrongRequest, which says what is wrong, for anything else."""
    if not isinstance(made, Backend):
        raise WrongRequest("its Backend is not derived from the contract's")
    if not isinstance(made.dtypes, tuple) or not made.dtypes or not all(isinstance(each, str) for each in made.dtypes):
        raise WrongRequest(f"its dtypes are {_short(made.dtypes)}, not a tuple of names")
    for name in made.dtypes:
        np.dtype(name)  # raises if NumPy does not know the name
    return made


def targets(plugin: Plugin, backend: Backend) -> list[Target]:
    """The targets of a plug-in. Raises BackendUnavailable if its `targets` raises or returns something invalid."""
    try:
        return checked_targets(backend.targets())
    except (Exception, SystemExit) as error:
        raise BackendUnavailable(f"targets() of {plugin.origin} fails: {described(error)}", plugin.fix) from error


def checked_targets(found: object) -> list[Target]:
    """Return a valid list of targets. Raises WrongRequest, which says what is wrong, for anything else."""
    if not isinstance(found, list | tuple):
        raise WrongRequest(f"it returns {_short(found)}, not a list of Target")
    if not found:
        raise WrongRequest("it returns no target: an unavailable target says why")
    for target in found:
        _check_target(target)
    if len({target.name for target in found}) < len(found):
        raise WrongRequest("it returns several targets of one name")
    return list(found)


def _check_target(target: object) -> None:
    if not isinstance(target, Target):
        raise WrongRequest(f"it returns {_short(target)} among its targets, which is no Target")
    if not isinstance(target.name, str) or not target.name:
        raise WrongRequest(f"a target is named {_short(target.name)}, which is no name")
    for field in ("device", "version", "reason", "fix"):
        value = getattr(target, field)
        if not isinstance(value, str | None):
            raise WrongRequest(f"the {field} of the target {target.name} is {_short(value)}, which is no text")
    if not (target.available or target.reason):
        raise WrongRequest(f"the target {target.name} is not available and does not say why")
    if not all(isinstance(each, str) for pair in target.environment.items() for each in pair):
        raise WrongRequest(f"the environment of the target {target.name} is {_short(target.environment)}")


def checked_name(answer: object) -> str | None:
    """Return a result of `on_threads` that is a target's name or None. Raises TypeError for anything else."""
    if not isinstance(answer, str | None):
        raise TypeError(f"on_threads() returns {_short(answer)}, which is no name")
    return answer


def checked_device(opened: object) -> Device:
    """Return a result of `open` that is a device. Raises TypeError for anything else."""
    if not isinstance(opened, Device):
        raise TypeError(f"open() returns {_short(opened)}, which is no Device")
    return opened


def problem(plugin: Plugin) -> Problem:
    """Import a plug-in's problem. Raises BrokenKernel if that fails, or if it is not a valid problem."""
    if plugin.refusal is not None:
        raise BrokenKernel(plugin.refusal, plugin.fix)
    try:
        return checked_problem(importlib.import_module(f"{plugin.module}.problem").PROBLEM, plugin.name)
    except (Exception, SystemExit) as error:
        raise BrokenKernel(f"{plugin.origin} brings no problem: {described(error)}", plugin.fix) from error


def checked_problem(made: object, name: str) -> Problem:
    """Return a valid problem. Raises WrongRequest, which says what is wrong, or any error of the problem itself."""
    if not isinstance(made, Problem):
        raise WrongRequest(f"PROBLEM is {_short(made)}, which is no Problem")
    if made.name != name:
        raise WrongRequest(f"its problem is named {_short(made.name)}, and its entry point {name!r}")
    for what in ("dimensions", "inputs"):
        _check_names(what, getattr(made, what))
    occupied = next((name for name in made.inputs if keyword.iskeyword(name) or name in _OPTIONS), None)
    if occupied is not None:
        raise WrongRequest(f"one of its inputs is named {occupied!r}, which is a word of Python or of the functions")
    if len(made.inputs) > _MOST_INPUTS:
        raise WrongRequest(f"it has {len(made.inputs)} inputs, and {_MOST_INPUTS} are the most")
    for what, among in (("rule", RULES), ("rate", RATES)):
        if getattr(made, what) not in among:
            raise WrongRequest(f"its {what} is {_short(getattr(made, what))}, and not {' or '.join(among)}")
    edges = made.edges
    if not isinstance(edges, tuple) or not all(isinstance(each, tuple) for each in edges):
        raise WrongRequest(f"its edges are {_short(edges)}, not a tuple of tuples of sizes")
    if not isinstance(made.in_place, bool) or not isinstance(made.ladder, Ladder | None):
        raise WrongRequest(f"its in_place is {_short(made.in_place)} and its ladder {_short(made.ladder)}")
    _check_steps(made.steps)
    _check_work(made)
    return made


def _check_steps(steps: object) -> None:
    if not isinstance(steps, tuple) or not all(isinstance(each, Ladder) for each in steps):
        raise WrongRequest(f"its steps are {_short(steps)}, not a tuple of ladders")


def _check_names(what: str, names: object) -> None:
    if not isinstance(names, tuple) or not names or not all(isinstance(each, str) for each in names):
        raise WrongRequest(f"its {what} are {_short(names)}, not a tuple of names")
    if len(set(names)) < len(names) or not all(name.isidentifier() for name in names):
        raise WrongRequest(f"its {what} are {_short(names)}, not different identifiers")


def _check_work(made: Problem) -> None:
    """Check shapes, operations and bytes at the problem's own sizes."""
    sizes = made.default_sizes
    if not isinstance(sizes, tuple) or len(sizes) != len(made.dimensions):
        raise WrongRequest(f"its default_sizes are {_short(sizes)}, not a tuple of a size for each dimension")
    for dimension, size in zip(made.dimensions, sizes, strict=True):
        whole_number(f"the default size {dimension}", size, 1, 2**40)
    shapes = made.shapes(sizes)
    if not isinstance(shapes, tuple) or len(shapes) != len(made.inputs) + 1:
        raise WrongRequest(f"its shapes are {_short(shapes)}, not a tuple of one for each input and the output")
    for shape in shapes:
        if not isinstance(shape, tuple):
            raise WrongRequest(f"one of its shapes is {_short(shape)}, which is no tuple")
        for length in shape:
            whole_number("each length of its shapes", length, 0, 2**40)
    whole_number("its flops", made.flops(sizes), 0, _MOST_WORK)
    whole_number("its bytes", made.bytes(sizes, np.dtype(np.float32)), 0, _MOST_WORK)
    whole_number("its work", made.work(sizes), 1, _MOST_WORK)


def described(error: BaseException) -> str:
    """An exception in one line."""
    text = " / ".join(line.strip() for line in str(error).splitlines() if line.strip())
    return text if isinstance(error, WrongRequest) else f"{type(error).__name__}: {text}".removesuffix(": ")


def _check_taken(plugin: Plugin) -> None:
    if plugin.refusal is not None:
        raise BackendUnavailable(plugin.refusal, plugin.fix)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
