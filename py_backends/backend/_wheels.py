"""Libraries that wheels bring: imported, or found by their files. Where one is missing, they say why."""

from __future__ import annotations

import importlib
import importlib.metadata
from pathlib import Path
from typing import Any

from py_backends.errors import BackendUnavailable
from py_backends.install import other_architecture, pip_install


def missing(name: str, extra: str, *, x86_64_only: bool = False) -> BackendUnavailable:
    """What to raise for a library that is not installed.

    name: for people.
    extra: the extra of this distribution that brings it.
    x86_64_only: whether it has no wheels for other CPUs.
    """
    other = other_architecture() if x86_64_only else None
    if other:
        return BackendUnavailable(f"{name} has wheels for x86-64 only, and this CPU is {other}")
    return BackendUnavailable(f"{name} is not installed", pip_install(extra))


def imported(module: str, name: str, extra: str, *, x86_64_only: bool = False) -> Any:
    """A module of a library. BackendUnavailable if it is missing, or does not fit the rest of the environment.

    The other parameters are those of `missing`.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == module.partition(".")[0]:
            raise missing(name, extra, x86_64_only=x86_64_only) from error
        raise BackendUnavailable(f"{name} does not import: {error}", pip_install(extra)) from error


def library(distribution: str, name: str, file_name: str) -> Path:
    """Where a wheel of Intel's put a library, by the beginning of its file's name. BackendUnavailable without one."""
    try:
        files = importlib.metadata.files(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        raise missing(name, "peers", x86_64_only=True) from None
    for file in files:
        if file.name.startswith(file_name):
            return Path(str(file.locate())).resolve()
    raise BackendUnavailable(f"the package {distribution} has no {file_name}", pip_install("peers"))
