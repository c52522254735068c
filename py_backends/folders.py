"""Kernels in folders of anybody's: found by their paths, and known by their names from then on.

    py-backends compare --kernel ./axpy                       axpy/problem.py and axpy/VARIANT/BACKEND.*
    py-backends compare --kernel matmul --sources ./mine      mine/BACKEND.*, further sources of a kernel that is here

A variable has all of them, so that workers find them too. What is imported from a folder has a name with a hash of all
that the folder holds: after a change it is imported anew.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType

from py_backends.errors import WrongRequest

VARIABLE = "PY_BACKENDS_FOLDERS"
"""Its entries are `PATH` of a kernel, or `KERNEL=PATH` of further sources, each in a line."""
_PREFIX = "_py_backends_folder_"
_PASSED_OVER = ("__pycache__",)
FORGET: list[Callable[[str], None]] = []
"""Called with a kernel whose folder has come, or holds something else now: who knows anything of it lets that go."""


@dataclass(frozen=True)
class Folder:
    """A folder of sources.

    kernel: whose sources they are.
    path: absolute.
    has_problem: whether it brings the kernel. Else it brings further sources of one that is here.
    """

    kernel: str
    path: Path
    has_problem: bool

    @cached_property
    def digest(self) -> str:
        """The first 12 hexadecimal digits of a hash of all files and their places."""
        whole = hashlib.sha256()
        for file in sorted(self.path.rglob("*")):
            if file.is_file() and not set(file.parts) & set(_PASSED_OVER):
                with file.open("rb") as opened:  # a matrix may be larger than the memory
                    content = hashlib.file_digest(opened, "sha256").digest()
                whole.update(os.fsencode(file.relative_to(self.path)) + b"\0" + content)
        return whole.hexdigest()[:12]

    @cached_property
    def module(self) -> str:
        """The name below which its modules are imported. It stands for its parent where sources lie in it directly."""
        name = f"{_PREFIX}{self.digest}_{self.kernel}"
        if name not in sys.modules:
            package = ModuleType(name, f"What {self.path} holds.")
            package.__path__ = [str(self.path if self.has_problem else self.path.parent)]
            sys.modules[name] = package
        return name

    def sources(self, backend: str) -> list[Path]:
        """The files of a backend: VARIANT/BACKEND.*, and of further sources BACKEND.* too, a variant by itself."""
        return sorted(self.path.glob(f"*/{backend}.*" if self.has_problem else f"{backend}.*"))


def is_path(name: object) -> bool:
    """Whether a name of a kernel is the path of a folder: it has a separator, or is `.` or `..`."""
    return isinstance(name, os.PathLike) or (
        isinstance(name, str) and (os.sep in name or name in (os.curdir, os.pardir))
    )


def kernel_at(path: str | os.PathLike[str]) -> Folder:
    """The folder of a kernel. Raises WrongRequest, with one line, for what is none."""
    folder = _checked(path)
    if not (folder / "problem.py").is_file():
        raise WrongRequest(f"{path} has no problem.py: further sources of a kernel are given by --sources")
    return Folder(folder.name, folder, has_problem=True)


def sources_at(path: str | os.PathLike[str], kernel: str) -> Folder:
    """A folder of further sources. Raises WrongRequest, with one line, for what is none."""
    folder = _checked(path)
    if (folder / "problem.py").is_file():
        raise WrongRequest(f"{path} is a kernel by itself, since it has a problem.py: name it by --kernel")
    if not folder.name.isidentifier() or folder.name.startswith("_"):
        raise WrongRequest(f"{path}: the folder's name is that of the variant, of letters, digits and underscores")
    return Folder(kernel, folder, has_problem=False)


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
    lines, line = os.environ.get(VARIABLE, "").splitlines(), _line(folder)
    kept = [each for each in lines if each != line]
    os.environ[VARIABLE] = "\n".join([*kept, line])
    before = _known.get(line)
    _known[line] = folder
    if before is None or before.digest != folder.digest:
        for forget in FORGET:
            forget(folder.kernel)


def remove(folder: Folder) -> None:
    """Let a folder go again, before it is gone itself."""
    lines, line = os.environ.get(VARIABLE, "").splitlines(), _line(folder)
    os.environ[VARIABLE] = "\n".join(each for each in lines if each != line)
    _known.pop(line, None)
    for forget in FORGET:
        forget(folder.kernel)


def every() -> list[Folder]:
    """All folders, as they were when this process first asked for them, or added them."""
    for line in os.environ.get(VARIABLE, "").splitlines():
        if line not in _known:
            kernel, named, path = line.rpartition("=")
            _known[line] = Folder(kernel if named else Path(path).name, Path(path), has_problem=not named)
    return [_known[line] for line in os.environ.get(VARIABLE, "").splitlines()]


def _line(folder: Folder) -> str:
    return str(folder.path) if folder.has_problem else f"{folder.kernel}={folder.path}"


_known: dict[str, Folder] = {}
