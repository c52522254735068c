"""How processes of ours are started: with this interpreter, and the same package as we."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import py_backends


def command(module: str, *arguments: str) -> list[str]:
    """What runs a module."""
    return [sys.executable, "-P", "-m", module, *arguments]


def environment(additional: Mapping[str, str]) -> dict[str, str]:
    """Ours, with what is needed beside it; from a clone a process has to find the same package as we."""
    ours = {**os.environ, **additional}
    home = Path(py_backends.__file__).parent.parent
    if (home / "CMakeLists.txt").is_file():
        paths = [str(home), ours.get("PYTHONPATH", "")]
        ours["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    return ours
