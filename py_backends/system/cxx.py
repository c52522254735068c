"""The user's C++ compiler: that of the variable CXX, else the first that there is."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

from py_backends.errors import BackendUnavailable
from py_backends.system.files import printable

_COMPILERS = "c++", "g++", "clang++"
"""Any of these serves for `c++`, unless CXX names a compiler."""


def compiler(name: str = "c++", what: str = "a C++ compiler, for instance g++") -> list[str]:
    """The first words of a compiler's command, whatever folder it runs in.

    name: of one that only it can be; any of several stands for `c++`.
    what: what to install where there is none. Raises BackendUnavailable then.
    """
    named = _named() if name in _COMPILERS else []
    if named:
        if shutil.which(named[0]) is None:
            raise BackendUnavailable(f"CXX={printable(named[0])} is not in PATH", f"install {what}")
        return [str(Path(named[0]).absolute()) if os.sep in named[0] else named[0], *named[1:]]
    names = _COMPILERS if name in _COMPILERS else (name,)
    found = next(filter(shutil.which, names), None)
    if found is None:
        raise BackendUnavailable(f"there is no compiler {' or '.join(names)} in PATH", f"install {what}")
    return [found]


def _named() -> list[str]:
    """The words of the variable CXX. Raises BackendUnavailable if they are no words to a shell."""
    said = os.environ.get("CXX", "")
    try:
        return shlex.split(said)
    except ValueError as error:
        wrong = f"CXX={printable(said)} is no command: {str(error).lower()}"
        raise BackendUnavailable(wrong, "name a compiler, for instance CXX=g++") from None
