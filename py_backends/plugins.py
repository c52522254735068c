"""Finds the plug-ins of other packages by their entry points, and checks them against the contract.

A folder that is given by its path is a plug-in too (`folders`).

    [project.entry-points."py_backends"]            [project.entry-points."py_backends.kernels"]
    einsum = "py_backends_einsum"                   axpy = "axpy"

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
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

import py_backends
from py_backends import folders
from py_backends.contract import Backend, Device, Ladder, Launch, Problem, Target
from py_backends.errors import BackendUnavailable, BrokenKernel, WithFix, WrongRequest
from py_backends.limits import LARGEST_SIZE, real_number, whole_number
from py_backends.number_formats import DTYPES, FORMATS
from py_backends.problem import RATES, RULES
from py_backends.wording import in_one_line

BACKENDS, KERNELS = "py_backends", "py_backends.kernels"
"""The groups of entry points."""
_TAKEN: Mapping[str, Collection[str]] = {
    # The word for every name, and markers of pytest: those of a backend's tests are named as the backend.
    BACKENDS: {"all", "browser", "filterwarnings", "parametrize", "skip", "skipif", "timeout", "usefixtures", "xfail"},
    # The word for every name, and what else there is in `py_backends`, where a kernel becomes a function. A command is
    # mistaken for a kernel too easily.
    KERNELS: {"all", "kernels", "backends", "compare", "read", "BackendUnavailable",
              *(module.name for module in pkgutil.iter_modules(py_backends.__path__)),
              *(module.name for module in pkgutil.iter_modules([f"{py_backends.__path__[0]}/commands"]))},
}  # fmt: skip
_OPTIONS = {"backend", "variant", "target", "threads", "out", "to"}
"""The options of the Python functions. No input of a kernel may have such a name."""
_MOST_WORK = 2**120
_NAMELESS = "a nameless package", "0"
_MOST_PARAMETERS = 16
"""A kernel in C++ takes no more (cpp_ext/instance.hpp), and a worker can receive as many arrays in one message."""


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
    def is_package(self) -> bool:
        """Whether a package brings it, and not a folder that was given by its path."""
        return not Path(self.package).is_absolute()

    @property
    def fix(self) -> str:
        """The fix for any fault of it."""
        return f"repair {self.package}" + (f", or pip uninstall {self.package}" if self.is_package else "")


def plugins(group: str, own: Collection[str]) -> list[Plugin]:
    """The plug-ins of a group of entry points, sorted by name, refused ones included.

    own: the project's own names, which no plug-in can replace.
    """
    given = [plugin for each in folders.every() for plugin in of_folder(each, group)]
    named = {plugin.name for plugin in given}  # whoever gives a folder's path means that one
    brought = [_plugin(each) for each in importlib.metadata.entry_points(group=group) if each.name not in named]
    found = sorted((*brought, *given), key=attrgetter("name", "package"))
    passing = {name for each in folders.every() if each.backends for name in (each.kernel, *each.backends)}
    taken = {*own, *_TAKEN[group]}
    checked = []
    for name, rivals in groupby(found, key=attrgetter("name")):
        several = list(rivals)
        refusal = None if name in passing else _refusal(name, taken, several)
        checked += [replace(plugin, refusal=plugin.refusal or refusal) for plugin in several]
    return checked


def of_folder(folder: folders.Folder, group: str) -> list[Plugin]:
    """What a folder brings to a group: its path is the package, and its hash the version."""
    whose = str(folder.path), folder.digest, folder.path
    if group == BACKENDS:
        return [Plugin(name, f"{folder.module}.{folders.BACKENDS}.{name}", *whose) for name in folder.backends]
    return [Plugin(folder.kernel, folder.module, *whose)] if folder.has_problem else []


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
    return f"{origins} bring the same name: only one can be there" if len(rivals) > 1 else None


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
    with _blamed(plugin, BackendUnavailable, f"{plugin.origin} brings no backend"):
        return checked_backend(importlib.import_module(plugin.module).Backend())


def checked_backend(made: object) -> Backend:
    """Return a valid backend. Raises WrongRequest, which says what is wrong, for anything else."""
    if not isinstance(made, Backend):
        raise WrongRequest("its Backend is not derived from the contract's")
    _check_names("dtypes", made.dtypes)
    for name in made.dtypes:
        np.dtype(name)  # raises if NumPy does not know the name
    if made.obeys:
        _check_names("obeys", made.obeys)
    return made


def targets(plugin: Plugin, backend: Backend) -> list[Target]:
    """The targets of a plug-in. Raises BackendUnavailable if its `targets` raises or returns something invalid."""
    with _blamed(plugin, BackendUnavailable, f"targets() of {plugin.origin} fails"):
        return checked_targets(backend.targets())


def target(plugin: Plugin, backend: Backend, name: str) -> Target | None:
    """A plug-in's target that is found by its name. Raises BackendUnavailable if its `target` fails, as `targets`."""
    with _blamed(plugin, BackendUnavailable, f"target({name!r}) of {plugin.origin} fails"):
        found = backend.target(name)
        if found is not None:
            _check_target(found)
        return found


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
        raise WrongRequest(f"it returns {_short(target)} as a target, which is no Target")
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
    if not (target.dtypes is None or _are_names_by_name(target.dtypes)):
        raise WrongRequest(f"the dtypes of the target {target.name} are {_short(target.dtypes)}, not tuples by kernel")


