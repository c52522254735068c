"""The kernels as Python functions: `pb.matmul(a, b, backend=...)`, in the caller's process.

Devices are opened once and kernels prepared once, and then used by all threads of the process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from threading import Lock
from typing import Any, TypeVar

import numpy as np

from py_backends import _discovery
from py_backends._contract import (
    MOST_THREADS,
    Array,
    BackendUnavailable,
    Device,
    HostDevice,
    Launch,
    Problem,
    Shortcut,
    Target,
    whole_number,
)

_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))
_EFFORT_OF_OVERLAP_TEST = 10_000
"""Steps that NumPy may take to tell whether two strided arrays share memory; undecided counts as shared."""

_lock = Lock()
"""Guards the caches below: a device is opened, and a kernel compiled, by one thread only."""
_devices: dict[tuple[str, str, int], Device] = {}
_launches: dict[tuple[Device, str, str, str], Launch] = {}

_Asked = tuple[str, str, str | None, str | None, int | None, type]
"""What a caller asks for, in the caller's words: kernel, backend, variant, target, threads and the type of that."""
_ready: dict[tuple[_Asked, str], tuple[Device, Launch]] = {}
"""What was asked for before, and in which dtype (a character): looking that up is all that a further call does."""
_shortcuts: dict[_Asked, Shortcut] = {}
"""What was asked for before where the device has a shortcut. It is tried before anything else is looked at."""
_Value = TypeVar("_Value")


@cache
def function(kernel: str) -> Callable[..., Array]:
    """The Python function that runs a kernel; ValueError where there is no such kernel."""
    problem = _discovery.problem(kernel)

    def run(
        a: Array,
        b: Array,
        *,
        backend: str,
        variant: str | None = None,
        target: str | None = None,
        threads: int | None = None,
        out: Array | None = None,
    ) -> Array:
        asked = (kernel, backend, variant, target, threads, type(threads))  # 2.0 threads are refused, and 2.0 == 2
        shortcut = _known(_shortcuts, asked)
        if shortcut is not None and (made := shortcut(a, b, out)) is not None:
            return made
        sizes = problem.sizes(*_inputs(a, b))
        shape = problem.shapes(sizes)[-1]
        _check_output(problem, (a, b), out, shape)
        device, launch = _known(_ready, (asked, a.dtype.char)) or _prepare(asked, a.dtype)
        result = np.empty(shape, a.dtype) if out is None else out
        direct = out is None or _usable_in_place(out, (a, b))
        memory = result if direct else np.empty(shape, a.dtype)
        _run(device, launch, [_flat(a), _flat(b)], _flat(memory), sizes)
        if not direct:
            result[...] = memory
        return result

    run.__name__ = run.__qualname__ = kernel
    run.__doc__ = _DOCUMENTATION.format(kernel=kernel, rule=problem.rule)
    return run


_DOCUMENTATION = """Run {kernel} on a backend, and return its result.

a, b: float32 or float64 arrays of one dtype, with any strides; never changed.
backend: its name, as `py_backends.backends()` lists them.
variant: `tuned` or `lecture`; the first of these that the backend has, where None.
target: where the backend runs it; its first available one where None.
threads: for a backend that runs on the CPU; all logical CPUs where None.
out: an array of the result's shape and dtype to write to and return.

The result is a NumPy array of the inputs' dtype, right by the rule '{rule}' of docs/reference.md.

Raises ValueError for wrong shapes, unknown names and an unfit `out`, TypeError for wrong or mixed
dtypes, BackendUnavailable for a backend that is not there, MemoryError where memory does not suffice.
"""


def _inputs(*arrays: Array) -> tuple[Array, ...]:
    for name, array in zip("ab", arrays, strict=False):
        _check_array(name, array)
    if len({array.dtype for array in arrays}) > 1:
        dtypes = ", ".join(f"{name} is {array.dtype}" for name, array in zip("ab", arrays, strict=False))
        raise TypeError(f"the inputs must have one dtype: {dtypes}")
    return arrays


def _check_array(name: str, array: Array) -> None:
    if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"{name} must be a NumPy array of float32 or float64, not {type(array).__name__}")
    if array.dtype not in _DTYPES:
        raise TypeError(f"{name} must be float32 or float64 in native byte order, not {array.dtype!r}")


