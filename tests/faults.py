"""Backends for test_conformance, each of which is wrong in one respect: NumPy's answer, spoilt.

Installed there as plug-ins, each fault a target of one. A fault is a function of a `Run`, or a shortcut where only who
looks at the arrays first can go wrong.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from py_backends import contract

MATMUL, VECADD = "matmul", "vecadd"


@dataclass
class Run:
    """One launch. `spoil` may do before `compute` or instead of it whatever it likes."""

    kernel: str
    inputs: list[Any]
    output: Any
    device: Device
    calls: int
    buffers: Sequence[Any]

    @property
    def flat(self) -> Any:
        return self.output.reshape(-1)

    def compute(self, *inputs: Any) -> None:
        with np.errstate(all="ignore"):
            (np.add if self.kernel == VECADD else np.matmul)(*(inputs or self.inputs), out=self.output)


Spoil = Callable[[Run], None]
FAULTS: dict[str, tuple[Spoil, tuple[str, ...]]] = {}
"""By name, with the kernels that can have the fault."""
IN_MEMORY_OF_ITS_OWN = {"changes_its_copy_of_an_input"}
SHORTCUTS: dict[str, Callable[[str, Any, Any, Any], Any]] = {}


def fault(*kernels: str) -> Callable[[Spoil], Spoil]:
    def register(spoil: Spoil) -> Spoil:
        FAULTS[spoil.__name__] = spoil, kernels or (VECADD, MATMUL)
        return spoil

    return register


@dataclass(eq=False)
class Device(contract.HostDevice):
    fault: str
    threads: int
    calls: int = 0
    kept: list[Any] = field(default_factory=list)
    deterministic = True

    def prepare(self, text: Any, dtype: Any) -> Any:
        spoil = FAULTS[self.fault][0] if self.fault in FAULTS else Run.compute

        def launch(buffers: Sequence[Any], sizes: Sequence[int]) -> None:
            self.calls += 1
            *inputs, output = text.shaped(buffers, sizes)
            with np.errstate(all="ignore"):
                spoil(Run(text.kernel, inputs, output, self, self.calls, buffers))

        return launch

    def new(self, shape: Any, dtype: Any) -> Any:
        return "an array" if self.fault == "leaves_no_array" else None

    def shortcut(self, text: Any, dtypes: Any) -> Any:
        take = SHORTCUTS.get(self.fault)
        return take and (lambda a, b, out: take(text.kernel, a, b, out))


@dataclass(eq=False)
class OwnMemory(contract.Device):
    """A device whose memory only copies reach; it has the faults of a `Device`."""

    host: Device
    on_cpu = False

    def prepare(self, text: Any, dtype: Any) -> Any:
        return self.host.prepare(text, dtype)

    def upload(self, array: Any) -> Any:
        return array.copy()

    def allocate(self, array: Any) -> Any:
        return np.empty_like(array)

    def wait(self) -> None:
        pass

    def download(self, buffer: Any, array: Any) -> None:
        array[...] = buffer

    def release(self, buffer: Any) -> None:
        pass


def backend(faults: Sequence[str]) -> type[contract.Backend]:
    class Backend(contract.Backend):
        def targets(self) -> list[contract.Target]:
            return [contract.Target(fault, version="a wrong one") for fault in faults]

        def open(self, target: str, threads: int) -> contract.Device:
            device = Device(target, threads)
            return OwnMemory(device) if target in IN_MEMORY_OF_ITS_OWN else device

    return Backend


@fault()
def nothing_wrong(run: Run) -> None:
    run.compute()


@fault()
def flushes_subnormals(run: Run) -> None:
    tiny = np.finfo(run.output.dtype).tiny
    run.compute(*(np.where(abs(x) < tiny, x * 0, x) for x in run.inputs))
    run.output[abs(run.output) < tiny] = 0


@fault()
def rounds_to_tf32(run: Run) -> None:
    run.compute(*(((x.view(np.uint32) + 0x1000) & 0xFFFFE000).view(np.float32) for x in run.inputs))


@fault(VECADD)
def drops_signs_of_zeros(run: Run) -> None:
    run.compute()
    run.output[run.output == 0] = 0


@fault(VECADD)
def rounds_towards_zero(run: Run) -> None:
    a, b = (x.astype(np.float64) for x in run.inputs)
    run.compute()
    beyond = np.isfinite(run.output) & (abs(run.output.astype(np.float64)) > abs(a + b))
    run.output[beyond] = np.nextafter(run.output[beyond], run.output.dtype.type(0))


@fault(VECADD)
def saturates(run: Run) -> None:
    run.compute()
    largest = np.finfo(run.output.dtype).max
    infinite = np.isinf(run.output) & np.isfinite(run.inputs[0]) & np.isfinite(run.inputs[1])
    run.output[infinite] = np.copysign(largest, run.output[infinite])


@fault(MATMUL)
def overflows_everywhere(run: Run) -> None:
    run.compute()
    if any(abs(x).max(initial=0) > 1e38 for x in run.inputs):
        run.output[...] = np.inf


@fault(MATMUL)
def swaps_sizes(run: Run) -> None:
    run.flat[:] = np.matmul(*run.inputs).T.reshape(-1)


@fault(MATMUL)
def transposes_square_b(run: Run) -> None:
    a, b = run.inputs
    run.compute(a, b.T if b.shape[0] == b.shape[1] else b)


@fault()
def skips_its_tail(run: Run) -> None:
    run.compute()
    run.flat[run.flat.size // 4 * 4 :] = np.nan


@fault(MATMUL)
def leaves_empty_sums(run: Run) -> None:
    if run.inputs[0].shape[1]:
        run.compute()


@fault()
def refuses_nothing(run: Run) -> None:
    if not run.output.size:
        raise ValueError("nothing to do")
    run.compute()


@fault()
def exchanges_two_elements(run: Run) -> None:
    a, b = run.inputs
    run.compute(a, np.concatenate([b[:-2], b[-2:][::-1]]))


@fault(MATMUL)
def is_off_by_one_unit(run: Run) -> None:
    run.compute()
    run.output[...] = np.nextafter(run.output, np.inf, dtype=run.output.dtype)


@fault()
def loses_small_sums(run: Run) -> None:
    """As if sums that cancel were kept in half precision."""
    run.compute()
    magnitude = computed(run.kernel, *map(abs, run.inputs))
    run.output[abs(run.output) < magnitude / 2**12] = 0


@fault()
def loses_small_elements(run: Run) -> None:
    """As if an array had one exponent, and a fixed point."""
    if not all(np.isfinite(x).all() and x.size for x in run.inputs):
        return run.compute()
    steps = [float(abs(x).max()) / 2**40 or 1.0 for x in run.inputs]
    rounded = (np.round(x.astype(np.float64) / step) * step for x, step in zip(run.inputs, steps, strict=True))
    return run.compute(*(x.astype(run.output.dtype) for x in rounded))


@fault()
def spreads_nan_at_the_edge(run: Run) -> None:
    run.compute()
    if run.inputs[1].size and not np.isfinite(run.inputs[1][..., -1]).all():
        run.output[..., -4:] = np.nan


@fault(MATMUL)
def skips_zeros(run: Run) -> None:
    a, b = run.inputs
    if not a.any() or not b.any():
        a, b = np.nan_to_num(a, posinf=0, neginf=0), np.nan_to_num(b, posinf=0, neginf=0)
    run.compute(a, b)


def poke(run: Run, element: int) -> None:
    """Write one element anywhere."""
    value = run.output.dtype.type(1)
    ctypes.memmove(run.output.ctypes.data + element * value.nbytes, value.tobytes(), value.nbytes)


@fault()
def writes_one_before(run: Run) -> None:
    run.compute()
    poke(run, -1)


@fault()
def writes_one_past(run: Run) -> None:
    run.compute()
    poke(run, run.output.size)


@fault()
def reads_one_past(run: Run) -> None:
    run.compute()
    last = run.inputs[-1]
    ctypes.string_at(last.ctypes.data + last.nbytes, last.itemsize)


@fault()
def indexes_one_past(run: Run) -> None:
    run.compute()
    run.buffers[0][run.inputs[0].size]


@fault()
def changes_an_input(run: Run) -> None:
    run.compute()
    whole = run.inputs[0]
    while whole.base is not None and isinstance(whole.base, np.ndarray):
        whole = whole.base
    if whole.flags.writeable and run.inputs[0].size:
        ctypes.memset(run.inputs[0].ctypes.data, 0x40, 1)


@fault()
def changes_its_copy_of_an_input(run: Run) -> None:
    """Which no caller sees: its result is right, and his array as it was."""
    run.compute()
    run.inputs[0].reshape(-1)[-1:] = 5


@fault()
def confuses_one_array_twice(run: Run) -> None:
    a, b = run.inputs
    run.compute()
    if a.ctypes.data == b.ctypes.data:
        run.output[...] = 0


@fault()
def crashes_at_one_size(run: Run) -> None:
    if run.inputs[0].shape[-1] == 129:
        os.abort()
    run.compute()


@fault(VECADD)
def hangs(_: Run) -> None:
    time.sleep(3600)


@fault()
def is_stale_at_the_hundredth_call(run: Run) -> None:
    if run.calls % 100:
        run.compute()


@fault()
def has_other_bits_each_time(run: Run) -> None:
    run.compute()
    if run.calls % 2:
        run.output[...] = np.nextafter(run.output, np.inf, dtype=run.output.dtype)


@fault()
def shares_scratch_memory(run: Run) -> None:
    """Of all threads that call."""
    run.device.kept = [x.copy() for x in run.inputs]
    time.sleep(2e-4)
    if all(x.shape == y.shape for x, y in zip(run.device.kept, run.inputs, strict=True)):
        run.compute(*run.device.kept)


@fault()
def is_wrong_with_other_numbers_of_threads(run: Run) -> None:
    run.compute()
    if run.device.threads in {1, 2, 3} - {len(os.sched_getaffinity(0))}:
        run.output[...] = 0


@fault()
def needs_alignment(run: Run) -> None:
    run.compute()
    if run.output.ctypes.data % 16 and run.output.size:
        run.flat[0] = 0


@fault(VECADD)
def clears_its_output_first(run: Run) -> None:
    run.output[...] = 0
    run.compute()


@fault()
def forgets_earlier_passes(run: Run) -> None:
    """Its texts are of the variant `tuned`: only those are tried with what needs several passes."""
    run.compute()
    if run.kernel == MATMUL and run.inputs[0].shape[1] > 1800:
        run.compute(run.inputs[0][:, -1800:], run.inputs[1][-1800:])
    if run.kernel == VECADD and run.output.size > 2**21:
        run.flat[-1] = 0


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
