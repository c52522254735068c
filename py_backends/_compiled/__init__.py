"""The extension modules, and why one is missing.

CMake places them here, or a wheel contains them. Beside them lies a record of the build, as JSON. It holds the
compiler, and the reason and the fix for each module that was left out; or why nothing was built at all.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import sysconfig
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from py_backends.errors import BackendUnavailable

# Run from a clone, the package's other modules come from there, and these from there or, failing that, from
# where the package was installed.
__path__.extend(str(folder) for entry in sys.path if (folder := Path(entry, "py_backends", "_compiled")).is_dir())
# Those of a build that is not for users, with a sanitizer for instance, stay in a folder of its own.
__path__[:0] = filter(None, [os.environ.get("PY_BACKENDS_COMPILED")])


def load(name: str) -> ModuleType:
    """The extension module of that name; BackendUnavailable, with the reason and the fix, if it is not there."""
    try:
        return importlib.import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}.{name}":
            raise
        record = build()
        why: dict[str, str] | None = record.get("left_out", {}).get(name) or record.get("not_built")
        if why is None:
            raise BackendUnavailable("its extension module has not been built", "make, or pip install .") from None
        raise BackendUnavailable(why["reason"], why["fix"] or None) from None
    except ImportError as error:
        raise BackendUnavailable(f"its extension module cannot be loaded: {error}", "make, or pip install .") from error


@cache
def build() -> dict[str, Any]:
    """The record of the build for this Python; empty if there was none."""
    name = f"build.{sysconfig.get_config_var('SOABI')}.json"
    for folder in __path__:
        record = Path(folder, name)
        if record.is_file():
            found: dict[str, Any] = json.loads(record.read_text(encoding="utf-8"))
            return found
    return {}
