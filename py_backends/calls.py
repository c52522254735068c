"""Runs the Python functions in the caller's process.

Devices are opened once and kernels prepared once. All threads of the process use them. Arrays on a device are used
there. Arrays on the host are copied to a device, and only a result that belongs on the host is copied back.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from threading import RLock, local
from typing import Any, NoReturn, TypeVar

import numpy as np

from py_backends import foreign_arrays, plugins, registry, this_process
from py_backends.contract import Adopted, Array, Device, HostDevice, Launch, Problem, Shortcut, Target
from py_backends.errors import MOST_THREADS, BackendUnavailable, WrongRequest, listed, whole_number
from py_backends.kernel_text import KernelText
from py_backends.placement import (
    Placed,
    apart_or_same,
    flat,
    outline,
    overlap,
    overlaps_itself,
    usable_in_place,
)

_PLACES = _HOST, _DEVICE = "host", "device"
"""Where a new result may lie."""

_lock = RLock()
"""Guards the caches below: only one thread opens a device or compiles a kernel. Meanwhile that thread may make other
calls: those of a plug-in that computes by another backend, or of a signal's handler."""


def _renew() -> None:
    """In a forked child, make a new lock, since a thread that is not there may have held the old one.

    Calls forget what they have looked up, so that they meet the devices that a fork breaks.
    """
    global _lock  # noqa: PLW0603  # there is one a process
    _lock = RLock()
    _ready.clear()
    shortcuts.clear()
    _broken_by_fork.update(backend for (backend, *_), device in _devices.items() if not device.survives_fork)


os.register_at_fork(after_in_child=_renew)

_broken_by_fork: set[str] = set()
"""The backends whose threads or drivers stayed in the process that this one was forked from."""

_devices: dict[tuple[str, str, int], Device] = {}
_launches: dict[tuple[int, str, str, str], tuple[Device, Launch]] = {}
"""By the `id` of the device, since a plug-in's device may have no hash."""

Asked = tuple[str, str, str | None, str | None, int | None, type]
"""The arguments of a caller: kernel, backend, variant, target, threads, and the type of threads."""
_ready: dict[tuple[Asked, np.dtype[Any]], tuple[Device, Launch]] = {}
"""The device and launch of earlier calls, by arguments and dtype. A repeated call only looks them up."""
shortcuts: dict[Asked, Shortcut] = {}
"""The shortcuts of earlier calls whose device has one. A call tries its shortcut first."""
_dtypes: dict[tuple[str, str, str | None, str | None], tuple[np.dtype[Any], ...]] = {}
"""The dtypes of a kernel by backend, variant and target. None stands for any variant or target."""
Choice = tuple[Target, KernelText]
"""The target and the source of a call."""
_Value = TypeVar("_Value")


def call(problem: Problem, asked: Asked, inputs: Sequence[Any], out: Any, to: str | None) -> Any:
    """The result for arrays of any library."""
    if asked[-1].__hash__ is None:  # an array of one number, for instance: what is asked for is a key below
        asked = (*asked[:4], _threads(asked), int)
    if to is not None:
        registry.known(to, _PLACES, "place of a result")
        if out is not None:
            raise WrongRequest("`to` says where a new result lies, `out` is an array for it: give one of the two")
    elif _are_of_numpy(inputs) and (out is None or isinstance(out, np.ndarray)):
        return _compute(problem, asked, inputs, inputs, out, out)
    device = _device(asked, _dtype_name(inputs[0]))
    placed = [_placed(device, asked, name, array) for name, array in zip(problem.inputs, inputs, strict=True)]
    for name, array, there in zip(problem.inputs, inputs, placed, strict=True):
        _check_array(name, there, asked, array)
    place = None if out is None else _placed(device, asked, "out", out)
    return _compute(problem, asked, placed, [outline(array) for array in placed], out, place, to == _DEVICE)


def _device(asked: Asked, dtype: str) -> Device:
    """The place where a dtype is computed."""
    target, _ = _chosen(asked, _choices(asked), dtype)
    return _opened(asked, target)


def _dtype_name(array: Any) -> str:
    """NumPy's name for the dtype of any library's array; empty for an object without a dtype."""
    return str(getattr(array, "dtype", "")).rpartition(".")[2]


def _are_of_numpy(arrays: Sequence[Any]) -> bool:
    for array in arrays:  # noqa: SIM110  # all() of a generator takes five times as long
        if not isinstance(array, np.ndarray):
            return False
    return True


