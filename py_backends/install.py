"""The command that installs what an extra of this distribution names, wherever the package came from.

It works as it is printed, also where the path has another `pip`, or none: `make` runs `.venv/bin/python`.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import platform
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import py_backends

_DISTRIBUTION = "py-backends"


def other_architecture() -> str | None:
    """The CPU's architecture where it is not x86-64, for which alone Intel and PoCL make wheels; else None."""
    machine = platform.machine()
    return None if machine == "x86_64" else machine


def pip() -> str:
    """The command of the pip that installs for this interpreter, from the current folder."""
    python = Path(sys.executable or "python")  # a program that embeds Python may have none
    in_path = shutil.which("pip")
    if in_path and Path(in_path).parent == python.parent:
        return "pip"
    here = _here()
    command = shlex.quote(str(python.relative_to(here) if here and python.is_relative_to(here) else python))
    without = importlib.util.find_spec("pip") is None  # as uv makes environments
    return f"{command} -m ensurepip && {command} -m pip" if without else f"{command} -m pip"


def _here() -> Path | None:
    """The current folder; None if somebody has deleted it."""
    try:
        return Path.cwd()
    except OSError:
        return None


def pip_install(extra: str) -> str:
    """In a clone, pip's command for the clone with that extra; else for what the installed metadata say it requires.

    So the command works everywhere, whether or not this distribution is on an index. A clone that is installed as
    editable, as `make` does, gets the latter too: pip would put a copy in its place, which no edit changes.
    """
    clone = Path(py_backends.__file__).parent.parent
    if (clone / "pyproject.toml").is_file() and not _is_editable():
        return f"{pip()} install {_quoted(('.' if clone == _here() else str(clone)) + f'[{extra}]')}"
    if extra not in _extras():
        return f"install what the extra {extra} in pyproject.toml names"
    wanted = [f'"{requirement}"' for requirement in _requirements(extra)]
    return " ".join((pip(), "install", *wanted)) if wanted else "there are no wheels of it for this machine"


def _quoted(requirement: str) -> str:
    """A requirement as a word for a shell, which would take parts of some folders' names for its own."""
    return shlex.quote(requirement) if set('"$`\\!') & set(requirement) else f'"{requirement}"'


def _is_editable() -> bool:
    """Whether the environment has this distribution as a link to its sources (PEP 610)."""
    try:
        origin = importlib.metadata.distribution(_DISTRIBUTION).read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:
        return False
    return bool(origin and json.loads(origin).get("dir_info", {}).get("editable"))


def _extras() -> list[str]:
    """The names of all extras, in the installed metadata. They may be older than a clone, or not be there."""
    try:
        return importlib.metadata.metadata(_DISTRIBUTION).get_all("Provides-Extra") or []
    except importlib.metadata.PackageNotFoundError:
        return []


def _requirements(extra: str) -> Iterator[str]:
    """What an extra adds to the distribution on this machine; other extras that it names are given in full."""
    from packaging.requirements import Requirement

    for line in importlib.metadata.requires(_DISTRIBUTION) or ():
        requirement = Requirement(line)
        marker = requirement.marker
        if marker is None or marker.evaluate({"extra": ""}) or not marker.evaluate({"extra": extra}):
            continue
        if requirement.name == _DISTRIBUTION:
            for other in sorted(requirement.extras):
                yield from _requirements(other)
        else:
            requirement.marker = None
            yield str(requirement)