def _are_names_by_name(dtypes: object) -> bool:
    """Whether it maps names to tuples or lists of names, as the `dtypes` of a target do."""
    return isinstance(dtypes, Mapping) and all(
        isinstance(kernel, str) and isinstance(names, tuple | list) and all(isinstance(each, str) for each in names)
        for kernel, names in dtypes.items()
    )


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


def checked_launch(prepared: Any) -> Launch:
    """Return a result of `prepare` that can be called. Raises TypeError for anything else."""
    if not callable(prepared):
        raise TypeError(f"prepare() returns {_short(prepared)}, not what launches the kernel")
    launch: Launch = prepared
    return launch


def problem(plugin: Plugin) -> Problem:
    """Import a plug-in's problem. Raises BrokenKernel if that fails, or if it is not a valid problem."""
    with _blamed(plugin, BrokenKernel, f"{plugin.origin} brings no problem"):
        return checked_problem(importlib.import_module(f"{plugin.module}.problem").PROBLEM, plugin.name)


def checked_problem(made: object, name: str) -> Problem:
    """Return a valid problem. Raises WrongRequest, which says what is wrong, or any error of the problem itself."""
    if not isinstance(made, Problem):
        raise WrongRequest(f"PROBLEM is {_short(made)}, which is no Problem")
    if made.name != name:
        raise WrongRequest(f"its problem is named {_short(made.name)}, and its entry point {name!r}")
    if made.dimensions or not hasattr(made, "signature"):  # a signature may have lengths alone that never change
        _check_identifiers("dimensions", made.dimensions)
    _check_identifiers("inputs", made.inputs)
    _check_numbers(made)
    for what in ("nonzero_sizes", "largest_sizes"):
        unknown = [name for name in getattr(made, what) if name not in made.parameters]
        if unknown:
            there = ", ".join(made.parameters)
            raise WrongRequest(f"its {what} have {unknown[0]!r}, which is none of its sizes and numbers: {there}")
    for what in ("inputs", "numbers"):
        named = getattr(made, what)
        occupied = next((name for name in named if keyword.iskeyword(name) or name in _OPTIONS), None)
        if occupied is not None:
            raise WrongRequest(
                f"one of its {what} is named {occupied!r}, which is a word of Python or of the functions"
            )
    _check_counts(made)
    for what, among in (("rule", RULES), ("rate", RATES)):
        if getattr(made, what) not in among:
            raise WrongRequest(f"its {what} is {_short(getattr(made, what))}, and not {' or '.join(among)}")
    _check_kinds(made)
    _check_formats(made)
    _check_tolerance(made)
    _check_work(made)
    return made


def _check_counts(made: Problem) -> None:
    """Check how many arrays, sizes and numbers it has."""
    whole_number("its outputs", made.outputs, 1, _MOST_PARAMETERS)
    count = len(made.inputs) + made.outputs + len(made.parameters)
    if count > _MOST_PARAMETERS:
        raise WrongRequest(f"it has {count} arrays, sizes and numbers, and {_MOST_PARAMETERS} are the most")
    if made.in_place and made.outputs > 1:
        raise WrongRequest("it is in_place and has several outputs: one of them would spoil what another one reads")


def _check_kinds(made: Problem) -> None:
    """Check what is right if it is of the right kind."""
    for what, kind, words in (
        ("in_place", bool, "neither True nor False"),
        ("by_default", bool, "neither True nor False"),
        ("ladder", Ladder | None, "no ladder"),
        ("in_numpy", str | None, "no text"),
        ("data", str | None, "no name of a file"),
    ):
        if not isinstance(getattr(made, what), kind):
            raise WrongRequest(f"its {what} is {_short(getattr(made, what))}, which is {words}")
    for what, part, words in (("edges", tuple, "tuples of sizes"), ("steps", Ladder, "ladders")):
        several = getattr(made, what)
        if not isinstance(several, tuple) or not all(isinstance(each, part) for each in several):
            raise WrongRequest(f"its {what} are {_short(several)}, not a tuple of {words}")


def _check_names(what: str, names: object) -> None:
    if not isinstance(names, tuple) or not names or not all(isinstance(each, str) for each in names):
        raise WrongRequest(f"its {what} are {_short(names)}, not a tuple of names")


def _check_identifiers(what: str, names: tuple[str, ...]) -> None:
    _check_names(what, names)
    if len(set(names)) < len(names) or not all(name.isidentifier() for name in names):
        raise WrongRequest(f"its {what} are {_short(names)}, not different identifiers")


