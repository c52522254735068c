"""Stamps: which sources were right on which target, so that the next run of the tests tries what has changed.

A stamp lies beside the clone's build, `build/stamps/`. It holds two digests. One is of the source, its file and what it
includes. The other is of all around it that could change the answer, or whether it is right: its kernel's problem and
trials, the modules that compute and check, the compiled ones, the interpreter and its packages, driver, compiler, CPU,
and the variables of the environment. A source whose own digest is another one was changed, and is tried whole.
"""

from __future__ import annotations

import ast
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from functools import cache
from importlib import metadata
from pathlib import Path

import msgspec
from commands import CLONE

from py_backends import registry
from py_backends.conformance.selection import Subject
from py_backends.system import cpu, machine
from py_backends.system.files import write_whole

FOLDER = CLONE / "build" / "stamps"
_COMPILED = CLONE / "py_backends" / "_compiled"
_NEITHER_COMPUTE_NOR_CHECK = {"commands", "display", "hello"}
"""Rooms of the package on which no answer of a kernel depends."""
_JUDGES = ("conftest.py", "launched.py", "stamps.py")
"""What decides here, beside the tests of models, whether a source is right."""
_OF_A_TERMINAL = (
    *("COLUMNS", "COLORTERM", "DBUS_", "DESKTOP_", "DISPLAY", "LINES", "LS_COLORS", "MAKE", "MFLAGS", "OLDPWD", "PWD"),
    *("PYTEST_", "SESSION", "SHLVL", "SSH_", "TERM", "TMUX", "VTE_", "WAYLAND_", "WINDOWID", "XDG_SESSION_"),
)
"""Beginnings of variables that differ from shell to shell, and that no compiler, driver or library reads. What is not
known to be one of these may be read by one."""
_ENVIRONMENT = {name: told for name, told in os.environ.items() if name != "_"}
_PATH = list(sys.path)
_CPUS = machine.cpus()
"""As they were before tests ran: libraries set variables and masks, and packages of plug-ins come and go."""
STAMPED = "stamped"
"""The name under which a test's report says what it tried now, what a stamp says was right before, and what neither."""


class Due(Enum):
    """How much of a source is to be tried."""

    NOTHING = "nothing: it passed, and nothing that its answer depends on has changed"
    LITTLE = "what is tried in a fresh clone"
    ALL = "all of it: it was changed"


class Stamp(msgspec.Struct, forbid_unknown_fields=True):
    """What is known of a source on a target.

    source: the digest that it had.
    around: the digest of what was around it when it passed; None if it was not tried.
    whole: the digest of the other two, which tells a damaged file.
    """

    source: str
    around: str | None
    whole: str


class Stamps:
    """The stamps of a folder."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder

    def due(self, subject: Subject, of: str = "") -> Due:
        """How much of a source is to be tried. What a plug-in brings has no stamp.

        of: a part of what is tried of it, which has a stamp of its own.
        """
        if _is_of_plug_in(subject):
            return Due.LITTLE
        stamp, source = self._read(subject, of), source_digest(subject)
        if stamp is not None and stamp.source != source:
            return Due.ALL
        return Due.NOTHING if stamp and stamp.around == around_digest(subject) else Due.LITTLE

    def keep(self, subject: Subject, of: str = "", *, passed: bool) -> None:
        """Keep that a source is as it is, and whether it passed. Not where it is newer than what was compiled of it."""
        if _is_of_plug_in(subject) or _is_to_be_compiled(subject):
            return
        source, around = source_digest(subject), around_digest(subject) if passed else None
        self._folder.mkdir(parents=True, exist_ok=True)
        stamp = Stamp(source, around, _digest([source, str(around)]))
        write_whole(self._path(subject, of), msgspec.json.encode(stamp))

    def _read(self, subject: Subject, of: str) -> Stamp | None:
        try:
            stamp = msgspec.json.decode(self._path(subject, of).read_bytes(), type=Stamp)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return None
        return stamp if stamp.whole == _digest([stamp.source, str(stamp.around)]) else None

    def _path(self, subject: Subject, of: str) -> Path:
        return self._folder / f"{'-'.join(filter(None, (subject.label, of)))}.json"


class StampsOfTests:
    """Stamps of tests that take long and depend on the clone alone, by their names.

    paths: files and folders that a test depends on; without any, it does on the whole clone and all around it.
    """

    def __init__(self, folder: Path = FOLDER / "tests", clone: Path = CLONE) -> None:
        self._folder, self._clone = folder, clone

    def known(self, test: str) -> bool:
        """Whether it has a stamp."""
        return self._path(test).exists()

    def passed(self, test: str, paths: Sequence[Path] = ()) -> bool:
        """Whether it passed, and nothing that it depends on has changed since."""
        try:
            return self._path(test).read_text(encoding="utf-8") == self._state(paths)
        except (OSError, UnicodeDecodeError):
            return False

    def keep(self, test: str, paths: Sequence[Path] = ()) -> None:
        """Keep that it passed."""
        self._folder.mkdir(parents=True, exist_ok=True)
        write_whole(self._path(test), self._state(paths))

    def _path(self, test: str) -> Path:
        return self._folder / _digest([test])

    def _state(self, paths: Sequence[Path]) -> str:
        return _digest_of_all(tuple(paths)) if paths else _digest([*_around(), _whole(self._clone)])


def _whole(clone: Path) -> str:
    """The digest of each file that a run of the program or of its tests may read, compiled ones too."""
    return _digest_of_all((*(clone / name for name in ("py_backends", "kernels", "tests")), *clone.glob("*.toml")))


@cache
def _digest_of_all(paths: tuple[Path, ...]) -> str:
    """The digest of files, and of all files of folders."""
    return _digest_of_files(path for each in paths for path in (each, *each.rglob("*")) if _is_read(path))


def _is_of_plug_in(subject: Subject) -> bool:
    """Whether another package brings it, whose files are not looked at here."""
    text = subject.text
    return text.package is not None or registry.backend_plugin(text.backend) is not None


def _is_to_be_compiled(subject: Subject) -> bool:
    """Whether a source has changed since its backend's module was compiled, which has another one in it."""
    compiled = [path.stat().st_mtime_ns for path in _COMPILED.glob(f"{subject.text.backend}.*.so")]
    return bool(compiled) and max(path.stat().st_mtime_ns for path in files_of(subject)) > max(compiled)


