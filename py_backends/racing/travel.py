"""How functions travel to the processes that run them: by their module, by their file, or with their code."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from importlib.machinery import PathFinder
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle

from py_backends.errors import WrongRequest
from py_backends.wording import in_one_line

Function = Callable[..., Any]
_OF_FILE = "_py_backends_race_of_"


@dataclass(frozen=True)
class _Of:
    """A function of a module that others import, or of a file.

    place: the module's name, or the file's path.
    name: of the function there, with dots.
    """

    place: str | Path
    name: str


def packed(function: Function, name: str) -> bytes:
    """A function for `unpacked`, in any process. Raises WrongRequest, with one line, for one that cannot travel."""
    return _packed(_by_module(function) or _with_its_code(function, f"{name} cannot travel to a process of its own"))


def packed_from(file: Path, name: str) -> bytes:
    """The function of that name in a file."""
    return _packed(_Of(file, name))


def packed_values(values: Any) -> bytes:
    """What is passed to functions as it is. Raises WrongRequest, with one line, for what cannot travel."""
    return _packed(_with_its_code(values, "an input cannot travel to other processes"))


def unpacked(data: bytes) -> Any:
    """What was packed. What it needs is imported from where its process found that."""
    path, what = pickle.loads(data)  # noqa: S301  # we wrote it
    sys.path += [each for each in path if each not in sys.path]
    if isinstance(what, bytes):
        return pickle.loads(what)  # noqa: S301  # as above
    module = loaded(what.place) if isinstance(what.place, Path) else __import__(what.place, fromlist=["_"])
    return reduce(getattr, what.name.split("."), module)


def loaded(file: Path) -> ModuleType:
    """A file as a module, run once in this process. It finds what lies beside it, as a script does."""
    name = f"{_OF_FILE}{file.stem}"
    if name not in sys.modules:
        sys.path.insert(0, str(file.parent))
        spec = spec_from_file_location(name, file)
        assert spec is not None
        assert spec.loader is not None  # the file ends in .py
        sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def _packed(what: _Of | bytes) -> bytes:
    path = [each or os.getcwd() for each in sys.path]  # noqa: PTH109  # a string, as the others
    return pickle.dumps((path, what))


def _by_module(function: Function) -> _Of | None:
    """A function that its module has by its name, if a new process finds that module."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not module or not name or module == "__main__" or module not in sys.modules:
        return None
    try:
        there: Any = reduce(getattr, name.split("."), sys.modules[module])
    except AttributeError:
        return None
    found = module in sys.builtin_module_names or PathFinder.find_spec(module.partition(".")[0])
    return _Of(module, name) if there is function and found else None


def _with_its_code(what: Any, otherwise: str) -> bytes:
    try:
        data: bytes = cloudpickle.dumps(what)
    except Exception as error:  # what refuses to be pickled says so by any error
        raise WrongRequest(f"{otherwise}: {type(error).__name__}: {in_one_line(str(error))}") from error
    return data
