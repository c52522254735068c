"""Finds backends, kernels and variants by their files: no list names them.

The project's own are files in fixed folders. Other packages add more as plug-ins (`plugins`). Plug-ins are searched
only if a request names something that is not the project's own, or asks for everything.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import site
import sysconfig
import traceback
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from py_backends import folders, plugins
from py_backends.contract import Backend, Problem, Target
from py_backends.errors import BackendUnavailable, BrokenKernel, WrongRequest
from py_backends.kernel_text import KernelText
from py_backends.plugins import Plugin
from py_backends.wording import hint, shown

_BACKENDS = "py_backends.backend"


def backend_names() -> list[str]:
    """Every backend that a request may name: the project's own, and those of plug-ins, whether or not they work."""
    return sorted([*_own_backends(), *(plugin.name for plugin in _backend_plugins() if plugin.refusal is None)])


def backend(name: str) -> Backend:
    """The backend of that name. Raises WrongRequest, with the nearest name, for an unknown one.

    Raises BackendUnavailable if a plug-in declares it and its package does not contain it.
    """
    if name in _own_backends():
        return _own_backend(name)
    if plugin := backend_plugin(name):
        return _brought_backend(plugin)
    raise _unknown(name, backend_names(), "backend")


def on_threads(name: str, target: str, threads: Iterable[int]) -> dict[int, str | None]:
    """By number of threads, the target of the same kind, or None without one. Empty if it is always `target` itself.

    Raises the errors of `backend`, and others if a plug-in's answers are invalid.
    """
    asked = backend(name)
    answers = {each: plugins.checked_name(asked.on_threads(target, each)) for each in threads}
    return {} if set(answers.values()) == {target} else answers


@cache
def preferred_on_host() -> list[str]:
    """The backends that others may use to compute on the host, the preferred one first. None is a plug-in's."""
    ranked = {name: backend(name).preference for name in _own_backends()}
    return sorted(filter(ranked.get, ranked), key=ranked.__getitem__, reverse=True)


def is_baseline(name: str) -> bool:
    """Whether the speed of others is relative to this backend. False for a package's, which is not imported here."""
    plugin = backend_plugin(name)
    return (name in _own_backends() if plugin is None else not plugin.is_package) and backend(name).baseline


def backend_plugin(name: str) -> Plugin | None:
    """The plug-in of a backend, even a refused one; None for the project's own backends and unknown names."""
    if name in _own_backends():
        return None
    return next((plugin for plugin in _backend_plugins() if plugin.name == name), None)


def refused_backends() -> dict[str, BackendUnavailable]:
    """The backends of plug-ins whose names are refused: by name, the error with the reason."""
    refused = {plugin.name: plugin for plugin in _backend_plugins() if plugin.refusal is not None}
    return {name: BackendUnavailable(plugin.refusal or "", plugin.fix) for name, plugin in refused.items()}


def kernel_names() -> list[str]:
    """Every kernel that can be run: the project's own, and those of plug-ins whose problems are valid."""
    sound = [plugin.name for plugin in kernel_plugins() if isinstance(_brought_problem(plugin), Problem)]
    return sorted([*_own_kernels(), *sound])


def usual_kernels() -> list[str]:
    """The kernels that commands run if none is named: see `Problem.by_default`."""
    return [name for name in kernel_names() if problem(name).by_default]


def promised_kernels() -> list[str]:
    """Every kernel that is declared, even by a broken plug-in. This imports no plug-in."""
    return sorted({*_own_kernels(), *(plugin.name for plugin in kernel_plugins())})


def kernel_named(name: Any) -> Any:
    """The name of a kernel that is given by its name, or by the path of its folder, which is known from then on.

    Raises WrongRequest, with one line, for a folder that is no kernel's, or whose name is taken.
    """
    if not folders.is_path(name):
        return name
    folder = folders.kernel_at(name)
    folders.add(folder)
    made = next(plugin for plugin in kernel_plugins() if plugin.folder == folder.path)
    if made.refusal is not None:
        folders.remove(folder)
        raise WrongRequest(made.refusal)
    return made.name


