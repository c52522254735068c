"""The kernels as Python functions: `pb.matmul(a, b, backend=...)`, in the caller's process.

Devices are opened once and kernels prepared once, and then used by all threads of the process. Arrays are used where
they lie: those on the host are brought to a device, and nothing is brought from one but a result that belongs there.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from threading import Lock
from typing import Any, NoReturn, TypeVar

import numpy as np

from py_backends import _arrays, _discovery
from py_backends._contract import (
    MOST_THREADS,
    Adopted,
    Array,
    BackendUnavailable,
    Device,
    HostDevice,
    KernelText,
    Launch,
    Problem,
    Shortcut,
    Target,
    WrongRequest,
    whole_number,
)

_PLACES = _HOST, _DEVICE = "host", "device"
"""Where a new result may lie."""
_EFFORT_OF_OVERLAP_TEST = 10_000
"""Steps that NumPy may take to tell whether two strided arrays share memory; undecided counts as shared."""

_lock = Lock()
"""Guards the caches below: a device is opened, and a kernel compiled, by one thread only."""
_devices: dict[tuple[str, str, int], Device] = {}
_launches: dict[tuple[int, str, str, str], tuple[Device, Launch]] = {}
"""By the identity of the device: a plug-in's may have no hash."""

_Asked = tuple[str, str, str | None, str | None, int | None, type]
"""What a caller asks for, in the caller's words: kernel, backend, variant, target, threads and the type of that."""
_ready: dict[tuple[_Asked, np.dtype[Any]], tuple[Device, Launch]] = {}
"""What was asked for before, and in which dtype: looking that up is all that a further call does."""
_shortcuts: dict[_Asked, Shortcut] = {}
"""What was asked for before where the device has a shortcut. It is tried before anything else is looked at."""
_dtypes: dict[str, tuple[np.dtype[Any], ...]] = {}
"""Those that a backend declares."""
_Value = TypeVar("_Value")
_Placed = Array | Adopted
"""An array on the host, or one in memory where the device computes."""


@cache
def function(kernel: str) -> Callable[..., Any]:
    """The Python function that runs a kernel; ValueError where there is no such kernel."""
    problem = _discovery.problem(kernel)
    run = _of_a_and_b(problem) if problem.inputs == ("a", "b") else _of_any(problem)
    run.__name__ = run.__qualname__ = kernel
    run.__doc__ = _documentation(problem)
    return run


def _of_a_and_b(problem: Problem) -> Callable[..., Any]:
    """The function of a kernel with the inputs `a` and `b`: as `_of_any`, but quicker than most additions are."""
    kernel = problem.name

    def run(
        a: Any,
        b: Any,
        *,
        backend: str,
        variant: str | None = None,
        target: str | None = None,
        threads: int | None = None,
        out: Any = None,
        to: str | None = None,
    ) -> Any:
        asked = (kernel, backend, variant, target, threads, type(threads))  # 2.0 threads are refused, and 2.0 == 2
        if to is None:
            try:
                shortcut = _shortcuts.get(asked)
            except TypeError:  # as in `_known`, whose call would take longer than all that stands here
                shortcut = None
            if shortcut is not None and (made := shortcut(a, b, out)) is not None:
                return made
        return _call(problem, asked, (a, b), out, to)

    return run


def _of_any(problem: Problem) -> Callable[..., Any]:
    """The function of a kernel with any number of inputs, by their places or by their names."""
    kernel = problem.name

    def run(
        *inputs: Any,
        backend: str,
        variant: str | None = None,
        target: str | None = None,
        threads: int | None = None,
        out: Any = None,
        to: str | None = None,
        **named: Any,
    ) -> Any:
        asked = (kernel, backend, variant, target, threads, type(threads))
        inputs = _by_place(problem, inputs, named)
        if to is None:
            shortcut = _known(_shortcuts, asked)
            if shortcut is not None and (made := shortcut(*inputs, out)) is not None:
                return made
        return _call(problem, asked, inputs, out, to)

    run.__signature__ = _signature(problem, run)  # type: ignore[attr-defined]  # what help() shows
    return run


def _signature(problem: Problem, run: Callable[..., Any]) -> inspect.Signature:
    """The inputs by their names, and then the options."""
    options = inspect.signature(run).parameters.values()
    keywords = [each for each in options if each.kind is inspect.Parameter.KEYWORD_ONLY]
    inputs = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in problem.inputs]
    return inspect.Signature([*inputs, *keywords])


def _documentation(problem: Problem) -> str:
    dimensions = problem.size_of_each_dimension()
    shapes = ["" for _ in range(len(problem.inputs) + 1)]
    if dimensions is not None:
        shapes = [f" of {' x '.join(problem.dimensions[size] for size in sizes)} elements" for sizes in dimensions]
    inputs = "\n".join(f"{name}: an array{shape}." for name, shape in zip(problem.inputs, shapes, strict=False))
    return _DOCUMENTATION.format(kernel=problem.name, rule=problem.rule, inputs=inputs, shape=shapes[-1])