def _placed(device: Device, asked: Asked, name: str, array: Any) -> Placed:
    """A caller's array in its own memory. Raises TypeError if the device cannot reach it."""
    if isinstance(array, np.ndarray):
        return array
    try:
        found = device.adopt(array)
        placed = foreign_arrays.on_host(array) if found is None else found
    except foreign_arrays.REFUSALS as error:
        _check_dtype(name, _dtype_name(array), asked, array)
        how = "; bfloat16 is taken in arrays of NumPy, of the dtype ml_dtypes.bfloat16"
        raise TypeError(f"{name}: {error}{how if _dtype_name(array) == 'bfloat16' else ''}") from error
    if placed is None:
        _refuse(name, array, asked)
    if isinstance(placed, Adopted) and placed.buffer is None:
        return np.empty(placed.shape, placed.dtype)  # nothing lies anywhere
    return placed


def _compute(
    problem: Problem,
    asked: Asked,
    inputs: Sequence[Placed],
    outlines: Sequence[Array],
    out: Any,
    place: Placed | None,
    at_device: bool = False,
) -> Any:
    """The result: in `out`, whose memory is `place`, or in a new array if they are None.

    outlines: arrays of the inputs' shapes and dtypes.
    at_device: whether a new array is one of the device's.
    """
    dtype = _one_dtype(problem, asked, outlines)
    sizes = problem.sizes(*outlines)
    shape = problem.shapes(sizes)[-1]
    result = problem.result_dtype(dtype)
    if place is not None:
        _check_output(problem, asked, inputs, place, shape, result)
    device, launch = lookup(_ready, (asked, dtype)) or _prepare(asked, dtype)
    if place is not None:
        memory = place if usable_in_place(place, inputs) else np.empty(shape, result)
    elif at_device:
        out = _new(device, asked, shape, result)
        memory = place = _placed(device, asked, "the result", out)
    else:
        out = memory = place = np.empty(shape, result)
    _run(device, launch, [flat(array) for array in inputs], flat(memory), sizes)
    if memory is not place:
        assert isinstance(place, np.ndarray), "on a device nothing is computed elsewhere first"
        place[...] = memory
    return out


