"""Backends that are wrong on purpose: each fault by name, for whoever judges backends or has to live with them.

`scratch` copies the file: into packages of plug-ins, where each fault is a target of one backend, and into
py_backends/backend/ of scratch clones under a fault's name, which is then a backend of its own. A kernel's source there
is the lecture's for NumPy. What it answers is spoilt, before or after, or something happens in its place.
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
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import threadpoolctl

from py_backends import contract
from py_backends.contract import Array, Buffer, Launch
from py_backends.errors import BackendUnavailable
from py_backends.kernel_text import KernelText
from py_backends.number_formats import DTYPES

MATMUL, VECADD = "matmul", "vecadd"


@dataclass
class Run:
    """One launch. A fault may do before `compute` or instead of it whatever it likes."""

    text: KernelText
    sizes: Sequence[int]
    inputs: list[Any]
    output: Any
    device: Device
    calls: int
    buffers: Sequence[Any]

    @property
    def flat(self) -> Any:
        return self.output.reshape(-1)

    def compute(self, *inputs: Any) -> None:
        kernel = getattr(self.text.load(), self.text.kernel)
        kernel(*(inputs or self.inputs), self.output, *self.sizes)


Spoil = Callable[[Run], None]
FAULTS: dict[str, Spoil] = {}
"""Of launches."""
SHORTCUTS: dict[str, Callable[[str, Any, Any, Any], Any]] = {}
"""Of functions, where only who looks at the arrays first can go wrong."""
IN_A_ROUND = "_in_a_round"
"""The end of a name: what happens not at the first launch, but in the middle of the rounds of a comparison."""
_CALLS_BEFORE_A_ROUND = 22
"""Estimates, checks and settling take 18. Each round takes two, so that it is in the second."""


def backend(faults: Sequence[str], dtypes: Sequence[str] = contract.Backend.dtypes) -> type[contract.Backend]:
    """A backend with a target for each fault."""
    of_dtypes = tuple(dtypes)

    class Backend(contract.Backend):
        dtypes = of_dtypes

        def targets(self) -> list[contract.Target]:
            if "dies_when_probed" in faults:
                os.kill(os.getpid(), signal.SIGSEGV)
            if "hangs_when_probed" in faults:
                time.sleep(3600)
            return [contract.Target(fault, device="a wrong one", version="a wrong one") for fault in faults]

        def open(self, target: str, threads: int) -> contract.Device:
            if target == "gone_when_opened":
                raise BackendUnavailable("it went away", "plug it in again")
            if target == "dies_when_opened":
                os.kill(os.getpid(), signal.SIGBUS)
            return Queue(target) if target in OF_QUEUES else Device(target, threads)

    return Backend


@dataclass(eq=False)
class Device(contract.HostDevice):
    fault: str
    threads: int
    calls: int = 0
    kept: list[Any] = field(default_factory=list)
    deterministic = True

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        if self.fault == "raises_when_prepared":
            raise RuntimeError("the compiler says no")
        late = self.fault.endswith(IN_A_ROUND)
        spoil = FAULTS.get(self.fault.removesuffix(IN_A_ROUND), Run.compute)

        def launch(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            self.calls += 1
            *inputs, output = text.shaped(buffers, sizes)
            run = Run(text, sizes, inputs, output, self, self.calls, buffers)
            with np.errstate(all="ignore"):
                if late:
                    time.sleep(
                        0.012
                    )  # a kernel that takes so long is launched once a sample, and not thousands of times
                (Run.compute if late and self.calls < _CALLS_BEFORE_A_ROUND else spoil)(run)

        return launch

    def new(self, shape: Any, dtype: Any) -> Any:
        return "an array" if self.fault == "leaves_no_array" else None

    def shortcut(self, text: KernelText, dtypes: Any) -> Any:
        take = SHORTCUTS.get(self.fault)
        return partial(take, text.kernel) if take else None


OF_QUEUES = {
    "waits_not_on_its_queue",
    "finds_old_results_in_its_memory",
    "breaks_its_device",
    "changes_its_copy_of_an_input",
    "computes_only_once",
}


class Queue(contract.Device):
    """A device with memory and a queue of its own, as a GPU has; copies wait for what was queued before."""

    def __init__(self, fault: str) -> None:
        self._fault = fault
        self._queue = ThreadPoolExecutor(1)
        self._last: Future[None] = self._queue.submit(lambda: None)
        self._free: list[Array] = []
        self._computed: set[int] = set()
        self._launches = 0

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        kernel = getattr(text.load(), text.kernel)

        def run(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            *inputs, output = text.shaped(buffers, sizes)
            if self._fault != "computes_only_once":  # whose first launch must not take as long as a whole sample
                time.sleep(0.002)
            with np.errstate(all="ignore"):
                kernel(*inputs, output, *sizes)
            if self._fault == "changes_its_copy_of_an_input":  # which no caller sees
                inputs[0].reshape(-1)[-1:] = 5

        def launch(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
            self._launches += 1
            if self._fault == "breaks_its_device" and (text.kernel == MATMUL or self._launches > 1000):
                self._launches = 1000
                raise RuntimeError("an illegal address\nwas reached")
            if self._fault == "computes_only_once" and id(buffers[-1]) in self._computed:
                return  # the right result is there from the launch before
            self._computed.add(id(buffers[-1]))
            if self._fault != "finds_old_results_in_its_memory" or self._launches < 20:
                self._last = self._queue.submit(run, buffers, sizes)

        return launch

    def upload(self, array: Array) -> Buffer:
        buffer = self.allocate(array)
        buffer[...] = array
        return buffer

    def allocate(self, array: Array) -> Buffer:
        fitting = [at for at, free in enumerate(self._free) if (free.size, free.dtype) == (array.size, array.dtype)]
        return self._free.pop(fitting[-1]) if fitting else np.empty_like(array)

    def wait(self) -> None:
        if self._fault != "waits_not_on_its_queue":
            self._last.result()

    def download(self, buffer: Buffer, array: Array) -> None:
        self._last.result()
        array[...] = buffer

    def release(self, buffer: Buffer) -> None:
        self._computed.discard(id(buffer))
        self._free.append(buffer)


def fault(spoil: Spoil) -> Spoil:
    FAULTS[spoil.__name__] = spoil
    return spoil


# wrong answers


@fault
def skips_its_tail(run: Run) -> None:
    run.compute()
    run.flat[run.flat.size // 16 * 16 :] = np.nan


@fault
def drops_the_last_element(run: Run) -> None:
    run.compute()
    run.flat[-1] = np.nan


@fault
def refuses_nothing(run: Run) -> None:
    if not run.output.size:
        raise ValueError("nothing to do")
    run.compute()


@fault
def swaps_its_operands(run: Run) -> None:
    run.compute(*run.inputs[::-1])


@fault
def sums_in_the_inputs_format(run: Run) -> None:
    run.output[...] = np.matmul(*run.inputs).astype(run.inputs[0].dtype)


@fault
def lacks_a_barrier(run: Run) -> None:
    """A tile's second half is read before it was written."""
    half = run.inputs[0].shape[-1] // 2
    late = run.inputs[0].copy()
    late[..., half:] = np.roll(late[..., half:], 1, axis=-1)
    run.compute(late, run.inputs[1])


