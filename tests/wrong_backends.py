"""Backends that are wrong on purpose, for test_wrong_kernels: each is one fault that a harness must see.

The file is copied into py_backends/ of a scratch clone under each fault's name; the name says which
fault the copy has. Every kernel text beside them is NumPy's.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from py_backends import _contract
from py_backends._contract import Array, BackendUnavailable, Buffer, HostDevice, KernelText, Launch, Target

FAULT = Path(__file__).stem


class Backend(_contract.Backend):
    def targets(self) -> list[Target]:
        if FAULT == "dies_when_probed":
            os.kill(os.getpid(), signal.SIGSEGV)
        return [Target("cpu", device="a wrong one")]

    def open(self, target: str, threads: int) -> _contract.Device:
        if FAULT == "gone_when_opened":
            raise BackendUnavailable("it went away", "plug it in again")
        return WrongQueue() if FAULT in QUEUE_FAULTS else Wrong()


QUEUE_FAULTS = {"waits_not_on_its_queue", "finds_old_results_in_its_memory", "breaks_its_device"}


class WrongQueue(_contract.Device):
    """A device with memory and a queue of its own, as a GPU has; copies wait for what was queued before."""

    def __init__(self) -> None:
        self._queue = ThreadPoolExecutor(1)
        self._free: list[Array] = []
        self._launches = 0

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        def run(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            *inputs, output = text.shaped(buffers, sizes)
            time.sleep(0.002)
            compute(text, inputs, output)

        def launch(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            self._launches += 1
            if FAULT == "breaks_its_device" and (text.kernel == "matmul" or self._launches > 1000):
                self._launches = 1000
                raise RuntimeError("an illegal address\nwas reached")
            if FAULT != "finds_old_results_in_its_memory" or self._launches < 20:
                self._last = self._queue.submit(run, buffers, sizes)

        return launch

    def upload(self, array: Array) -> Buffer:
        buffer = self.allocate(array)
        buffer[...] = array
        return buffer

    def allocate(self, array: Array) -> Buffer:
        fitting = [index for index, free in enumerate(self._free) if free.size == array.size]
        return self._free.pop(fitting[-1]) if fitting else np.empty_like(array)

    def wait(self) -> None:
        if FAULT != "waits_not_on_its_queue":
            self._last.result()

    def download(self, buffer: Buffer, array: Array) -> None:
        self._last.result()
        array[...] = buffer

    def release(self, buffer: Buffer) -> None:
        self._free.append(buffer)


class Wrong(HostDevice):
    """NumPy's answer, spoilt."""

    def __init__(self) -> None:
        self._calls = 0
        self._pending: list[threading.Thread] = []

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        if FAULT == "raises_when_prepared":
            raise RuntimeError("the compiler says no")

        def launch(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            self._calls += 1
            *inputs, output = text.shaped(buffers, sizes)
            if FAULT == "waits_not":
                thread = threading.Thread(target=lambda: (time.sleep(0.1), compute(text, inputs, output)))
                thread.start()
            else:
                spoil(self._calls, text, inputs, output, buffers[-1])

        return launch


def compute(text: KernelText, inputs: list[Array], output: Array) -> None:
    text.load()
    (np.add if text.kernel == "vecadd" else np.matmul)(*inputs, out=output)


def spoil(calls: int, text: KernelText, inputs: list[Array], output: Array, whole: Array) -> None:
    flat = output.reshape(-1)
    if FAULT == "is_stale_after_the_first_call" and calls > 1:
        return
    if FAULT == "swaps_its_operands":
        inputs.reverse()
    if FAULT == "lacks_a_barrier":  # a tile's second half is read before it was written
        half = inputs[0].shape[-1] // 2
        late = inputs[0].copy()
        late[..., half:] = np.roll(late[..., half:], 1, axis=-1)
        compute(text, [late, inputs[1]], output)
        return
    compute(text, inputs, output)
    if FAULT == "drops_the_last_element":
        flat[-1] = np.nan
    elif FAULT == "skips_its_tail":
        flat[flat.size // 16 * 16 :] = 0
    elif FAULT == "writes_one_too_many" and whole.size > flat.size:
        whole[flat.size] = 1
    elif FAULT == "is_wrong_when_repeated" and calls > 3:
        flat[0] += 1
    else:
        end()


def end() -> None:
    """The faults that end or stop a process."""
    if FAULT == "writes_to_its_input":
        ctypes.memset(0, 0, 1)
    elif FAULT == "dies_of_sigkill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif FAULT == "aborts":
        print("free(): invalid pointer", file=sys.stderr, flush=True)
        os.abort()
    elif FAULT == "exits":
        os._exit(3)
    elif FAULT == "hangs":
        time.sleep(3600)
    elif FAULT == "raises":
        raise ArithmeticError("as expected")
    elif FAULT == "runs_out_of_memory":
        raise MemoryError("the device has 0 bytes")
    elif FAULT == "talks":
        print("hello from a driver", flush=True)