def given_as(kernel: str) -> str:
    """What names a kernel in another process too: the path of its folder where it was given by that, else its name."""
    plugin = kernel_plugin(kernel)
    return kernel if plugin is None or plugin.is_package else plugin.package


def add_sources(path: str | os.PathLike[str], kernel: str) -> None:
    """Take the sources in a folder for further ones of a kernel: BACKEND.*, as the variant that the folder is named.

    Raises WrongRequest, with one line, for an unknown kernel, a folder that has no source of any backend, or whose name
    is that of another variant. Raises BrokenKernel, which says why, for a kernel whose problem is not valid.
    """
    problem(kernel)
    folder = folders.sources_at(path, kernel)
    if not any(folder.sources(backend) for backend in backend_names()):
        raise WrongRequest(f"{path} has no source: a file is named after its backend, such as openmp.cpp")
    variant = folder.path.name
    others = [each for each in _further_sources(kernel) if each.path.name == variant and each.path != folder.path]
    if others:
        raise WrongRequest(f"{others[0].path} and {folder.path} have one name, that of the variant: rename one")
    if any(variant in _placed_files(kernel, backend) for backend in backend_names()):
        raise WrongRequest(f"{path} is named as a variant that {kernel} has: rename the folder")
    folders.add(folder)


@cache
def kernel_plugins() -> list[Plugin]:
    """The plug-ins of all kernels, even refused and broken ones, sorted by name."""
    return plugins.plugins(plugins.KERNELS, _own_kernels())


def broken_kernels() -> dict[str, BrokenKernel]:
    """By name, the errors of kernels that plug-ins declare but do not contain. Names of own kernels are left out."""
    brought = {plugin.name: _brought_problem(plugin) for plugin in kernel_plugins()}
    broken = {name: what for name, what in brought.items() if isinstance(what, BrokenKernel)}
    return {name: why for name, why in broken.items() if name not in _own_kernels()}


def plugin_packages() -> dict[str, str]:
    """The packages of all plug-ins, even of broken ones, with their versions, and all folders with their hashes.

    Folders with backends of their own are left out: they are there for one run. So is one that was made of a file, in
    whose place that file stands.
    """
    every = (*_backend_plugins(), *kernel_plugins())
    packages = {plugin.package: plugin.version for plugin in every if plugin.is_package}
    given = [folder for folder in folders.every() if not folder.backends]
    return packages | {str(folder.made_of or folder.path): folder.digest for folder in given}


def plugin_folders() -> list[Path]:
    """The folders of the packages of plug-ins."""
    return [plugin.folder for plugin in (*_backend_plugins(), *kernel_plugins()) if plugin.folder]


def why_no_text(backend: str) -> str | None:
    """Why a plug-in's backend has no source of any kernel; None for a backend with a source."""
    plugin = backend_plugin(backend)
    if plugin is None or any(kernel_files(kernel, backend) for kernel in kernel_names()):
        return None
    return f"{plugin.origin} contains no source: it needs files kernels/KERNEL/VARIANT/{backend}.*, in its wheel too"


@cache
def problem(kernel: str) -> Problem:
    """The problem of that kernel. Raises WrongRequest, with the nearest name, for an unknown one.

    Raises BrokenKernel if its file, or the package of the plug-in that declares it, does not contain a valid one.
    """
    if kernel in _own_kernels():
        return _own_problem(kernel)
    if plugin := kernel_plugin(kernel):
        brought = _brought_problem(plugin)
        if isinstance(brought, BrokenKernel):
            raise brought
        return brought
    raise _unknown(kernel, kernel_names(), "kernel")


def kernel_plugin(name: str) -> Plugin | None:
    """The plug-in of a kernel, even a refused one; None for the project's own kernels and unknown names."""
    if name in _own_kernels():
        return None
    return next((plugin for plugin in kernel_plugins() if plugin.name == name), None)


def blamed(kernel: str, failed: Exception, sizes: Sequence[Any] | None = None) -> BrokenKernel | None:
    """The error to report if the problem of a plug-in fails as it runs; None for the project's own kernels.

    sizes: at which it fails, with the numbers.
    """
    plugin = kernel_plugin(kernel)
    if plugin is None:
        return None
    at = ""
    if sizes is not None and not isinstance(made := _brought_problem(plugin), BrokenKernel):
        named = zip(made.parameters, sizes, strict=False)
        at = f" at {', '.join(f'{name} {size}' for name, size in named)}" if sizes else ""
    return BrokenKernel(
        f"the problem of {plugin.origin} fails{at}: {plugins.described(failed)}{place(failed)}", plugin.fix
    )


