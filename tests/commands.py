"""What tests share that start the project from outside: the command line, and clones to change at will."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from conftest import CLONE

LONGEST = 120
"""Seconds after which a command is taken for hung."""


def run_command(*arguments: str | Path, cwd: Path = CLONE) -> subprocess.CompletedProcess[str]:
    """Run `python -m py_backends` to its end, its output in pipes."""
    return run_python("-m", "py_backends", *arguments, cwd=cwd)


def run_python(*arguments: str | Path, cwd: Path = CLONE) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, timeout=LONGEST, check=False
    )


def copy_clone(to: Path, backends: Iterable[str] | None = None) -> Path:
    """Copy what is run of the clone, with these backends alone where they are named."""
    for folder in ("py_backends", "kernels"):
        shutil.copytree(CLONE / folder, to / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(CLONE / "CMakeLists.txt", to)
    for module in (to / "py_backends").glob("[!_]*.py") if backends is not None else ():
        if module.stem not in set(backends or ()):
            module.unlink()
    return to


def without_spaces(text: str) -> str:
    """Text as it is whatever the width at which a table was folded."""
    return re.sub(r"\s+", "", text)
