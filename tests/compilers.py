"""The C++ compilers of this machine, for tests that compile programs of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache

import pytest


@cache
def family(compiler: str) -> str:
    """`clang` or `g++`, by what a compiler says of itself."""
    said = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
    return "clang" if "clang" in said else "g++"


@cache
def gcc() -> str | None:
    """The compiler that every machine with this project has."""
    return shutil.which(os.environ.get("CXX", "g++"))


@cache
def clang() -> str | None:
    """The newest clang++ of the machine; None where there is none."""
    names = [*(f"clang++-{version}" for version in range(40, 14, -1)), "clang++"]
    return next(filter(None, map(shutil.which, names)), None)


def gcc_or_skip() -> str:
    """That compiler. Where there is none the test is skipped."""
    return gcc() or pytest.skip("no C++ compiler (to change that: apt-get install g++)")