@fault
def waits_not(run: Run) -> None:
    threading.Timer(0.1, run.compute).start()


@fault
def confuses_one_array_twice(run: Run) -> None:
    a, b = run.inputs
    run.compute()
    if a.ctypes.data == b.ctypes.data:
        run.output[...] = 0


# answers that depend on earlier ones


@fault
def is_stale_after_the_first_call(run: Run) -> None:
    if run.calls == 1:
        run.compute()


@fault
def is_stale_at_the_hundredth_call(run: Run) -> None:
    if run.calls % 100:
        run.compute()


@fault
def keeps_results_by_first_elements(run: Run) -> None:
    """The kernel, the sizes and two elements are its only key."""
    key = run.text.kernel, tuple(run.sizes), *(float(x.flat[0]) if x.size else None for x in run.inputs)
    kept = next((result for known, result in run.device.kept if known == key), None)
    if kept is None:
        run.compute()
        run.device.kept.append((key, run.output.copy()))
    else:
        run.output[...] = kept


@fault
def is_wrong_when_repeated(run: Run) -> None:
    run.compute()
    if run.calls > 3:
        run.flat[0] += 1


@fault
def has_other_bits_each_time(run: Run) -> None:
    run.compute()
    if run.calls % 2:
        run.output[...] = np.nextafter(run.output, np.inf, dtype=run.output.dtype)


@fault
def shares_scratch_memory(run: Run) -> None:
    """Of all threads that call."""
    run.device.kept = [x.copy() for x in run.inputs]
    time.sleep(2e-4)
    if all(x.shape == y.shape for x, y in zip(run.device.kept, run.inputs, strict=True)):
        run.compute(*run.device.kept)


