"""Kernels in folders of anybody's: found by their paths, and known by their names from then on.

    py-backends compare --kernel ./axpy                       axpy/problem.py and axpy/VARIANT/BACKEND.*
    py-backends compare --kernel matmul --sources ./mine      mine/BACKEND.*, further sources of a kernel that is here

A variable has all of them, so that workers find them too. What is imported from a folder has a name with a hash of what
the kernel is made of: after a change it is imported anew, and from its source.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from functools import cached_property
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES, ExtensionFileLoader, FileFinder, SourceFileLoader
from pathlib import Path
from threading import Lock
from types import CodeType, ModuleType

from py_backends.errors import WrongRequest
from py_backends.source_head import files_of

VARIABLE = "PY_BACKENDS_FOLDERS"
"""In JSON, since a path may hold any character: a list of folders, each a list of the fields of `Folder`."""
_PREFIX = "_py_backends_folder_"
_WRITTEN = frozenset({".csv", ".html", ".json", ".md", ".png", ".svg"})
"""What commands write, and people beside a kernel."""
_INCLUDING = frozenset({".cl", ".cpp", ".cu"})
BACKENDS = "_backends"
"""Where a folder has backends of its own, as modules. Their names end as a call does, so no other backend has one."""
CALL = "()"
_changing = Lock()
FORGET: list[Callable[[str], None]] = []
"""Called with a kernel whose folder has come, or holds something else now: who knows anything of it lets that go."""


@dataclass(frozen=True)
class Folder:
    """A folder of sources.

    kernel: whose sources they are.
    path: absolute.
    has_problem: whether it brings the kernel. Else it brings further sources of one that is here.
    made_of: the file of a user's that lies in it, where it was made for one run; None for a user's own folder.
    """

    kernel: str
    path: Path
    has_problem: bool
    made_of: Path | None = None

    @cached_property
    def digest(self) -> str:
        """The first 12 hexadecimal digits of a hash of what the kernel is made of, and where that lies.

        All files belong to it: problem.py, modules, sources, headers, data in `.npz`. So does what sources include
        from elsewhere by `#include "..."`. Results and pages do not: a run that writes them here leaves the kernel as
        it is. Nor does what is hidden, such as `.git`, or lies in `__pycache__`.
        """
        files = [each for each in self.path.rglob("*") if self._belongs(each) and each.is_file()]
        files += [found for each in files if each.suffix in _INCLUDING for found in files_of(each)]
        whole = hashlib.sha256()
        for place, file in sorted({os.path.relpath(each, self.path): each for each in files}.items()):
            with file.open("rb") as opened:  # a matrix may be larger than the memory
                content = hashlib.file_digest(opened, "sha256").digest()
            whole.update(os.fsencode(place) + b"\0" + content)
        return whole.hexdigest()[:12]

    def _belongs(self, file: Path) -> bool:
        """Whether a file in the folder is a part of the kernel, by its name and those of the folders on the way."""
        passed_over = any(name.startswith(".") or name == "__pycache__" for name in file.relative_to(self.path).parts)
        return not passed_over and file.suffix not in _WRITTEN

    @cached_property
    def module(self) -> str:
        """The name below which its modules are imported. It stands for its parent where sources lie in it directly."""
        name = f"{_PREFIX}{self.digest}_{self.kernel}"
        if name not in sys.modules:
            if _finder not in sys.path_hooks:
                sys.path_hooks.insert(0, _finder)
            package = ModuleType(name, f"What {self.path} holds.")
            package.__path__ = [str(self.path if self.has_problem else self.path.parent)]
            sys.modules[name] = package
        return name

    @cached_property
    def backends(self) -> tuple[str, ...]:
        """The names of the backends that it brings: functions, each as a model of its own."""
        return tuple(sorted(file.stem for file in self.path.glob(f"{BACKENDS}/*{CALL}.py")))

    def sources(self, backend: str) -> list[Path]:
        """The files of a backend: VARIANT/BACKEND.*, and of further sources BACKEND.* too, a variant by itself."""
        return sorted(self.path.glob(f"*/{backend}.*" if self.has_problem else f"{backend}.*"))


class _FromSource(SourceFileLoader):
    """Compiles a module whenever it is imported.

    Python takes bytecode that it kept for that of any source of the same second and length. It is not kept here.
    """

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


def _finder(path: str) -> FileFinder:
    """Finds modules in the folders that are known, and in all below them: a hook of `sys.path_hooks`."""
    if not any(Path(path).is_relative_to(each.path) for each in _known.values()):
        raise ImportError
    return FileFinder(path, (ExtensionFileLoader, EXTENSION_SUFFIXES), (_FromSource, SOURCE_SUFFIXES))


def is_path(name: object) -> bool:
    """Whether a name of a kernel is the path of a folder: it has a separator, or is `.` or `..`."""
    return isinstance(name, os.PathLike) or (
        isinstance(name, str) and (os.sep in name or name in (os.curdir, os.pardir))
    )


def is_one(text: str) -> bool:
    """Whether a list, in which commas part names and paths, is one path of a folder as it stands, commas and all."""
    return is_path(text) and os.path.isdir(text)  # noqa: PTH112  # which takes a string of any length


def kernel_at(path: str | os.PathLike[str]) -> Folder:
    """The folder of a kernel. Raises WrongRequest, with one line, for what is none."""
    folder = _checked(path)
    if not (folder / "problem.py").is_file():
        raise WrongRequest(f"{path} has no problem.py: further sources of a kernel are given by --sources")
    return Folder(folder.name, folder, has_problem=True)


def sources_at(path: str | os.PathLike[str], kernel: str, made_of: Path | None = None) -> Folder:
    """A folder of further sources. Raises WrongRequest, with one line, for what is none."""
    folder = _checked(path)
    if (folder / "problem.py").is_file():
        raise WrongRequest(f"{path} is a kernel by itself, since it has a problem.py: name it by --kernel")
    if not folder.name.isidentifier() or folder.name.startswith("_"):
        raise WrongRequest(f"{path}: the folder's name is that of the variant, of letters, digits and underscores")
    return Folder(kernel, folder, has_problem=False, made_of=made_of)


def brings(module: str) -> bool:
    """Whether a module is one of a folder."""
    return module.startswith(_PREFIX)


def _checked(path: str | os.PathLike[str]) -> Path:
    folder = Path(path).resolve()
    if not folder.is_dir():
        raise WrongRequest(f"{os.fspath(path)} is no folder")
    return folder


def add(folder: Folder) -> None:
    """Keep a folder for this process and those that it starts."""
    with _changing:
        _hand_over([*(each for each in _handed_over() if each != folder), folder])
        before = _known.get(folder)
        _known[folder] = folder
    if before is None or before.digest != folder.digest:
        for forget in FORGET:
            forget(folder.kernel)


@contextmanager
def known(folder: Folder) -> Iterator[None]:
    """Within, this process and those that it starts know a folder. Afterwards nothing is left of that."""
    try:
        add(folder)
        yield
    finally:
        remove(folder)


def remove(folder: Folder) -> None:
    """Let a folder go, and all that was imported from it."""
    with _changing:
        _hand_over([each for each in _handed_over() if each != folder])
        _known.pop(folder, None)
    for name in [each for each in sys.modules if each == folder.module or each.startswith(f"{folder.module}.")]:
        del sys.modules[name]
    for path in [each for each in sys.path_importer_cache if Path(each).is_relative_to(folder.path)]:
        del sys.path_importer_cache[path]
    for forget in FORGET:
        forget(folder.kernel)


def every() -> list[Folder]:
    """All folders, as they were when this process first asked for them, or added them."""
    return [_known.setdefault(each, each) for each in _handed_over()]


def _handed_over() -> list[Folder]:
    """What the variable says, as `_hand_over` wrote it."""
    listed = json.loads(os.environ.get(VARIABLE) or "[]")
    return [
        Folder(kernel, Path(path), has_problem, made_of and Path(made_of))
        for kernel, path, has_problem, made_of in listed
    ]


def _hand_over(given: list[Folder]) -> None:
    """Let the variable say these, for this process and those that it starts."""
    if given:
        os.environ[VARIABLE] = json.dumps([astuple(each) for each in given], default=os.fspath)
    else:
        os.environ.pop(VARIABLE, None)


_known: dict[Folder, Folder] = {}
"""Each folder as it was first seen, with its hash from then on."""
