"""Which backends, kernels and variants there are: found by looking, listed nowhere.

The project's own are files in their places; other packages bring more as plug-ins (`plugins`). Those are looked for
only when somebody asks for a name that is not the project's own, or for all of them.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from py_backends import plugins
from py_backends.contract import Backend, Problem, Target
from py_backends.errors import BackendUnavailable, BrokenKernel, WrongRequest
from py_backends.kernel_text import KernelText
from py_backends.plugins import Plugin

_BACKENDS = "py_backends.backend"


def backend_names() -> list[str]:
    """Every backend that can be asked for: the project's own, and those of plug-ins, whether or not they work."""
    return sorted([*_own_backends(), *(plugin.name for plugin in _backend_plugins() if plugin.refusal is None)])


@cache
def backend(name: str) -> Backend:
    """The backend of that name; WrongRequest, with the nearest name, where there is none.

    Raises BackendUnavailable where a plug-in promises it and does not bring it.
    """
    if name in _own_backends():
        made: Backend = importlib.import_module(f"{_BACKENDS}.{name}").Backend()
        return made
    if plugin := backend_plugin(name):
        return plugins.backend(plugin)
    raise _unknown(name, backend_names(), "backend")


def targets(name: str, named: Iterable[str] = ()) -> list[Target]:
    """Every target of a backend, probed, and those beyond that it has under the given names.

    Raises as `backend`, and where those of a plug-in are none.
    """
    plugin, asked = backend_plugin(name), backend(name)
    found = plugins.targets(plugin, asked) if plugin else asked.targets()
    names = {target.name for target in found}
    return [*found, *filter(None, (asked.target(each) for each in dict.fromkeys(named) if each not in names))]


def on_threads(name: str, target: str, threads: Iterable[int]) -> dict[int, str | None]:
    """By numbers of threads the target of the same kind, None where there is none; nothing where it is always itself.

    Raises as `backend`, and where a plug-in's answers are none.
    """
    asked = backend(name)
    answers = {each: plugins.checked_name(asked.on_threads(target, each)) for each in threads}
    return {} if set(answers.values()) == {target} else answers


@cache
def preferred_on_host() -> list[str]:
    """The backends by which others compute on the host, the most preferred first; never one of a plug-in."""
    ranked = {name: backend(name).preference for name in _own_backends()}
    return sorted(filter(ranked.get, ranked), key=ranked.__getitem__, reverse=True)


def is_baseline(name: str) -> bool:
    """Whether others' speed is given relative to a backend; never to one of a plug-in, which is not imported here."""
    return name in _own_backends() and backend(name).baseline


def backend_plugin(name: str) -> Plugin | None:
    """The plug-in that brings a backend, or is refused with it; None for the project's own, and an unknown one."""
    if name in _own_backends():
        return None
    return next((plugin for plugin in _backend_plugins() if plugin.name == name), None)


def refused_backends() -> dict[str, BackendUnavailable]:
    """What plug-ins bring under names that they cannot have, by these names, with the reason."""
    refused = {plugin.name: plugin for plugin in _backend_plugins() if plugin.refusal is not None}
    return {name: BackendUnavailable(plugin.refusal or "", plugin.fix) for name, plugin in refused.items()}


def kernel_names() -> list[str]:
    """Every kernel that can be run: the project's own, and those of plug-ins whose problems are sound."""
    sound = [plugin.name for plugin in _kernel_plugins() if isinstance(_brought_problem(plugin), Problem)]
    return sorted([*_own_kernels(), *sound])


def promised_kernels() -> list[str]:
    """As `kernel_names`, and those of plug-ins that are broken: no plug-in is imported to find out."""
    return sorted({*_own_kernels(), *(plugin.name for plugin in _kernel_plugins())})


def kernel_plugins() -> list[Plugin]:
    """All kernels that plug-ins promise, those too that are refused or broken, in order of their names."""
    return list(_kernel_plugins())


def broken_kernels() -> dict[str, BrokenKernel]:
    """The kernels that plug-ins promise and do not bring, with the reason, but not what is named as a sound one."""
    brought = {plugin.name: _brought_problem(plugin) for plugin in _kernel_plugins()}
    broken = {name: what for name, what in brought.items() if isinstance(what, BrokenKernel)}
    return {name: why for name, why in broken.items() if name not in _own_kernels()}


def plugin_packages() -> dict[str, str]:
    """The packages that bring plug-ins, or would, with their versions."""
    return {plugin.package: plugin.version for plugin in (*_backend_plugins(), *_kernel_plugins())}


def plugin_folders() -> list[Path]:
    """Where the packages of plug-ins lie."""
    return [plugin.folder for plugin in (*_backend_plugins(), *_kernel_plugins()) if plugin.folder]


def why_no_text(backend: str) -> str | None:
    """What a plug-in may have forgotten that brings no text of any kernel; None where a backend has some."""
    plugin = backend_plugin(backend)
    if plugin is None or any(kernel_files(kernel, backend) for kernel in kernel_names()):
        return None
    return f"{plugin.origin} brings no text: files kernels/KERNEL/VARIANT/{backend}.* of its package, in its wheel too"


@cache
def problem(kernel: str) -> Problem:
    """The problem of that kernel; WrongRequest, with the nearest name, where there is none.

    Raises BrokenKernel where a plug-in promises it and does not bring it.
    """
    if kernel in _own_kernels():
        made: Problem = importlib.import_module(f"py_backends.kernels.{kernel}.problem").PROBLEM
        return made
    if plugin := kernel_plugin(kernel):
        brought = _brought_problem(plugin)
        if isinstance(brought, BrokenKernel):
            raise brought
        return brought
    raise _unknown(kernel, kernel_names(), "kernel")


