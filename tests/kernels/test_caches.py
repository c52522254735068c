"""Kernels in C++ and in Python agree on the sizes of caches: those of which a core has a part."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from commands import CLONE
from compilers import gcc_or_skip

from py_backends.system import caches

PROGRAM = """
#include <stdio.h>
#include "workspace.hpp"
int main() {
  const Size found[] = {second_level_cache(), last_level_cache(), effective_cache()};
  for (const Size bytes : found) printf("%lld ", (long long)bytes);
}
"""


def test_sources_in_cpp_and_in_python_know_the_same_caches(tmp_path: Path) -> None:
    """On processors of several parts the C library tells the third level of all of them together."""
    compiler = gcc_or_skip()
    source, program = tmp_path / "caches.cpp", tmp_path / "caches"
    source.write_text(PROGRAM)
    subprocess.run([compiler, "-std=c++17", "-I", CLONE / "kernels", source, "-o", program], check=True)
    told = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    expected = caches.second_level_cache(), caches.last_level_cache(), caches.effective_cache()
    assert tuple(map(int, told.split())) == expected


def test_a_cache_whose_size_nobody_tells_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux has no file `size` where the firmware is silent, as on many Arm boards: every command ended for it."""
    told = [("1", "Data", "32K"), ("1", "Instruction", "64K"), ("2", "Unified", None), ("3", "Unified", "8M")]
    for at, (level, kind, size) in enumerate(told):
        folder = tmp_path / f"index{at}"
        folder.mkdir()
        for name, text in (("level", level), ("type", kind), ("size", size)):
            if text:
                (folder / name).write_text(f"{text}\n")
    monkeypatch.setattr(caches, "_CACHES", tmp_path)
    caches._sizes.cache_clear()
    try:
        assert caches.by_level() == {1: 2**15, 3: 2**23}
        assert caches.second_level_cache() == 2**20
    finally:
        caches._sizes.cache_clear()