def source_digest(subject: Subject) -> str:
    """The digest of a source, of all that it includes, and of all other sources that it imports."""
    return _digest_of_files(files_of(subject))


def files_of(subject: Subject) -> list[Path]:
    """The files of a source: what it includes and, of Python, its other modules and those of other kernels."""
    text, files = subject.text, list(subject.text.files)
    if text.path.suffix == ".py":
        files += text.path.parent.glob(f"{text.backend}*.py")
        for file in files:  # which grows meanwhile
            files += [path for path in _imported(file, text.path.parents[2]) if path not in files]
    return files


def _imported(file: Path, kernels: Path) -> Iterator[Path]:
    """The modules below the folder of kernels that a module imports by their relative names."""
    try:
        statements = list(ast.walk(ast.parse(file.read_bytes())))
    except (SyntaxError, ValueError):  # whoever imports it is told
        return
    for statement in statements:
        if isinstance(statement, ast.ImportFrom) and statement.level:
            folder = file.parents[statement.level - 1].joinpath(*(statement.module or "").split("."))
            named = [folder.with_suffix(".py"), *(folder / f"{each.name}.py" for each in statement.names)]
            yield from (path for path in named if path.is_file() and path.is_relative_to(kernels))


def around_digest(subject: Subject) -> str:
    """The digest of all else that could change a source's answer on its target, or whether it is right."""
    text, borrowed = subject.text, subject.target.borrowed
    others = set() if borrowed else set(registry.backend_names()) - {text.backend}
    of_kernel = text.path.parents[1].rglob("*") if borrowed else text.path.parents[1].glob("*.py")
    judges = _digest_of_files(path for path in of_kernel if _is_read(path))
    return _digest([*_around(), _modules(CLONE, frozenset(others)), judges, repr(subject.target)])


@cache
def _around() -> list[str]:
    compiler = _ENVIRONMENT.get("CXX") or next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), "")
    packages = sorted(f"{each.name}=={each.version}" for each in metadata.distributions(path=_PATH))
    variables = sorted(f"{name}={told}" for name, told in _ENVIRONMENT.items() if not name.startswith(_OF_A_TERMINAL))
    return [sys.version, *packages, _said(compiler), *cpu.identity(), str(_CPUS), *variables]


def _said(compiler: str) -> str:
    """Its version. CXX may hold options too, and a folder may have a space in its name."""
    program = [compiler] if shutil.which(compiler) else compiler.split()
    try:
        return subprocess.run([*program, "--version"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return "not there"


@cache
def _modules(clone: Path, others: frozenset[str]) -> str:
    """The digest of each file that computes or checks, compiled ones too, but of the modules of other backends."""
    package, tests = clone / "py_backends", clone / "tests"
    every = [*package.rglob("*"), *tests.glob("models/*.py"), *(tests / name for name in _JUDGES)]
    return _digest_of_files(path for path in every if _is_read(path) and not _is_apart(path, clone, others))


def _is_read(path: Path) -> bool:
    return path.is_file() and path.parent.name != "__pycache__" and path.suffix != ".pyi"


def _is_apart(path: Path, clone: Path, others: frozenset[str]) -> bool:
    """Whether a file is of a room on which no answer depends, or another backend's own module."""
    room, *_ = path.relative_to(clone).parts[1:]
    return room in _NEITHER_COMPUTE_NOR_CHECK or (
        path.parent.name in {"backend", "_compiled"} and path.name.split(".")[0] in others
    )


def _digest_of_files(files: Iterable[Path]) -> str:
    """Of their places in the clone, which may be moved, and their contents."""
    places = sorted((os.path.relpath(path, CLONE), path) for path in set(files))
    return _digest(part for place, path in places for part in (place, _digest_of_file(path)))


@cache
def _digest_of_file(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _digest(parts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode("utf-8", "surrogateescape")
        digest.update(len(content).to_bytes(8, "big") + content)  # so that no two lists of parts give one digest
    return digest.hexdigest()