def kernel_plugin(name: str) -> Plugin | None:
    """The plug-in that brings a kernel, or is refused with it; None for the project's own, and an unknown one."""
    if name in _own_kernels():
        return None
    return next((plugin for plugin in _kernel_plugins() if plugin.name == name), None)


def blamed(kernel: str, failed: Exception) -> BrokenKernel | None:
    """What is to be said where the problem of a plug-in fails when it runs; None for the project's own."""
    plugin = kernel_plugin(kernel)
    if plugin is None:
        return None
    return BrokenKernel(f"the problem of {plugin.origin} fails: {plugins.described(failed)}", plugin.fix)


def is_kernel(name: str) -> bool:
    """Whether there is a kernel of that name, be it a broken one: no plug-in is imported to find out."""
    return name in _own_kernels() or kernel_plugin(name) is not None


@cache
def kernel_texts(kernel: str, backend: str) -> dict[str, KernelText]:
    """The texts of a kernel for a backend, by variant: `tuned` first where there is one."""
    asked = problem(kernel)
    return {
        variant: KernelText(asked, variant, backend, path, package)
        for variant, (path, package) in kernel_files(kernel, backend).items()
    }


def dtypes(text: KernelText, target: Target | None = None) -> tuple[str, ...]:
    """The number formats in which a text runs on a target: those that both, its kernel and its backend have.

    A target that was probed says what its backend declares, so that no backend is imported for one.
    """
    if target is not None and target.dtypes is not None:
        taken = target.dtypes.get(f"{text.kernel}/{text.variant}", target.dtypes.get(text.kernel, ()))
    else:
        taken = backend(text.backend).dtypes
    return tuple(each for each in text.dtypes if each in taken)


def texts_in(dtype: str, kernel: str, backend: str, target: Target | None = None) -> dict[str, KernelText]:
    """As `kernel_texts`, those alone that run in a number format on a target."""
    texts = kernel_texts(kernel, backend)
    return {variant: text for variant, text in texts.items() if dtype in dtypes(text, target)}


def kernel_files(kernel: str, backend: str) -> dict[str, tuple[Path, str | None]]:
    """As `kernel_texts`, the files and their packages: of a broken kernel too."""
    files: dict[str, tuple[Path, str | None]] = {}
    for folder, package in _folders_of_texts(kernel, backend):
        for path in sorted(folder.glob(f"*/{backend}.*")):
            variant = path.parent.name
            if variant.isidentifier() and not variant.startswith("_"):
                files.setdefault(variant, (path, package))
    first = {"tuned": 0, "lecture": 1}  # what lies between the two is never run unless it is asked for
    return dict(sorted(files.items(), key=lambda item: first.get(item[0], len(first))))


def _folders_of_texts(kernel: str, backend: str) -> Iterator[tuple[Path, str | None]]:
    """Where texts of a kernel for a backend lie: of two of one variant, the kernel's own comes before the backend's."""
    if kernel in _own_kernels():
        yield _kernels_folder() / kernel, None
    else:
        for plugin in _kernel_plugins():
            if plugin.name == kernel and plugin.folder:
                yield plugin.folder, plugin.module
    if (brought := backend_plugin(backend)) and brought.folder and brought.refusal is None:
        yield brought.folder / "kernels" / kernel, f"{brought.module}.kernels.{kernel}"


@cache
def variant_names() -> list[str]:
    """The variants that every reader may ask for, and any other that some text has."""
    pairs = ((kernel, backend) for kernel in kernel_names() for backend in backend_names())
    return sorted({"lecture", "tuned", *(variant for pair in pairs for variant in kernel_texts(*pair))})


def known(name: str, names: Iterable[str], what: str) -> str:
    """`name`, if it is one of `names`; else WrongRequest that suggests the nearest."""
    names = list(names)
    if name in names:
        return name
    raise _unknown(name, names, what)


def _unknown(name: str, names: list[str], what: str) -> WrongRequest:
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.4) if isinstance(name, str) else []
    others = f"there is only {names[0]!r}" if len(names) == 1 else f"there are {', '.join(names)}"
    hint = f"did you mean {near[0]!r}?" if near else others
    return WrongRequest(f"unknown {what} {name!r}: {hint}")


def known_backend(name: str) -> str:
    """`name`, if it is a backend's; BackendUnavailable where it is refused, WrongRequest where it is unknown."""
    names, refused = backend_names(), refused_backends()
    if name not in names and isinstance(name, str) and name in refused:
        raise refused[name]
    return known(name, names, "backend")


@cache
def _own_backends() -> tuple[str, ...]:
    """Every module of py_backends/backend without an underscore in front is a backend."""
    package = importlib.import_module(_BACKENDS)
    found = pkgutil.iter_modules(package.__path__)
    return tuple(each.name for each in found if not each.ispkg and not each.name.startswith("_"))


@cache
def _own_kernels() -> tuple[str, ...]:
    """Every folder of kernels/ that holds a problem.py is a kernel."""
    return tuple(sorted(path.parent.name for path in _kernels_folder().glob("*/problem.py")))


@cache
def _backend_plugins() -> list[Plugin]:
    return plugins.plugins(plugins.BACKENDS, _own_backends())


@cache
def _kernel_plugins() -> list[Plugin]:
    return plugins.plugins(plugins.KERNELS, _own_kernels())


@cache
def _brought_problem(plugin: Plugin) -> Problem | BrokenKernel:
    """What a plug-in brings where it promises a kernel: its problem, or what is wrong with it."""
    try:
        return plugins.problem(plugin)
    except BrokenKernel as error:
        return error


def _kernels_folder() -> Path:
    package = importlib.import_module("py_backends.kernels")
    return Path(next(iter(package.__path__)))
