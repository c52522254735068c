"""Runs the target amx of numba_cpu: cases come from standard input, results go to standard output.

    run_numba.py FOLDER ASSEMBLY

A case is what run.cpp takes. FOLDER has the sources, which may differ from those of the package. ASSEMBLY is the file
for what is compiled of `multiply`, of all formats. Panels and blocks are so small that small matrices have several.
"""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes  # noqa: F401  # names bfloat16 to NumPy
import numpy as np

from py_backends import registry
from py_backends.backend import numba_cpu

GUARDED = 64
"""Elements behind c that nobody may write."""
PART = "py_backends.kernels.matmul.tuned.numba_cpu_"
"""What the names of the sources' modules begin with."""


def imported(folder: Path, name: str) -> ModuleType:
    """A source as the module that the package has under its name."""
    specification = importlib.util.spec_from_file_location(PART + name, folder / f"numba_cpu_{name}.py")
    assert specification
    assert specification.loader
    sys.modules[PART + name] = module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@cache
def launch(dtype: str, threads: int) -> Any:
    text = registry.kernel_texts("matmul", "numba_cpu")["tuned"]
    return numba_cpu.Backend().open("amx", threads).prepare(text, np.dtype(dtype))


def block(size: int, offset: int, dtype: Any) -> Any:
    """Memory for an array that begins some elements after a cache line does."""
    memory = np.zeros(size + offset + 64, dtype)
    begin = -memory.ctypes.data % 64 // memory.itemsize + offset
    return memory[begin : begin + size]


def run(dtype: str, m: int, n: int, k: int, threads: int, offset: int) -> bytes:
    narrow = np.dtype(dtype)
    inputs = [block(size, offset, narrow) for size in (m * k, k * n)]
    for each in inputs:
        each.view(np.uint8)[:] = np.frombuffer(sys.stdin.buffer.read(each.nbytes), np.uint8)
    before = [each.tobytes() for each in inputs]
    result = block(m * n + GUARDED, offset, registry.problem("matmul").result_dtype(narrow))
    result.view(np.uint8)[:] = 0xFF
    launch(dtype, threads)([*inputs, result], (m, n, k))
    assert [each.tobytes() for each in inputs] == before, "an input was changed"
    assert (result[m * n :].view(np.uint8) == 0xFF).all(), "written behind c"
    return bytes(result[: m * n].tobytes())


def main(folder: Path, assembly: Path) -> None:
    imported(folder, "tiles")
    source = imported(folder, "amx")
    source.PANEL, source.BLOCK, source.FEW = 2**13, 2**14, 0.0
    while line := sys.stdin.buffer.readline():
        dtype, *numbers = line.decode().split()
        sys.stdout.buffer.write(run(dtype, *map(int, numbers)))
        sys.stdout.buffer.flush()
    assembly.write_text("\n".join(source.multiply.inspect_asm().values()))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