def _check_numbers(made: Problem) -> None:
    """Check the numbers that belong to no array. Their names are those of no size and no input."""
    if not isinstance(made.numbers, Mapping):
        raise WrongRequest(f"its numbers are {_short(made.numbers)}, not a mapping from names to defaults")
    if made.numbers:
        _check_identifiers("numbers", tuple(made.numbers))
    for name, default in made.numbers.items():
        if name in made.dimensions or name in made.inputs:
            raise WrongRequest(f"its numbers have {name!r}, which is a size or an input")
        if name in made.reals:
            real_number(f"the default of {name}", default)
        else:
            whole_number(f"the default of {name}", default, 0, LARGEST_SIZE)


def _check_formats(made: Problem) -> None:
    """Check the number formats of inputs, and those of results and sums by them."""
    _check_names("dtypes", made.dtypes)
    of_arrays_alone = next((name for name in made.dtypes if name in FORMATS and name not in DTYPES), None)
    if of_arrays_alone is not None and not made.in_any_format:
        raise WrongRequest(
            f"its dtypes have {of_arrays_alone!r}: a run has one of {', '.join(DTYPES)}; "
            f"an input of {of_arrays_alone} says so in the signature"
        )
    _check_known("dtypes", made.dtypes, FORMATS if made.in_any_format else DTYPES)
    for what in ("results", "sums"):
        pairs = getattr(made, what)
        if not isinstance(pairs, Mapping):
            raise WrongRequest(f"its {what} are {_short(pairs)}, not a mapping from dtypes to dtypes")
        _check_known(what, chain(*pairs.items()), FORMATS)
    own = {name: made.own_dtype(at) for at, name in enumerate(made.inputs)}
    if None not in own.values():
        raise WrongRequest(
            "each of its inputs has a dtype of its own, and one has to be without: "
            f"leave off the :{next(iter(own.values()))} of one, and set dtypes to what a run may give it, "
            f"of {', '.join(DTYPES)}"
        )
    indices = next((name for name, dtype in own.items() if dtype is not None and dtype.kind == "i"), None)
    if indices is not None and type(made).draw is Problem.draw:
        raise WrongRequest(f"its input {indices} is of {own[indices]}: draw has to say what it may hold")
    of_integers = [name for name in made.dtypes if made.reals and made.sum_dtype(np.dtype(name)).kind == "i"]
    if of_integers:
        raise WrongRequest(f"its number {min(made.reals)} is real, and in {of_integers[0]} it computes with integers")


def _check_tolerance(made: Problem) -> None:
    """Check the tolerance: none, one number, or one for each of its dtypes."""
    given = made.tolerance
    if given is None:
        return
    several = dict(given) if isinstance(given, Mapping) else dict.fromkeys(made.dtypes, given)
    for dtype in made.dtypes:
        if dtype not in several:
            raise WrongRequest(f"its tolerance has none for {dtype}, which is one of its dtypes")
        if real_number("its tolerance", several[dtype]) < 0:
            raise WrongRequest(f"its tolerance must be from 0 on, not {_short(several[dtype])}")


def _check_known(what: str, names: Iterable[object], formats: Collection[str]) -> None:
    for each in names:
        if not isinstance(each, str) or each not in formats:
            raise WrongRequest(f"its {what} have {_short(each)}, and not only {', '.join(formats)}")


def _check_work(made: Problem) -> None:
    """Check shapes, operations and bytes at the problem's own sizes."""
    sizes = made.default_sizes
    if not isinstance(sizes, tuple) or len(sizes) != len(made.parameters):
        raise WrongRequest(f"its default_sizes are {_short(sizes)}, not a tuple of a size for each dimension")
    for dimension, size in zip(made.parameters, sizes, strict=True):
        if dimension in made.reals:
            real_number(f"the default of {dimension}", size)
        else:
            whole_number(f"the default size {dimension}", size, 1, LARGEST_SIZE)
    shapes = made.shapes(sizes)
    if not isinstance(shapes, tuple) or len(shapes) != len(made.inputs) + made.outputs:
        raise WrongRequest(f"its shapes are {_short(shapes)}, not a tuple of one for each input and output")
    for shape in shapes:
        if not isinstance(shape, tuple):
            raise WrongRequest(f"one of its shapes is {_short(shape)}, which is no tuple")
        for length in shape:
            whole_number("each length of its shapes", length, 0, LARGEST_SIZE)
    whole_number("its flops", made.flops(sizes), 0, _MOST_WORK)
    whole_number("its bytes", made.bytes(sizes, np.dtype(np.float32)), 0, _MOST_WORK)
    whole_number("its work", made.work(sizes), 1, _MOST_WORK)


def described(error: BaseException) -> str:
    """An exception in one line."""
    text = in_one_line(str(error))
    return text if isinstance(error, WrongRequest) else f"{type(error).__name__}: {text}".removesuffix(": ")


@contextmanager
def _blamed(plugin: Plugin, kind: type[WithFix], what: str) -> Iterator[None]:
    """Raise any fault within as an error of this kind, which says what failed and why. A refused plug-in is one too."""
    if plugin.refusal is not None:
        raise kind(plugin.refusal, plugin.fix)
    try:
        yield
    except (Exception, SystemExit) as error:
        raise kind(f"{what}: {described(error)}", plugin.fix) from error


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
