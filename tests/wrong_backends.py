"""Backends that are wrong on purpose, for test_wrong_kernels: each is one fault that a harness must see.

The file is copied into py_backends/ of a scratch clone under each fault's name; the name says which
fault the copy has. Every kernel text beside them is NumPy's.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from py_backends import contract
from py_backends.contract import Array, Buffer, HostDevice, Launch, Target
from py_backends.errors import BackendUnavailable
from py_backends.kernel_text import KernelText
from py_backends.number_formats import DTYPES

FAULT = Path(__file__).stem
if FAULT == "dies_when_imported":
    os.kill(os.getpid(), signal.SIGSEGV)


class Backend(contract.Backend):
    dtypes = DTYPES

    def targets(self) -> list[Target]:
        if FAULT == "dies_when_probed":
            os.kill(os.getpid(), signal.SIGSEGV)
        if FAULT == "hangs_when_probed":
            time.sleep(3600)
        return [Target("cpu", device="a wrong one")]

    def open(self, target: str, threads: int) -> contract.Device:
        if FAULT == "gone_when_opened":
            raise BackendUnavailable("it went away", "plug it in again")
        if FAULT == "dies_when_opened":
            os.kill(os.getpid(), signal.SIGBUS)
        return WrongQueue() if FAULT in QUEUE_FAULTS else Wrong()


QUEUE_FAULTS = {
    "waits_not_on_its_queue",
    "finds_old_results_in_its_memory",
    "breaks_its_device",
    "changes_its_copy_of_an_input",
    "computes_only_once",
}


class WrongQueue(contract.Device):
    """A device with memory and a queue of its own, as a GPU has; copies wait for what was queued before."""

    def __init__(self) -> None:
        self._queue = ThreadPoolExecutor(1)
        self._free: list[Array] = []
        self._computed: set[int] = set()
        self._launches = 0

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        def run(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            *inputs, output = text.shaped(buffers, sizes)
            if FAULT != "computes_only_once":  # whose first launch must not take as long as a whole sample
                time.sleep(0.002)
            compute(text, inputs, output)
            if FAULT == "changes_its_copy_of_an_input":
                inputs[0][-1] = 5

        def launch(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            self._launches += 1
            if FAULT == "breaks_its_device" and (text.kernel == "matmul" or self._launches > 1000):
                self._launches = 1000
                raise RuntimeError("an illegal address\nwas reached")
            if FAULT == "computes_only_once" and id(buffers[-1]) in self._computed:
                return  # the right result is there from the launch before
            self._computed.add(id(buffers[-1]))
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
        self._computed.discard(id(buffer))
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
    if FAULT == "sums_in_the_inputs_format":
        output[...] = np.matmul(*inputs).astype(inputs[0].dtype)
        return
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
        end(calls)


def end(calls: int) -> None:
    """The faults that end or stop a process, or leave something behind: at once, or in the middle of the rounds."""
    if FAULT.endswith(IN_A_ROUND):
        time.sleep(0.012)  # a kernel that takes so long is launched once a sample, and not thousands of times
        if calls < CALLS_BEFORE_THE_END:
            return
    ENDINGS.get(FAULT.removesuffix(IN_A_ROUND), lambda: None)()


IN_A_ROUND = "_in_a_round"
CALLS_BEFORE_THE_END = 26
"""Estimates, checks and settling take 18. Each round takes two, so that it is in the fourth."""


def dies_of(number: signal.Signals) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), number)


def raises(error: BaseException) -> Callable[[], None]:
    def ending() -> None:
        raise error

    return ending


def aborts() -> None:
    print("free(): invalid pointer", file=sys.stderr, flush=True)
    os.abort()


def runs_out_of_memory() -> None:
    """As on a machine that has no more."""
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + 2**24, resource.RLIM_INFINITY))
    np.ones(2**28)


def floods() -> None:
    """Far more than a pipe holds, in one line that does not end."""
    for _ in range(8):
        os.write(1, b"x" * 2**18)
        os.write(2, b"y" * 2**18)


def floods_and_dies() -> None:
    floods()
    os.write(2, b"\nthe end is near\n")
    os.abort()


@cache
def fork_a_sleeper() -> None:
    """Once: a child that keeps all that its parent had open, and sleeps for an hour."""
    if os.fork() == 0:
        time.sleep(3600)
        os._exit(0)


def forks_and_dies() -> None:
    fork_a_sleeper()
    os.kill(os.getpid(), signal.SIGSEGV)


def killed_while_stopped() -> None:
    """Somebody outside kills the worker while it waits for its turn."""
    killer = subprocess.Popen(
        [sys.executable, "-c", KILL_WHEN_STOPPED, str(os.getpid())],
        start_new_session=True,  # else it would be stopped along
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert killer.stdout is not None
    killer.stdout.readline()  # on a busy machine the rounds could be over before it has begun


KILL_WHEN_STOPPED = """
import os, signal, sys
from pathlib import Path

worker = int(sys.argv[1])
print("ready", flush=True)
while Path(f"/proc/{worker}/stat").read_text().rpartition(") ")[2][0] != "T":
    pass
os.kill(worker, signal.SIGKILL)
"""

ENDINGS: dict[str, Callable[[], Any]] = {
    "writes_to_its_input": lambda: ctypes.memset(0, 0, 1),
    "dies_of_sigsegv": dies_of(signal.SIGSEGV),
    "dies_of_sigill": dies_of(signal.SIGILL),
    "dies_of_sigkill": dies_of(signal.SIGKILL),
    "aborts": aborts,
    "exits": lambda: os._exit(3),
    "exits_as_scripts_do": lambda: sys.exit(4),
    "hangs": lambda: time.sleep(3600),
    "raises": raises(ArithmeticError("as expected")),
    "lacks_memory": raises(MemoryError("the device has 0 bytes")),
    "runs_out_of_memory": runs_out_of_memory,
    "talks": lambda: print("hello from a driver", flush=True),
    "floods": floods,
    "floods_and_dies": floods_and_dies,
    "forks_and_dies": forks_and_dies,
    "leaves_children": fork_a_sleeper,
    "comes_back_twice": cache(os.fork),
    "killed_while_stopped": killed_while_stopped,
}