def place(error: BaseException) -> str:
    """The file and line of a source or a plug-in that raised an error, for its author; empty if nothing of it did."""
    if isinstance(error, SyntaxError):  # which says where it is
        return ""
    inside, libraries = plugin_folders(), _of_libraries()
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if folder := next(filter(path.is_relative_to, inside), None):
            return f" ({path.relative_to(folder.parent)}, line {frame.lineno})"
        if path.is_absolute() and not any(map(path.is_relative_to, libraries)):
            return f" ({path.name}, line {frame.lineno})"
    return ""


def _of_libraries() -> list[Path]:
    """The folders of this package, of Python and of installed packages."""
    places = sysconfig.get_path("stdlib"), *site.getsitepackages(), site.getusersitepackages()
    return [Path(__file__).parent, *map(Path, places)]


def has_kernel(name: str, parameters: Sequence[str]) -> bool:
    """Whether a kernel of this name with these parameters is here. Results of elsewhere may have others."""
    return name in kernel_names() and tuple(parameters) == problem(name).parameters


def is_kernel(name: str) -> bool:
    """Whether there is a kernel of that name, even a broken one. This imports no plug-in."""
    return name in _own_kernels() or kernel_plugin(name) is not None


@cache
def kernel_texts(kernel: str, backend: str) -> dict[str, KernelText]:
    """The sources of a kernel for a backend, by variant: `tuned` first if there is one."""
    asked = problem(kernel)
    return {
        variant: KernelText(asked, variant, backend, path, package)
        for variant, (path, package) in kernel_files(kernel, backend).items()
    }


def dtypes(text: KernelText, target: Target | None = None) -> tuple[str, ...]:
    """The number formats in which a source runs on a target: those that both have.

    A probed target may list its dtypes itself. Otherwise its backend is imported, which lists them.
    """
    if target is not None and target.dtypes is not None:
        taken = target.dtypes.get(f"{text.kernel}/{text.variant}", target.dtypes.get(text.kernel, ()))
    else:
        taken = backend(text.backend).dtypes
    return tuple(each for each in text.dtypes if each in taken)


def may_have(kernel: str, dtype: str) -> bool:
    """Whether a kernel, or a source such as `matmul/tuned`, may have a number format.

    One of a plug-in may have any, since this imports no plug-in.
    """
    name = kernel.partition("/")[0]
    try:
        return name not in _own_kernels() or dtype in problem(name).dtypes
    except BrokenKernel:  # whoever runs it is told
        return True


def texts_in(dtype: str, kernel: str, backend: str, target: Target | None = None) -> dict[str, KernelText]:
    """The sources of `kernel_texts` that run in a number format on a target."""
    texts = kernel_texts(kernel, backend)
    return {variant: text for variant, text in texts.items() if dtype in dtypes(text, target)}


def kernel_files(kernel: str, backend: str) -> dict[str, tuple[Path, str | None]]:
    """The files behind `kernel_texts` with their packages. They are found for a broken kernel too."""
    files = _placed_files(kernel, backend)
    for given in _further_sources(kernel):
        files |= {path.parent.name: (path, given.module) for path in given.sources(backend)}
    first = {"tuned": 0, "lecture": 1}  # steps between the two run only on request
    return dict(sorted(files.items(), key=lambda item: first.get(item[0], len(first))))


def _further_sources(kernel: str) -> list[folders.Folder]:
    """The folders with further sources of a kernel."""
    return [each for each in folders.every() if each.kernel == kernel and not each.has_problem]


def _placed_files(kernel: str, backend: str) -> dict[str, tuple[Path, str | None]]:
    """As `kernel_files`, without further sources: what lies with the kernel, or with the backend."""
    files: dict[str, tuple[Path, str | None]] = {}
    for folder, package in _folders_of_texts(kernel, backend):
        for path in sorted(folder.glob(f"*/{backend}.*")):
            variant = path.parent.name
            if variant.isidentifier() and not variant.startswith("_"):
                files.setdefault(variant, (path, package))
    return files


