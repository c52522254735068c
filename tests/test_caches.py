"""Kernels in C++ and in Python agree on the sizes of caches: those of which a core has a part."""

from __future__ import annotations

import subprocess
from pathlib import Path

from commands import CLONE
from compilers import gcc_or_skip

from py_backends import caches

PROGRAM = """
#include <stdio.h>
#include "workspace.hpp"
int main() { printf("%lld %lld", (long long)second_level_cache(), (long long)last_level_cache()); }
"""


def test_sources_in_cpp_and_in_python_know_the_same_caches(tmp_path: Path) -> None:
    """On processors of several parts the C library tells the third level of all of them together."""
    compiler = gcc_or_skip()
    source, program = tmp_path / "caches.cpp", tmp_path / "caches"
    source.write_text(PROGRAM)
    subprocess.run([compiler, "-std=c++17", "-I", CLONE / "kernels", source, "-o", program], check=True)
    told = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    assert tuple(map(int, told.split())) == (caches.second_level_cache(), caches.last_level_cache())