def _new(device: Device, asked: Asked, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """A new array of the device's library, or of NumPy if the device is the CPU and has none."""
    made = device.new(shape, dtype)
    if made is None and device.on_cpu:
        return np.empty(shape, dtype)
    if made is None:
        raise WrongRequest(f"{asked[1]} has no arrays to leave a result in on its device: leave out to='device'")
    return made


def _one_dtype(problem: Problem, asked: Asked, arrays: Sequence[Array]) -> np.dtype[Any]:
    """The dtype of all inputs. Raises TypeError if the backend does not take it."""
    dtypes, dtype = _taken(asked), arrays[0].dtype
    for array in arrays:
        if array.dtype != dtype or (type(array) is not np.ndarray and isinstance(array, np.ma.MaskedArray)):
            break
    else:
        if dtype in dtypes:
            return dtype
    for name, array in zip(problem.inputs, arrays, strict=True):
        _check_array(name, array, asked, array)
    each = ", ".join(f"{name} is {array.dtype}" for name, array in zip(problem.inputs, arrays, strict=True))
    raise TypeError(f"the inputs must have one dtype: {each}")


def _check_array(name: str, array: Placed, asked: Asked, given: Any) -> None:
    if isinstance(array, np.ma.MaskedArray):
        _refuse(name, array, asked)
    if array.dtype not in _taken(asked):
        _check_dtype(name, str(array.dtype), asked, given)


def _check_dtype(name: str, dtype: str, asked: Asked, given: Any) -> None:
    """Raise TypeError if the backend does not take the dtype of what was given. An empty name stands for no dtype."""
    names = [each.name for each in _taken(asked)]
    if dtype and dtype not in names:
        how = f"{name}.astype({names[0]!r})" if hasattr(given, "astype") else f"np.asarray({name}, {names[0]!r})"
        raise TypeError(
            f"{name} must be {listed(names, 'or')} in native byte order, not {dtype}: "
            f"{asked[0]} of {_whom(asked)} takes no other dtype; convert it first, for instance with {how}"
        )


def _whom(asked: Asked) -> str:
    """The backend, and the target if one is named."""
    _, backend, _, target, *_ = asked
    return backend if target is None else f"{backend} on {target}"


def _refuse(name: str, array: Any, asked: Asked) -> NoReturn:
    """Raise TypeError for an object that is no array, or whose memory the backend cannot reach."""
    kind = type(array)
    if not hasattr(array, "dtype") or isinstance(array, np.ma.MaskedArray):
        dtypes = listed([each.name for each in _taken(asked)], "or")
        raise TypeError(
            f"{name} must be a NumPy array of {dtypes}, or another array that hands its memory out, not {kind.__name__}"
        )
    # A copy of an output is another array than the one that is to be written.
    fix = "pass an array on the host as out" if name == "out" else foreign_arrays.how_to_copy(name, array)
    raise TypeError(
        f"{name} is a {kind.__module__.partition('.')[0]} array ({kind.__name__}) in memory that {asked[1]} cannot "
        f"reach: {fix}"
    )


def _taken(asked: Asked) -> tuple[np.dtype[Any], ...]:
    """The dtypes that a backend takes for a request. Raises ValueError if it has no such kernel, variant or target."""
    kernel, backend, variant, target, *_ = asked
    dtypes = lookup(_dtypes, (kernel, backend, variant, target))
    if dtypes is None:
        dtypes = _dtypes[kernel, backend, variant, target] = tuple(map(np.dtype, _choices(asked)))
    return dtypes


def _choices(asked: Asked) -> dict[str, list[Choice]]:
    """By dtype, the targets that take it, each with a source, in the order in which calls prefer them.

    Raises ValueError if a named target has no such kernel.
    """
    kernel, backend, variant, target, *_ = asked
    texts, targets = list(_texts(kernel, backend, variant).values()), _candidates(backend, target)
    every = [((each, text), _dtypes_on(each, text)) for each in targets for text in texts]
    names = dict.fromkeys(name for text in texts for name in registry.dtypes(text))
    choices = {name: [choice for choice, taken in every if name in taken] for name in names}
    if not any(choices.values()):
        raise ValueError(f"{_whom(asked)} has no {kernel}")
    return {name: of_dtype for name, of_dtype in choices.items() if of_dtype}


def _dtypes_on(target: Target, text: KernelText) -> list[str]:
    """The number formats in which a source runs on a target that was probed here."""
    taken = target if target.dtypes is not None else None
    return [name for name in registry.dtypes(text) if name in registry.dtypes(text, taken)]


def _texts(kernel: str, backend: str, variant: str | None) -> dict[str, KernelText]:
    """The sources of a kernel for a backend, or that of a variant. Raises ValueError if there is none."""
    texts = registry.kernel_texts(kernel, registry.known_backend(backend))
    if not texts:
        raise ValueError(f"{backend} has no {kernel}")
    if variant is None:
        return texts
    return {variant: texts[registry.known(variant, texts, f"variant of {backend}")]}


def _check_output(
    problem: Problem,
    asked: Asked,
    inputs: Sequence[Placed],
    out: Placed,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
) -> None:
    if isinstance(out, np.ma.MaskedArray):
        _refuse("out", out, asked)
    if out.dtype != dtype:
        raise TypeError(f"out must have the result's dtype {dtype}, not {out.dtype}")
    if out.shape != shape:
        raise ValueError(f"out must have the shape {shape}, not {out.shape}")
    if not (out.writable if isinstance(out, Adopted) else out.flags.writeable):
        raise ValueError("out is read-only; pass an array that can be written to")
    if overlaps_itself(out):
        raise ValueError("several elements of out share memory; pass an array whose elements lie apart")
    if not problem.in_place and any(overlap(out, array) for array in inputs):
        raise ValueError(f"out overlaps an input of {problem.name}, which cannot work in place; pass another array")
    if isinstance(out, Adopted) and not all(apart_or_same(out, array) for array in inputs):
        raise ValueError("out overlaps a part of an input on its device; pass another array")


def lookup(table: Mapping[Any, _Value], asked: Any) -> _Value | None:
    """What a table has for what was asked; None, too, where that is no possible key."""
    try:
        return table.get(asked)
    except TypeError:  # a list, for instance, is no name of anything; what looks closer has the words for it
        return None


def _prepare(asked: Asked, dtype: np.dtype[Any]) -> tuple[Device, Launch]:
    choices = _choices(asked)
    choice = target, text = _chosen(asked, choices, dtype.name)
    device = _opened(asked, target)
    alike = [name for name, of_dtype in choices.items() if _first_there(of_dtype) == choice]
    with _lock:
        key = (id(device), text.kernel, text.variant, dtype.name)
        ready = _launches.get(key)
        if ready is None:
            ready = _launches[key] = device, plugins.checked_launch(device.prepare(text, dtype))
        _ready[asked, dtype] = ready
        # What is asked for has one shortcut: that of its first dtype, for all that are computed where that is.
        if next(iter(choices)) in alike and isinstance(device, HostDevice):
            shortcut = device.shortcut(text, alike)
            if shortcut is not None:
                shortcuts[asked] = shortcut
    return ready


def _chosen(asked: Asked, choices: Mapping[str, list[Choice]], dtype: str) -> Choice:
    """Where a dtype is computed. One that nothing takes may go anywhere: who looks at it says so."""
    able = choices.get(dtype) or list(chain(*choices.values()))
    chosen = _first_there(able)
    if chosen is None:
        missing, _ = able[0]
        named = " ".join(filter(None, (asked[1], asked[3])))
        raise BackendUnavailable(f"{named} is not available: {missing.reason}", missing.fix)
    return chosen


def _first_there(choices: Iterable[Choice]) -> Choice | None:
    """The first choice with an available target. Emulated targets only serve for checks in workers, not for callers."""
    return next((each for each in choices if each[0].available and not each[0].emulated), None)


def _opened(asked: Asked, target: Target) -> Device:
    """The device of a target, opened at the first time."""
    backend, where, count = asked[1], target.name, _threads(asked)
    if backend in _broken_by_fork:
        raise BackendUnavailable(
            f"{backend} was used before this process was forked, and its threads or its driver stayed in the parent",
            'start such a process by multiprocessing.get_context("spawn")',
        )
    with _lock:
        device = _devices.get((backend, where, count))
        if device is None:
            opened = plugins.checked_device(registry.backend(backend).open(where, count))
            device = _devices.setdefault((backend, where, count), opened)  # a call within may have opened it too
    return device


def _threads(asked: Asked) -> int:
    """The number of threads: all CPUs where none is given. Raises ValueError for what is no such number."""
    threads = asked[4]
    return _all_cpus() if threads is None else whole_number("threads", threads, 1, MOST_THREADS)


def share(backend: str, target: str, threads: int, device: Device) -> None:
    """Let calls use a device that was opened elsewhere with so many threads."""
    with _lock:
        _devices[backend, target, threads] = device


def share_launch(device: Device, text: KernelText, dtype: np.dtype[Any], launch: Launch) -> None:
    """Let calls use a kernel that was prepared on a device elsewhere."""
    with _lock:
        _launches[id(device), text.kernel, text.variant, dtype.name] = device, launch


def _run(device: Device, launch: Launch, inputs: Sequence[Placed], output: Placed, sizes: tuple[int, ...]) -> None:
    if isinstance(device, HostDevice):
        launch([*inputs, output], sizes)
        return
    computing, this = _of_thread.__dict__.setdefault("computing", set()), id(device)
    if this in computing:  # it keeps its arguments and its scratch memory by the thread
        raise RuntimeError(
            "this call began within another one of its thread on the same device, as from a signal's handler or a "
            "__del__: make it after that one, or in another thread"
        )
    buffers: list[Any] = []
    try:
        computing.add(this)
        arrays = [*inputs, output]
        device.arrange(launch, sizes, [at for at, each in enumerate(arrays) if not isinstance(each, Adopted)])
        buffers.extend(array.buffer if isinstance(array, Adopted) else device.upload(array) for array in inputs)
        buffers.append(output.buffer if isinstance(output, Adopted) else device.allocate(output))
        launch(buffers, sizes)
        device.wait()
        if not isinstance(output, Adopted):
            device.download(buffers[-1], output)
    finally:
        try:
            for buffer in buffers:
                device.release(buffer)
        finally:
            computing.discard(this)


_of_thread = local()
"""`computing`: the devices on which calls of this thread are under way, by `id`."""
_targets: dict[str, list[Target]] = {}


def _candidates(backend: str, name: str | None) -> list[Target]:
    """The target of a backend with this name, or all of its targets, missing ones included."""
    targets = _targets.get(backend) or list(map(this_process.usable, registry.targets(backend)))
    if any(target.available for target in targets):  # what is missing may be installed meanwhile
        _targets[backend] = targets
    if name is None:
        return targets
    if isinstance(name, str) and name not in [target.name for target in targets]:
        targets = list(map(this_process.usable, registry.targets(backend, [name])))
    registry.known(name, [target.name for target in targets], f"target of {backend}")
    return [target for target in targets if target.name == name]


@cache
def _all_cpus() -> int:
    return len(os.sched_getaffinity(0))
