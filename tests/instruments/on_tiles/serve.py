"""Computes products on a device: cases come from standard input, results go to standard output. Others import it.

A case is what run.cpp takes.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import ml_dtypes  # noqa: F401  # names bfloat16 to NumPy
import numpy as np

from py_backends.contract import Device, Launch
from py_backends.kernel_text import KernelText

GUARDED = 64
"""Elements behind c that nobody may write, where it does not end with its memory."""


def serve(text: KernelText, opened: Callable[[int], Device]) -> None:
    """Answer until there are no more cases. `opened`: the device for a number of threads."""
    device = cache(opened)

    @cache
    def prepared(dtype: str, threads: int) -> Launch:
        return device(threads).prepare(text, np.dtype(dtype))

    while line := sys.stdin.buffer.readline():
        dtype, *numbers = line.decode().split()
        m, n, k, threads, offset = map(int, numbers)
        inputs = [_block(size, offset, np.dtype(dtype)) for size in (m * k, k * n)]
        for each in inputs:
            each.view(np.uint8)[:] = np.frombuffer(sys.stdin.buffer.read(each.nbytes), np.uint8)
        guarded = GUARDED if offset else 0
        result = _block(m * n + guarded, offset, text.problem.result_dtype(np.dtype(dtype)))
        _compute(device(threads), prepared(dtype, threads), inputs, result, (m, n, k))
        sys.stdout.buffer.write(result[: m * n].tobytes())
        sys.stdout.buffer.flush()


def _compute(device: Device, launch: Launch, inputs: list[Any], result: Any, sizes: tuple[int, int, int]) -> None:
    result.view(np.uint8)[:] = 0xFF
    before = [each.tobytes() for each in inputs]
    buffers = [*map(device.upload, inputs), device.allocate(result)]
    launch(buffers, sizes)
    device.wait()
    device.download(buffers[-1], result)
    for buffer in buffers:
        device.release(buffer)
    assert [each.tobytes() for each in inputs] == before, "an input was changed"
    assert (result[sizes[0] * sizes[1] :].view(np.uint8) == 0xFF).all(), "written behind c"


def _block(size: int, offset: int, dtype: np.dtype[Any]) -> Any:
    """Memory for an array. It ends where the process may touch nothing more, or begins `offset` after a cache line."""
    if offset == 0:
        return _before_a_fault(size * dtype.itemsize).view(dtype)
    memory = np.zeros(size + offset + 64, dtype)
    begin = -memory.ctypes.data % 64 // memory.itemsize + offset
    return memory[begin : begin + size]


def _before_a_fault(size: int) -> Any:
    pages = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = np.frombuffer(mmap.mmap(-1, pages + mmap.PAGESIZE), np.uint8)
    forbidden = ctypes.c_void_p(memory[pages:].ctypes.data)
    assert ctypes.CDLL(None).mprotect(forbidden, ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
    return memory[pages - size : pages]