def _check_output(problem: Problem, inputs: Sequence[Array], out: Array | None, shape: tuple[int, ...]) -> None:
    if out is None:
        return
    _check_array("out", out)
    if out.dtype != inputs[0].dtype:
        raise TypeError(f"out must have the inputs' dtype {inputs[0].dtype}, not {out.dtype}")
    if out.shape != shape:
        raise ValueError(f"out must have the shape {shape}, not {out.shape}")
    if not out.flags.writeable:
        raise ValueError("out is read-only; pass an array that can be written to")
    if not problem.in_place and any(_overlap(out, array) for array in inputs):
        raise ValueError(f"out overlaps an input of {problem.name}, which cannot work in place; pass another array")


def _overlap(one: Array, other: Array) -> bool:
    try:
        return np.shares_memory(one, other, max_work=_EFFORT_OF_OVERLAP_TEST)  # type: ignore[arg-type]  # NumPy's stub knows 0 and -1 only
    except np.exceptions.TooHardError:
        return True


def _usable_in_place(out: Array, inputs: Sequence[Array]) -> bool:
    """Whether a kernel may write straight into `out`: in order in memory, and each element over itself at most."""
    return _in_order(out) and all(not np.may_share_memory(out, array) or _same_memory(out, array) for array in inputs)


def _same_memory(one: Array, other: Array) -> bool:
    return one.ctypes.data == other.ctypes.data and one.shape == other.shape and one.strides == other.strides


def _flat(array: Array) -> Array:
    if type(array) is not np.ndarray:
        array = array.view(np.ndarray)  # a matrix, for one, is never flat
    return (array if _in_order(array) else np.require(array, requirements=["C", "A"])).reshape(-1)


def _in_order(array: Array) -> bool:
    flags = array.flags
    return flags.c_contiguous and flags.aligned


def _known(table: Mapping[Any, _Value], asked: Any) -> _Value | None:
    try:
        return table.get(asked)
    except TypeError:  # a list, for instance, is no name of anything; _prepare has the words for it
        return None


def _prepare(asked: _Asked, dtype: np.dtype[Any]) -> tuple[Device, Launch]:
    kernel, backend, variant, target, threads, _ = asked
    texts = _discovery.kernel_texts(kernel, _known_backend(backend))
    if not texts:
        raise ValueError(f"{backend} has no {kernel}")
    chosen = next(iter(texts)) if variant is None else _discovery.known(variant, texts, f"variant of {backend}")
    where = _target(backend, target)
    count = _all_cpus() if threads is None else whole_number("threads", threads, 1, MOST_THREADS)
    with _lock:
        device = _devices.get((backend, where, count))
        if device is None:
            device = _devices[backend, where, count] = _discovery.backend(backend).open(where, count)
        key = (device, kernel, chosen, dtype.name)
        launch = _launches.get(key)
        if launch is None:
            launch = _launches[key] = device.prepare(texts[chosen], dtype)
        _ready[asked, dtype.char] = device, launch
        shortcut = device.shortcut(texts[chosen]) if isinstance(device, HostDevice) else None
        if shortcut is not None:
            _shortcuts[asked] = shortcut
    return device, launch


def _run(device: Device, launch: Launch, inputs: list[Array], output: Array, sizes: tuple[int, ...]) -> None:
    if isinstance(device, HostDevice):
        launch([*inputs, output], sizes)
        return
    buffers: list[Any] = []
    try:
        buffers.extend(device.upload(array) for array in inputs)
        buffers.append(device.allocate(output))
        launch(buffers, sizes)
        device.wait()
        device.download(buffers[-1], output)
    finally:
        for buffer in buffers:
            device.release(buffer)


def _known_backend(name: str) -> str:
    return _discovery.known_backend(name)


_targets: dict[str, list[Target]] = {}


def _target(backend: str, name: str | None) -> str:
    """The target to take; emulated ones are for checking in workers and are not there for callers."""
    targets = _targets.get(backend) or _discovery.targets(backend)
    if any(target.available for target in targets):  # what is missing may be installed meanwhile
        _targets[backend] = targets
    if name is not None:
        _discovery.known(name, [target.name for target in targets], f"target of {backend}")
        targets = [target for target in targets if target.name == name]
    for target in targets:
        if target.available and not target.emulated:
            return target.name
    raise BackendUnavailable(f"{backend} is not available: {targets[0].reason}", targets[0].fix)


@cache
def _all_cpus() -> int:
    return len(os.sched_getaffinity(0))