def _folders_of_texts(kernel: str, backend: str) -> Iterator[tuple[Path, str | None]]:
    """The folders with a kernel's sources for a backend. Those of the kernel's package come first."""
    if kernel in _own_kernels():
        yield kernels_folder() / kernel, None
    else:
        for plugin in kernel_plugins():
            if plugin.name == kernel and plugin.folder:
                yield plugin.folder, plugin.module
    if (brought := backend_plugin(backend)) and brought.folder and brought.refusal is None:
        yield brought.folder / "kernels" / kernel, f"{brought.module}.kernels.{kernel}"


@cache
def variant_names() -> list[str]:
    """`lecture`, `tuned`, and every other variant of some source."""
    pairs = ((kernel, backend) for kernel in kernel_names() for backend in backend_names())
    return sorted({"lecture", "tuned", *(variant for pair in pairs for variant in kernel_texts(*pair))})


def known(name: str, names: Iterable[str], what: str) -> str:
    """Return `name` if it is one of `names`. If not, raise WrongRequest, which suggests the nearest."""
    names = list(names)
    if isinstance(name, str) and name in names:
        return name
    raise _unknown(name, names, what)


def _unknown(name: str, names: list[str], what: str) -> WrongRequest:
    if not isinstance(name, str):
        others = hint("", names)
        return WrongRequest(f"unknown {what}: it must be a name, not {type(name).__name__}; {others}")
    return WrongRequest(f"unknown {what} {shown(name)}: {hint(name, names)}")


def known_backend(name: str) -> str:
    """Return `name` if a backend has it. Raises BackendUnavailable if it is refused, WrongRequest if unknown."""
    names, refused = backend_names(), refused_backends()
    if isinstance(name, str) and name not in names and name in refused:
        raise refused[name]
    return known(name, names, "backend")


@cache
def _own_backends() -> tuple[str, ...]:
    """The names of the project's backends: the modules of py_backends/backend without a leading underscore."""
    package = importlib.import_module(_BACKENDS)
    found = pkgutil.iter_modules(package.__path__)
    return tuple(each.name for each in found if not each.ispkg and not each.name.startswith("_"))


@cache
def _own_backend(name: str) -> Backend:
    made: Backend = importlib.import_module(f"{_BACKENDS}.{name}").Backend()
    return made


@cache
def _brought_backend(plugin: Plugin) -> Backend:
    return plugins.backend(plugin)


@cache
def _own_kernels() -> tuple[str, ...]:
    """The names of the project's kernels: the folders of kernels/ that contain a problem.py."""
    return tuple(sorted(path.parent.name for path in kernels_folder().glob("*/problem.py")))


def _own_problem(kernel: str) -> Problem:
    """The problem of a kernel of the project, checked as a plug-in's is: whoever adds one makes the same mistakes."""
    try:
        return plugins.checked_problem(importlib.import_module(f"py_backends.kernels.{kernel}.problem").PROBLEM, kernel)
    except Exception as failed:
        raise BrokenKernel(f"kernels/{kernel}/problem.py holds no problem: {plugins.described(failed)}") from failed


@cache
def _backend_plugins() -> list[Plugin]:
    return plugins.plugins(plugins.BACKENDS, _own_backends())


@cache
def _brought_problem(plugin: Plugin) -> Problem | BrokenKernel:
    """The problem of a plug-in's kernel, or the error that it raises."""
    try:
        return plugins.problem(plugin)
    except BrokenKernel as error:
        return error


def kernels_folder() -> Path:
    """Where the project's kernels lie: in a clone, or in the package."""
    package = importlib.import_module("py_backends.kernels")
    return Path(next(iter(package.__path__)))


def _forget(_: str) -> None:
    """Find kernels anew, and the backends that folders bring."""
    of_kernels = kernel_plugins, problem, kernel_texts, variant_names, _brought_problem
    for found in (*of_kernels, _backend_plugins, _brought_backend):
        found.cache_clear()


folders.FORGET.append(_forget)
