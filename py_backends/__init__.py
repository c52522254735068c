"""The same kernels in many programming models, from plain Python to GPUs and MPI.

    import py_backends as pb
    c = pb.matmul(a, b, backend="openmp")

Every kernel is a function of this package, named as the kernel. `backends()` lists what this machine
has, and `compare()` runs, checks and times all of it. `race()` does the same for any functions. `read()` reads results
from a file. Importing the package imports no optional library.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import Any as _Any

__version__ = "0.1.0"
_MODULES = {
    "BackendUnavailable": "errors",
    "backends": "workers.probe",
    "compare": "commands._notebook",
    "race": "commands._notebook",
    "read": "commands._notebook",
}
"""Where the public names are that are no kernel's."""


def __getattr__(name: str) -> _Any:
    """Find what needs NumPy or more when it is first used, so that `py-backends --help` starts at once."""
    if name == "__all__":
        return [*_MODULES, *_import_module("py_backends.registry").kernel_names()]
    from importlib.util import find_spec

    # A submodule that is being imported, or no name at all, as "x.y", whose "x" would be imported.
    if name.startswith("_") or not name.isidentifier() or find_spec(f"{__name__}.{name}"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _MODULES:
        value = getattr(_import_module(f"py_backends.{_MODULES[name]}"), name)
    else:
        value = _import_module("py_backends.functions.api").find(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
