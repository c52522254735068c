"""Stamps: which sources were right on which target, so that the next run of the tests tries what has changed.

A stamp lies beside the clone's build, `build/stamps/`. It holds two digests. One is of the source, its file and what it
includes. The other is of all around it that could change the answer, or whether it is right: its kernel's problem and
trials, the modules that compute and check, the compiled ones, the interpreter and its packages, driver, compiler, CPU,
and the variables of the environment. A source whose own digest is another one was changed, and is tried whole.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
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
_NEITHER_COMPUTE_NOR_CHECK = {"commands", "display", "harness", "hello"}
"""Rooms of the package on which no answer of a kernel depends."""
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
        """How much of a source is to be tried.

        of: a part of what is tried of it, which has a stamp of its own.
        """
        stamp, source = self._read(subject, of), source_digest(subject)
        if stamp is not None and stamp.source != source:
            return Due.ALL
        return Due.NOTHING if stamp and stamp.around == around_digest(subject) else Due.LITTLE

    def keep(self, subject: Subject, of: str = "", *, passed: bool) -> None:
        """Keep that a source is as it is, and whether it passed."""
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


def source_digest(subject: Subject) -> str:
    """The digest of a source, of all that it includes, and of its other modules where it has several."""
    text = subject.text
    parts = text.path.parent.glob(f"{text.backend}*.py") if text.path.suffix == ".py" else ()
    return _digest_of_files({*text.files, *parts})


def around_digest(subject: Subject) -> str:
    """The digest of all else that could change a source's answer on its target, or whether it is right."""
    others = set() if subject.target.borrowed else set(registry.backend_names()) - {subject.text.backend}
    of_kernel = _digest_of_files(subject.text.path.parents[1].glob("*.py"))
    return _digest([*_around(), _modules(CLONE, frozenset(others)), of_kernel, repr(subject.target)])


@cache
def _around() -> list[str]:
    compiler = _ENVIRONMENT.get("CXX") or next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), "")
    packages = sorted(f"{each.name}=={each.version}" for each in metadata.distributions(path=_PATH))
    variables = sorted(
        f"{name}={told}" for name, told in _ENVIRONMENT.items() if name != "_" and not name.startswith(_OF_A_TERMINAL)
    )
    return [sys.version, *packages, _said(f"{compiler} --version"), *cpu.identity(), str(_CPUS), *variables]


def _said(command: str) -> str:
    try:
        return subprocess.run(command.split(), capture_output=True, text=True, check=False).stdout
    except OSError:
        return "not there"


@cache
def _modules(clone: Path, others: frozenset[str]) -> str:
    """The digest of each module, compiled ones too, that computes or checks, but of those that are other backends'."""
    package, tests = clone / "py_backends", clone / "tests"
    rooms = (
        path for path in package.rglob("*.py") if path.relative_to(package).parts[0] not in _NEITHER_COMPUTE_NOR_CHECK
    )
    every = (*rooms, *package.glob("_compiled/*.so"), *tests.glob("models/*.py"), tests / "stamps.py")
    return _digest_of_files(path for path in every if path.name.split(".")[0] not in others)


def _digest_of_files(files: Iterable[Path]) -> str:
    return _digest(part for path in sorted(files) for part in (str(path), _digest_of_file(path)))


@cache
def _digest_of_file(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _digest(parts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode("utf-8", "surrogateescape")
        digest.update(len(content).to_bytes(8, "big") + content)  # so that no two lists of parts give one digest
    return digest.hexdigest()
