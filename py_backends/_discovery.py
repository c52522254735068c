"""Which backends, kernels and variants there are: found by looking, listed nowhere."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import py_backends
from py_backends._contract import Backend, KernelText, Problem, WrongRequest


def backend_names() -> list[str]:
    """Every module of py_backends without an underscore in front is a backend."""
    package = [str(Path(py_backends.__file__).parent)]
    return sorted(m.name for m in pkgutil.iter_modules(package) if not m.ispkg and not m.name.startswith("_"))


@cache
def backend(name: str) -> Backend:
    """The backend of that name; ValueError, with the nearest name, where there is none."""
    known(name, backend_names(), "backend")
    module = importlib.import_module(f"py_backends.{name}")
    made: Backend = module.Backend()
    return made


@cache
def kernel_names() -> list[str]:
    """Every folder of kernels/ that holds a problem.py is a kernel."""
    return sorted(path.parent.name for path in _kernels_folder().glob("*/problem.py"))


@cache
def problem(kernel: str) -> Problem:
    """The problem of that kernel; ValueError, with the nearest name, where there is none."""
    known(kernel, kernel_names(), "kernel")
    made: Problem = importlib.import_module(f"py_backends.kernels.{kernel}.problem").PROBLEM
    return made


@cache
def kernel_texts(kernel: str, backend: str) -> dict[str, KernelText]:
    """The texts of a kernel for a backend, by variant: `tuned` first where there is one."""
    folder = _kernels_folder() / kernel
    texts = {
        path.parent.name: KernelText(problem(kernel), path.parent.name, backend, path)
        for path in folder.glob(f"*/{backend}.*")
    }
    return dict(sorted(texts.items(), key=lambda item: item[0] != "tuned"))


@cache
def variant_names() -> list[str]:
    """The variants that every reader may ask for, and any other that some text has."""
    pairs = ((kernel, backend) for kernel in kernel_names() for backend in backend_names())
    return sorted({"lecture", "tuned", *(variant for pair in pairs for variant in kernel_texts(*pair))})


def known(name: str, names: Iterable[str], what: str) -> str:
    """`name`, if it is one of `names`; else WrongRequest that suggests the nearest."""
    names = list(names)
    if name in names:
        return name
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.4) if isinstance(name, str) else []
    others = f"there is only {names[0]!r}" if len(names) == 1 else f"there are {', '.join(names)}"
    hint = f"did you mean {near[0]!r}?" if near else others
    raise WrongRequest(f"unknown {what} {name!r}: {hint}")


def _kernels_folder() -> Path:
    package = importlib.import_module("py_backends.kernels")
    return Path(next(iter(package.__path__)))