@fault
def is_wrong_with_other_numbers_of_threads(run: Run) -> None:
    run.compute()
    if run.device.threads in {1, 2, 3} - {len(os.sched_getaffinity(0))}:
        run.output[...] = 0


@fault
def leaves_a_library_with_its_number_of_threads(run: Run) -> None:
    """As a number of threads that is set for the process, and not set back."""
    run.compute()
    if run.device.threads != len(os.sched_getaffinity(0)):
        threadpoolctl.threadpool_limits(run.device.threads)


@fault
def clears_its_output_first(run: Run) -> None:
    run.output[...] = 0
    run.compute()


@fault
def forgets_earlier_passes(run: Run) -> None:
    """For sources of the variant `tuned`: only those are tried with what needs several passes."""
    run.compute()
    if run.text.kernel == MATMUL and run.inputs[0].shape[1] > 1800:
        run.compute(run.inputs[0][:, -1800:], run.inputs[1][-1800:])
    if run.text.kernel == VECADD and run.output.size > 2**21:
        run.flat[-1] = 0


# memory


def poke(run: Run, element: int) -> None:
    """Write one element anywhere."""
    value = run.output.dtype.type(1)
    ctypes.memmove(run.output.ctypes.data + element * value.nbytes, value.tobytes(), value.nbytes)


@fault
def writes_one_before(run: Run) -> None:
    run.compute()
    poke(run, -1)


@fault
def writes_one_past(run: Run) -> None:
    run.compute()
    poke(run, run.output.size)


@fault
def reads_one_past(run: Run) -> None:
    run.compute()
    last = run.inputs[-1]
    ctypes.string_at(last.ctypes.data + last.nbytes, last.itemsize)


@fault
def indexes_one_past(run: Run) -> None:
    run.compute()
    run.buffers[0][run.inputs[0].size]


@fault
def needs_alignment(run: Run) -> None:
    run.compute()
    if run.output.ctypes.data % 16 and run.output.size:
        run.flat[0] = 0


@fault
def changes_an_input(run: Run) -> None:
    run.compute()
    whole = run.inputs[0]
    while whole.base is not None and isinstance(whole.base, np.ndarray):
        whole = whole.base
    if whole.flags.writeable and run.inputs[0].size:
        ctypes.memset(run.inputs[0].ctypes.data, 0x40, 1)


# shortcuts


def computed(kernel: str, a: Any, b: Any) -> Any:
    return a + b if kernel == VECADD else a @ b


def ignores_overlaps(kernel: str, a: Any, b: Any, out: Any) -> Any:
    if out is None or out.dtype != a.dtype or not out.flags.writeable or out.shape != computed(kernel, a, b).shape:
        return None
    out[:1] = computed(kernel, a, b)[:1]
    out[1:] = computed(kernel, a, b)[1:]
    return out


def ignores_strides(kernel: str, a: Any, b: Any, out: Any) -> Any:
    if out is not None or a.dtype != b.dtype:
        return None
    return computed(kernel, *(x.ravel(order="K").reshape(x.shape) for x in (a, b)))


def takes_any_output(kernel: str, a: Any, b: Any, out: Any) -> Any:
    if not isinstance(out, np.ndarray) or not out.flags.writeable or np.may_share_memory(a, out):
        return None
    result = computed(kernel, a, b)
    if not np.may_share_memory(b, out):
        out.reshape(-1)[: result.size] = result.reshape(-1)[: out.size]
        return out
    return None


def takes_any_inputs(kernel: str, a: Any, b: Any, out: Any) -> Any:
    dimensions = 1 if kernel == VECADD else 2
    if a.dtype == b.dtype and a.ndim == b.ndim == dimensions and a.shape[-1] == b.shape[0]:
        return None
    return np.zeros(7, np.int8) if out is None else out


for shortcut in (ignores_overlaps, ignores_strides, takes_any_output, takes_any_inputs):
    SHORTCUTS[shortcut.__name__] = shortcut


# processes that end or stop, or leave something behind


@fault
def crashes_at_one_size(run: Run) -> None:
    if run.inputs[0].shape[-1] == 129:
        os.abort()
    run.compute()


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


def ends(ending: Callable[[], Any]) -> Spoil:
    def spoil(run: Run) -> None:
        run.compute()
        ending()

    return spoil


FAULTS |= {name: ends(ending) for name, ending in ENDINGS.items()}

if Path(__file__).parent.name == "backend":  # of a scratch clone
    if Path(__file__).stem == "dies_when_imported":
        os.kill(os.getpid(), signal.SIGSEGV)
    Backend = backend([Path(__file__).stem], DTYPES)
