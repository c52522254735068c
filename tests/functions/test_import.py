"""Importing the package, or asking for help, loads no optional library: those come when a backend is opened."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest
from commands import CLONE

from py_backends import commands

OPTIONAL = {"numba", "pyopencl", "dpctl", "cupy", "cuda", "scipy", "mpi4py", "mkl"}
OUR_COMPILED = "py_backends._compiled"
SLOW_TO_LOAD = OPTIONAL | {"numpy", "rich", "psutil", "cpuinfo", "pygments", "matplotlib", "jinja2", "msgspec"}


def loaded_by(*arguments: str) -> set[str]:
    """Every module that a fresh interpreter imports, by `-X importtime`."""
    run = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments], capture_output=True, text=True, cwd=CLONE, check=True
    )
    lines = [line for line in run.stderr.splitlines() if line.startswith("import time:")]
    return {line.rsplit("|", 1)[1].strip() for line in lines}


def libraries(modules: set[str]) -> set[str]:
    return {module.split(".")[0] for module in modules}


@pytest.mark.parametrize(
    "code",
    ["import py_backends", "from py_backends import matmul, compare, backends", "import py_backends.backend.opencl"],
)
def test_import_loads_no_optional_library(code: str) -> None:
    modules = loaded_by("-c", code)
    assert not libraries(modules) & OPTIONAL
    assert not {module for module in modules if module.startswith(f"{OUR_COMPILED}.")}


@pytest.mark.parametrize("command", [[], *([name] for name in commands.names())])
def test_help_loads_next_to_nothing(command: list[str]) -> None:
    assert not libraries(loaded_by("-m", "py_backends", *command, "--help")) & SLOW_TO_LOAD


@pytest.mark.numpy
def test_a_call_of_a_kernel_loads_no_harness() -> None:
    """A notebook that adds two arrays needs neither workers nor tables."""
    code = (
        "import sys, numpy, py_backends as pb; a = numpy.ones(3); pb.vecadd(a, a, backend='numpy'); print(*sys.modules)"
    )
    # Not by `-X importtime`, which leaves out what `importlib.import_module` imports.
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=CLONE, check=True)
    modules = set(run.stdout.split())
    assert "py_backends.backend.numpy" in modules
    rooms = tuple(f"py_backends.{room}" for room in ("workers", "results", "harness", "display", "commands"))
    assert not {module for module in modules if module.startswith(rooms)}


def test_nothing_else_of_a_clone_is_a_part_of_the_package() -> None:
    assert find_spec("py_backends.kernels.matmul")
    assert not any(find_spec(f"py_backends.{folder}") for folder in ("tests", "docs", "benchmarks", "cmake"))