_DOCUMENTATION = """Run {kernel} on a backend, and return its result: an array{shape}, of the inputs' dtype.

{inputs}
backend: its name, as `py_backends.backends()` lists them.
variant: `tuned` or `lecture`; the first of these that the backend has, where None.
target: where the backend runs it; its first available one where None.
threads: for a backend that runs on the CPU; all logical CPUs where None.
out: an array of the result's shape and dtype to write to and return.
to: where a new result lies: `host`, as a NumPy array, which is what None means too; or `device`, where the backend
    computed it, as an array of the backend's library.

Inputs are float32 or float64 arrays of one dtype, and never changed. Those on the host, of NumPy or of a library that
speaks DLPack or Python's buffer protocol, may have any strides. Those on a device are used there, and have to be
C-contiguous. The result is right by the rule '{rule}' of docs/reference.md.

Raises ValueError for wrong shapes, unknown names and an unfit `out`; TypeError for wrong or mixed dtypes, a wrong
number of inputs, and arrays that the backend cannot reach without copying them from their device; BackendUnavailable
for a backend that is not there; MemoryError where memory does not suffice.
"""


def _by_place(problem: Problem, inputs: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
    """All inputs in their order; TypeError where one is missing, unknown or given twice."""
    names = problem.inputs
    unknown = next((name for name in named if name not in names), None)
    if unknown is not None:
        raise TypeError(f"{problem.name} has no parameter {unknown!r}; its inputs are {_listed(names)}")
    if len(inputs) + len(named) != len(names):
        number = "1 input" if len(names) == 1 else f"{len(names)} inputs"
        raise TypeError(f"{problem.name} takes {number}, {_listed(names)}; {len(inputs) + len(named)} were given")
    twice = next((name for name in names[: len(inputs)] if name in named), None)
    if twice is not None:
        raise TypeError(f"{problem.name} was given {twice!r} by its place and by its name")
    return (*inputs, *(named[name] for name in names[len(inputs) :]))


def _listed(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _call(problem: Problem, asked: _Asked, inputs: Sequence[Any], out: Any, to: str | None) -> Any:
    """The result for arrays of any library."""
    if to is not None:
        _discovery.known(to, _PLACES, "place of a result")
        if out is not None:
            raise WrongRequest(
                "`to` is where a new result lies, and `out` an array to write it to: give one of the two"
            )
    elif _are_of_numpy(inputs) and (out is None or isinstance(out, np.ndarray)):
        return _compute(problem, asked, inputs, inputs, out, out)
    device = _opened(asked)
    placed = [_placed(device, asked, name, array) for name, array in zip(problem.inputs, inputs, strict=True)]
    place = None if out is None else _placed(device, asked, "out", out)
    return _compute(problem, asked, placed, [_outline(array) for array in placed], out, place, to == _DEVICE)


def _are_of_numpy(arrays: Sequence[Any]) -> bool:
    for array in arrays:  # noqa: SIM110  # all() of a generator takes five times as long
        if not isinstance(array, np.ndarray):
            return False
    return True


def _placed(device: Device, asked: _Asked, name: str, array: Any) -> _Placed:
    """A caller's array where it lies; TypeError where that is out of the device's reach."""
    if isinstance(array, np.ndarray):
        return array
    try:
        found = device.adopt(array)
        placed = _arrays.on_host(array) if found is None else found
    except _arrays.REFUSALS as error:
        _check_dtype(name, str(getattr(array, "dtype", "")).rpartition(".")[2], asked)
        raise TypeError(f"{name}: {error}") from error
    if placed is None:
        _refuse(name, array, asked)
    if isinstance(placed, Adopted) and placed.buffer is None:
        return np.empty(placed.shape, placed.dtype)  # nothing lies anywhere
    return placed


def _outline(array: _Placed) -> Array:
    """An array of the same shape and dtype on the host, for those who look at nothing else."""
    if isinstance(array, Adopted):
        return np.broadcast_to(np.empty((), array.dtype), array.shape)
    return array


def _compute(
    problem: Problem,
    asked: _Asked,
    inputs: Sequence[_Placed],
    outlines: Sequence[Array],
    out: Any,
    place: _Placed | None,
    at_device: bool = False,
) -> Any:
    """The result, in `out`, whose memory is `place`; or where they are None in a new array.

    outlines: arrays of the inputs' shapes and dtypes.
    at_device: whether a new array is one of the device's.
    """
    dtype = _one_dtype(problem, asked, outlines)
    sizes = problem.sizes(*outlines)
    shape = problem.shapes(sizes)[-1]
    if place is not None:
        _check_output(problem, asked, inputs, place, shape, dtype)
    device, launch = _known(_ready, (asked, dtype)) or _prepare(asked, dtype)
    if place is not None:
        memory = place if _usable_in_place(place, inputs) else np.empty(shape, dtype)
    elif at_device:
        out = _new(device, asked, shape, dtype)
        memory = place = _placed(device, asked, "the result", out)
    else:
        out = memory = place = np.empty(shape, dtype)
    _run(device, launch, [_flat(array) for array in inputs], _flat(memory), sizes)
    if memory is not place:
        assert isinstance(place, np.ndarray), "on a device nothing is computed elsewhere first"
        place[...] = memory
    return out


def _new(device: Device, asked: _Asked, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """A new array of the device's: NumPy's where that is the CPU, and has no others."""
    made = device.new(shape, dtype)
    if made is None and device.on_cpu:
        return np.empty(shape, dtype)
    if made is None:
        raise WrongRequest(f"{asked[1]} has no arrays to leave a result in on its device: leave out to='device'")
    return made


def _one_dtype(problem: Problem, asked: _Asked, arrays: Sequence[Array]) -> np.dtype[Any]:
    """The dtype of all inputs; TypeError where it is not one that the backend takes."""
    dtypes, dtype = _declared(asked[1]), arrays[0].dtype
    for array in arrays:
        if array.dtype != dtype or (type(array) is not np.ndarray and isinstance(array, np.ma.MaskedArray)):
            break
    else:
        if dtype in dtypes:
            return dtype
    for name, array in zip(problem.inputs, arrays, strict=True):
        _check_array(name, array, asked)
    each = ", ".join(f"{name} is {array.dtype}" for name, array in zip(problem.inputs, arrays, strict=True))
    raise TypeError(f"the inputs must have one dtype: {each}")


def _check_array(name: str, array: Array, asked: _Asked) -> None:
    if isinstance(array, np.ma.MaskedArray):
        _refuse(name, array, asked)
    if array.dtype not in _declared(asked[1]):
        _check_dtype(name, str(array.dtype), asked)


def _check_dtype(name: str, dtype: str, asked: _Asked) -> None:
    """Raise TypeError where the backend does not declare a dtype; an empty name is of none."""
    names = [each.name for each in _declared(asked[1])]
    if dtype and dtype not in names:
        raise TypeError(
            f"{name} must be {' or '.join(names)} in native byte order, not {dtype}: "
            f"{asked[1]} declares no other dtype; convert it first, for instance with {name}.astype({names[0]!r})"
        )


def _refuse(name: str, array: Any, asked: _Asked) -> NoReturn:
    """Raise TypeError for what is no array, or lies where the backend cannot reach it."""
    kind = type(array)
    if not hasattr(array, "dtype") or isinstance(array, np.ma.MaskedArray):
        dtypes = " or ".join(each.name for each in _declared(asked[1]))
        raise TypeError(
            f"{name} must be a NumPy array of {dtypes}, or another array that hands its memory out, not {kind.__name__}"
        )
    raise TypeError(
        f"{name} is a {kind.__module__.partition('.')[0]} array ({kind.__name__}) in memory that {asked[1]} cannot "
        f"reach: {_arrays.how_to_copy(name, array)}"
    )


def _declared(backend: str) -> tuple[np.dtype[Any], ...]:
    """The dtypes that a backend takes; WrongRequest where there is no such backend."""
    dtypes = _known(_dtypes, backend)
    if dtypes is None:
        names = _discovery.backend(_known_backend(backend)).dtypes
        dtypes = _dtypes[backend] = tuple(map(np.dtype, names))
    return dtypes


def _check_output(
    problem: Problem,
    asked: _Asked,
    inputs: Sequence[_Placed],
    out: _Placed,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
) -> None:
    if out.dtype != dtype or isinstance(out, np.ma.MaskedArray):
        _check_array("out", _outline(out), asked)
        raise TypeError(f"out must have the inputs' dtype {dtype}, not {out.dtype}")
    if out.shape != shape:
        raise ValueError(f"out must have the shape {shape}, not {out.shape}")
    if not (out.writable if isinstance(out, Adopted) else out.flags.writeable):
        raise ValueError("out is read-only; pass an array that can be written to")
    if not problem.in_place and any(_overlap(out, array) for array in inputs):
        raise ValueError(f"out overlaps an input of {problem.name}, which cannot work in place; pass another array")
    if isinstance(out, Adopted) and not all(_apart_or_same(out, array) for array in inputs):
        raise ValueError("out overlaps a part of an input on its device; pass another array")


def _overlap(one: _Placed, other: _Placed) -> bool:
    if isinstance(one, Adopted) or isinstance(other, Adopted):
        return _ranges_meet(one, other)
    try:
        return np.shares_memory(one, other, max_work=_EFFORT_OF_OVERLAP_TEST)  # type: ignore[arg-type]  # NumPy's stub knows 0 and -1 only
    except np.exceptions.TooHardError:
        return True


def _ranges_meet(one: _Placed, other: _Placed) -> bool:
    """Whether the ranges of memory from the first to the last byte of each have a byte in common."""
    (begin, end), (other_begin, other_end) = _bounds(one), _bounds(other)
    return begin < other_end and other_begin < end


def _bounds(array: _Placed) -> tuple[int, int]:
    if isinstance(array, Adopted):
        return array.address, array.address + _outline(array).size * array.dtype.itemsize
    return np.lib.array_utils.byte_bounds(array) if array.size else (0, 0)


def _usable_in_place(out: _Placed, inputs: Sequence[_Placed]) -> bool:
    """Whether a kernel may write straight into `out`: in order in memory, and each element over itself at most."""
    if isinstance(out, Adopted):
        return True  # else it was refused
    return _in_order(out) and all(_apart_or_same(out, array) for array in inputs)


def _apart_or_same(out: _Placed, array: _Placed) -> bool:
    """Whether an output that lies in order shares no byte with an input, or has each element in the input's place."""
    if isinstance(out, np.ndarray) and isinstance(array, np.ndarray):
        return not np.may_share_memory(out, array) or (
            out.ctypes.data == array.ctypes.data and out.shape == array.shape and out.strides == array.strides
        )
    if not _ranges_meet(out, array):
        return True
    in_order = isinstance(array, Adopted) or _in_order(array)
    return in_order and out.shape == array.shape and _bounds(out) == _bounds(array)


def _flat(array: _Placed) -> _Placed:
    if type(array) is not np.ndarray:
        if isinstance(array, Adopted):
            return array
        array = array.view(np.ndarray)  # a matrix, for one, is never flat
    return (array if _in_order(array) else np.require(array, requirements=["C", "A"])).reshape(-1)


def _in_order(array: Array) -> bool:
    flags = array.flags
    return flags.c_contiguous and flags.aligned


def _known(table: Mapping[Any, _Value], asked: Any) -> _Value | None:
    try:
        return table.get(asked)
    except TypeError:  # a list, for instance, is no name of anything; what looks closer has the words for it
        return None


def _prepare(asked: _Asked, dtype: np.dtype[Any]) -> tuple[Device, Launch]:
    kernel, backend, variant, *_ = asked
    texts = _discovery.kernel_texts(kernel, _known_backend(backend))
    if not texts:
        raise ValueError(f"{backend} has no {kernel}")
    chosen = next(iter(texts)) if variant is None else _discovery.known(variant, texts, f"variant of {backend}")
    device = _opened(asked)
    with _lock:
        key = (id(device), kernel, chosen, dtype.name)
        ready = _launches.get(key)
        if ready is None:
            ready = _launches[key] = device, device.prepare(texts[chosen], dtype)
        _ready[asked, dtype] = ready
        shortcut = device.shortcut(texts[chosen]) if isinstance(device, HostDevice) else None
        if shortcut is not None:
            _shortcuts[asked] = shortcut
    return ready


def _opened(asked: _Asked) -> Device:
    """The device that is asked for, opened at the first time."""
    _, backend, _, target, threads, _ = asked
    where = _target(_known_backend(backend), target)
    count = _all_cpus() if threads is None else whole_number("threads", threads, 1, MOST_THREADS)
    with _lock:
        device = _devices.get((backend, where, count))
        if device is None:
            device = _devices[backend, where, count] = _discovery.backend(backend).open(where, count)
    return device


def share(backend: str, target: str, threads: int, device: Device) -> None:
    """Let calls use a device that somebody has opened with so many threads."""
    with _lock:
        _devices[backend, target, threads] = device


def share_launch(device: Device, text: KernelText, dtype: np.dtype[Any], launch: Launch) -> None:
    """Let calls use a kernel that somebody has prepared on a device."""
    with _lock:
        _launches[id(device), text.kernel, text.variant, dtype.name] = device, launch


def _run(device: Device, launch: Launch, inputs: Sequence[_Placed], output: _Placed, sizes: tuple[int, ...]) -> None:
    if isinstance(device, HostDevice):
        launch([*inputs, output], sizes)
        return
    buffers: list[Any] = []
    try:
        buffers.extend(array.buffer if isinstance(array, Adopted) else device.upload(array) for array in inputs)
        buffers.append(output.buffer if isinstance(output, Adopted) else device.allocate(output))
        launch(buffers, sizes)
        device.wait()
        if not isinstance(output, Adopted):
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
