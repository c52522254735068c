"""What the tuned kernels of Numba for the CPU do by instructions of their own, where no other test would reach it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from commands import CLONE, LONGEST

from py_backends import registry
from py_backends.backend import _numba
from py_backends.system import caches

pytestmark = pytest.mark.numba_cpu


def tuned(kernel: str) -> ModuleType:
    return registry.kernel_texts(kernel, "numba_cpu")["tuned"].load()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_streamed_vectors_are_right_wherever_they_begin(dtype: str) -> None:
    """As if the cache held nothing; to exceed a real one may take gigabytes."""
    random = np.random.default_rng(5)
    for n in (0, 1, 7, 15, 16, 17, 33, 100, 1003):
        a, b = random.random(n + 3).astype(dtype)[3:], random.random(n + 1).astype(dtype)[1:]
        for offset in range(17):
            c = np.full(offset + n + 64, -1, dtype)
            tuned("vecadd").add_streamed(*map(_numba.seen, (a, b, c[offset : offset + n])), 0, n)
            np.testing.assert_array_equal(c[offset : offset + n], a + b)
            assert (c[:offset] == -1).all()
            assert (c[offset + n :] == -1).all()


def test_a_compiler_that_is_switched_off_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As developers of Numba's kernels switch it off, for a debugger."""
    numba = _numba.load("numba")
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    for target in registry.backend("numba_cpu").targets():
        assert not target.available
        assert target.fix == "unset NUMBA_DISABLE_JIT"


def test_streamed_vectors_may_replace_an_input() -> None:
    a, b = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    tuned("vecadd").add_streamed(a, b, a, 0, a.size)
    np.testing.assert_array_equal(a, np.arange(1, 1001))


def test_stores_go_past_the_cache() -> None:
    vecadd = tuned("vecadd")
    if not vecadd.X86:
        pytest.skip("the names of the instructions are those of x86")
    one = np.ones(1, np.float32)
    vecadd.add_streamed(one, one, one.copy(), 0, 1)
    (assembly, *_) = vecadd.add_streamed.inspect_asm().values()
    assert "movntps" in assembly
    assert "sfence" in assembly


@pytest.mark.parametrize("columns", [31, 32, 33, 64])
def test_tiles_of_any_height_write_no_row_behind_the_last(columns: int) -> None:
    matmul = tuned("matmul")
    for rows in range(1, 2 * matmul.HEIGHT + 2):
        a, b = np.ones((rows, 3), np.float32), np.ones((3, columns), np.float32)
        a.flags.writeable = b.flags.writeable = False  # as the backend passes them
        memory = np.full((rows + matmul.HEIGHT, columns), -1, np.float32)
        matmul.matmul(a, b, memory[:rows], rows, columns, 3)
        assert (memory[:rows] == 3).all()
        assert (memory[rows:] == -1).all()


def test_sizes_of_caches_are_those_of_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def sizes(*found: tuple[str, str, str]) -> tuple[int, int, int]:
        for number, words in enumerate(found):
            (folder := tmp_path / f"{len(found)}" / f"index{number}").mkdir(parents=True)
            for name, word in zip(("level", "type", "size"), words, strict=True):
                (folder / name).write_text(f"{word}\n")
        monkeypatch.setattr(caches, "_CACHES", tmp_path / f"{len(found)}")
        caches._sizes.cache_clear()
        return caches.first_level_cache(), caches.second_level_cache(), caches.last_level_cache()

    first = [("1", "Data", "48K"), ("1", "Instruction", "64K")]
    assert sizes(*first, ("2", "Unified", "2048K"), ("3", "Unified", "36M")) == (48 * 2**10, 2**21, 36 * 2**20)
    assert sizes(*first, ("2", "Unified", "512K")) == (48 * 2**10, 2**19, 2**21)
    assert sizes() == (2**15, 2**20, 2**22)
    caches._sizes.cache_clear()


def test_threads_meet_where_there_is_neither_openmp_nor_tbb() -> None:
    """As on a machine without g++. Numba's own pool, which is then taken, aborts when two threads call it at once."""
    code = """
import threading, numba, numpy, py_backends
a = numpy.ones((40, 40))
def call():
    for _ in range(50):
        assert (py_backends.matmul(a, a, backend="numba_cpu", variant="lecture") == 40).all()
call()
threads = [threading.Thread(target=call) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(numba.threading_layer())"""
    variables = os.environ | {"NUMBA_THREADING_LAYER": "workqueue"}
    command = [sys.executable, "-W", "error", "-c", code]
    run = subprocess.run(
        command, cwd=CLONE, env=variables, capture_output=True, text=True, check=False, timeout=LONGEST
    )
    assert (run.returncode, run.stdout) == (0, "workqueue\n"), run.stderr
