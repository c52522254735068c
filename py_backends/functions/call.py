"""Runs the Python functions in the caller's process.

Devices are opened once and kernels prepared once. All threads of the process use them. Arrays on a device are used
there. Arrays on the host are copied to a device, and only a result that belongs on the host is copied back.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import combinations
from threading import RLock, local
from typing import Any, NoReturn

import numpy as np

from py_backends import folders, plugins, registry
from py_backends.contract import Adopted, Array, Device, HostDevice, Launch, Problem, Shortcut, Target
from py_backends.errors import BackendUnavailable, WrongRequest
from py_backends.functions import foreign_arrays
from py_backends.functions.dispatch import (
    Asked,
    choices_by_dtype,
    chosen,
    dtypes_taken,
    first_there,
    lookup,
    thread_count,
    whom,
)
from py_backends.functions.placement import (
    Placed,
    apart_or_same,
    flat,
    outline,
    overlap,
    overlaps_itself,
    usable_in_place,
)
from py_backends.kernel_text import KernelText
from py_backends.number_formats import FORMATS
from py_backends.system import surroundings
from py_backends.wording import listed

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
    for known in (_ready, _places, shortcuts):
        known.clear()
    _broken_by_fork.update(backend for (backend, *_), device in _devices.items() if not device.survives_fork)


os.register_at_fork(after_in_child=_renew)

_broken_by_fork: set[str] = set()
"""The backends whose threads or drivers stayed in the process that this one was forked from."""

_devices: dict[tuple[str, str, int], Device] = {}
_launches: dict[tuple[int, str, str, str], tuple[Device, Launch]] = {}
"""By the `id` of the device, since a plug-in's device may have no hash."""

_ready: dict[tuple[Asked, np.dtype[Any]], tuple[Device, Launch]] = {}
"""The device and launch of earlier calls, by arguments and dtype. A repeated call only looks them up."""
shortcuts: dict[Asked, Shortcut] = {}
"""The shortcuts of earlier calls whose device has one. A call tries its shortcut first."""
_places: dict[tuple[Asked, str], Device] = {}
"""The device of earlier calls with arrays on devices, by arguments and the name of the dtype."""


def _forget(kernel: str) -> None:
    """Look a kernel up anew."""
    with _lock:
        for launched in [key for key in _launches if key[1] == kernel]:
            del _launches[launched]
        for ready in [key for key in _ready if key[0][0] == kernel]:
            del _ready[ready]
        for placed in [key for key in _places if key[0][0] == kernel]:
            del _places[placed]
        for asked in [key for key in shortcuts if key[0] == kernel]:
            del shortcuts[asked]


folders.FORGET.append(_forget)


def call(
    problem: Problem, asked: Asked, inputs: Sequence[Any], out: Any, to: str | None, numbers: tuple[Any, ...] = ()
) -> Any:
    """The result for arrays of any library, and for the numbers of the problem. Several outputs are a tuple."""
    if asked[-1].__hash__ is None:  # an array of one number, for instance: what is asked for is a key below
        asked = (*asked[:4], thread_count(asked), int)
    if to is not None:
        registry.known(to, _PLACES, "place of a result")
        if out is not None:
            raise WrongRequest("`to` says where a new result lies, `out` is an array for it: give one of the two")
    outs = None if out is None else _outputs(problem, out)
    if to is None and _are_of_numpy(inputs) and (outs is None or _are_of_numpy(outs)):
        return _compute(problem, asked, inputs, inputs, outs, outs, numbers)
    device = _device(asked, foreign_arrays.dtype_name(inputs[_first_of_run(problem)]))
    own = list(map(problem.own_dtype, range(len(inputs))))
    placed = [_placed(device, asked, *each) for each in zip(problem.inputs, inputs, own, strict=True)]
    for name, array, there, dtype in zip(problem.inputs, inputs, placed, own, strict=True):
        _check_array(name, there, asked, array, dtype)
    places = None if outs is None else [_placed(device, asked, "out", each) for each in outs]
    return _compute(problem, asked, placed, [outline(array) for array in placed], outs, places, numbers, to == _DEVICE)


def _outputs(problem: Problem, out: Any) -> Sequence[Any]:
    """The arrays for the outputs. Raises TypeError unless there are as many."""
    if problem.outputs == 1:
        return (out,)
    if not isinstance(out, tuple | list) or len(out) != problem.outputs:
        raise TypeError(f"{problem.name} has {problem.outputs} outputs: out must be a tuple of as many arrays")
    return out


def _first_of_run(problem: Problem) -> int:
    """The first input without a dtype of its own."""
    return next(at for at in range(len(problem.inputs)) if problem.own_dtype(at) is None)


def _device(asked: Asked, dtype: str) -> Device:
    """The place where a dtype is computed."""
    device = lookup(_places, (asked, dtype))
    if device is None:
        choices = choices_by_dtype(asked)
        target, _ = chosen(asked, choices, dtype)
        device = _opened(asked, target)
        if dtype in choices:
            _places[asked, dtype] = device
    return device


def _are_of_numpy(arrays: Sequence[Any]) -> bool:
    for array in arrays:  # noqa: SIM110  # all() of a generator takes five times as long
        if not isinstance(array, np.ndarray):
            return False
    return True


def _placed(device: Device, asked: Asked, name: str, array: Any, own: np.dtype[Any] | None = None) -> Placed:
    """A caller's array in its own memory. Raises TypeError if the device cannot reach it.

    own: the dtype that it always has.
    """
    if isinstance(array, np.ndarray):
        return array
    if isinstance(array, foreign_arrays.NO_ARRAYS):
        _refuse(name, array, asked, own)  # its attributes are those of arrays, and it is none
    try:
        found = device.adopt(array)
        placed = foreign_arrays.on_host(array) if found is None else found
    except foreign_arrays.REFUSALS as error:
        dtype = foreign_arrays.dtype_name(array)
        if own is None:
            _check_dtype(name, dtype, asked, array)
        in_numpy = dtype not in FORMATS or np.dtype(dtype).isbuiltin == 1
        how = "" if in_numpy else f"; {dtype} is taken in arrays of NumPy, of the dtype ml_dtypes.{dtype}"
        raise TypeError(f"{name}: {error}{how}") from error
    if placed is None:
        _refuse(name, array, asked, own)
    if isinstance(placed, Adopted) and placed.buffer is None:
        return np.empty(placed.shape, placed.dtype)  # nothing lies anywhere
    return placed


def _compute(
    problem: Problem,
    asked: Asked,
    inputs: Sequence[Placed],
    outlines: Sequence[Array],
    outs: Sequence[Any] | None,
    places: Sequence[Placed] | None,
    numbers: tuple[Any, ...],
    at_device: bool = False,
) -> Any:
    """The results: in `outs`, whose memory is `places`, or in new arrays if they are None.

    outlines: arrays of the inputs' shapes and dtypes.
    at_device: whether new arrays are the device's.
    """
    dtype, sizes, count = _dtype_of_run(problem, asked, outlines), problem.sizes(*outlines), len(inputs)
    if numbers:
        sizes = (*sizes, *numbers)
    shapes, dtypes = problem.shapes(sizes)[count:], problem.array_dtypes(dtype)[count:]
    if places is not None:
        _check_outputs(problem, asked, inputs, places, shapes, dtypes)
    device, launch = lookup(_ready, (asked, dtype)) or _prepare(asked, dtype)
    if places is not None:
        assert outs is not None, "they are the outputs' memory"
        memory: Sequence[Placed] = [
            place if usable_in_place(place, inputs) else np.empty(place.shape, place.dtype) for place in places
        ]
    elif at_device:
        outs = [_new(device, asked, *each) for each in zip(shapes, dtypes, strict=True)]
        memory = places = [_placed(device, asked, "the result", out) for out in outs]
    else:
        outs = memory = places = list(map(np.empty, shapes, dtypes))
    # A shortcut goes past this line, so who has one sees to its threads' arithmetic itself.
    as_is = asked in shortcuts or surroundings.has_arithmetic()
    with nullcontext() if as_is else surroundings.arithmetic():
        arrays = [flat(array) for array in (*inputs, *memory)]
        _run(device, launch, arrays, len(memory), problem.rounded(sizes, dtype) if problem.reals else sizes)
    for at, place in enumerate(places):
        if memory[at] is not place:
            assert isinstance(place, np.ndarray), "on a device nothing is computed elsewhere first"
            place[...] = memory[at]
    if at_device:
        outs = [
            device.result(out, place) if isinstance(place, Adopted) else out
            for out, place in zip(outs, places, strict=True)
        ]
    return outs[0] if problem.outputs == 1 else tuple(outs)


def _new(device: Device, asked: Asked, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """A new array of the device's library, or of NumPy if the device is the CPU and has none."""
    made = device.new(shape, dtype)
    if made is None and device.on_cpu:
        return np.empty(shape, dtype)
    if made is None:
        raise WrongRequest(f"{asked[1]} has no arrays to leave a result in on its device: leave out to='device'")
    return made


def _dtype_of_run(problem: Problem, asked: Asked, arrays: Sequence[Array]) -> np.dtype[Any]:
    """The dtype of all inputs without one of their own. Raises TypeError if the backend does not take it."""
    dtype = arrays[0 if problem.one_dtype else _first_of_run(problem)].dtype
    wanted = problem.array_dtypes(dtype)
    for at, array in enumerate(arrays):
        if array.dtype != wanted[at] or (type(array) is not np.ndarray and isinstance(array, np.ma.MaskedArray)):
            break
    else:
        if dtype in dtypes_taken(asked):
            return dtype
    for at, (name, array) in enumerate(zip(problem.inputs, arrays, strict=True)):
        _check_array(name, array, asked, array, problem.own_dtype(at))
    each = ", ".join(
        f"{name} is {array.dtype}"
        for at, (name, array) in enumerate(zip(problem.inputs, arrays, strict=True))
        if problem.own_dtype(at) is None
    )
    raise TypeError(f"the inputs must have one dtype: {each}")


def _check_array(name: str, array: Placed, asked: Asked, given: Any, own: np.dtype[Any] | None = None) -> None:
    """Raise TypeError for an input of a wrong dtype. own: that which it always has."""
    if isinstance(array, np.ma.MaskedArray):
        _refuse(name, array, asked, own)
    if own is not None and array.dtype != own:
        how = foreign_arrays.how_to_convert(name, given, own.name)
        raise TypeError(f"{name} of {asked[0]} must be {own}, not {array.dtype}: convert it first, with {how}")
    if own is None and array.dtype not in dtypes_taken(asked):
        _check_dtype(name, str(array.dtype), asked, given)


def _check_dtype(name: str, dtype: str, asked: Asked, given: Any) -> None:
    """Raise TypeError if the backend does not take the dtype of what was given. An empty name stands for no dtype."""
    names = [each.name for each in dtypes_taken(asked)]
    if dtype and dtype not in names:
        how = foreign_arrays.how_to_convert(name, given, names[0])
        raise TypeError(
            f"{name} must be {listed(names, 'or')} in native byte order, not {dtype}: "
            f"{asked[0]} of {whom(asked)} takes no other dtype; convert it first, for instance with {how}"
        )


def _refuse(name: str, array: Any, asked: Asked, own: np.dtype[Any] | None = None) -> NoReturn:
    """Raise TypeError for an object that is no array, or whose memory the backend cannot reach."""
    kind = type(array)
    if not hasattr(array, "dtype") or isinstance(array, foreign_arrays.NO_ARRAYS):
        dtypes = [each.name for each in (dtypes_taken(asked) if own is None else (own,))]
        fits = isinstance(array, foreign_arrays.CONVERTIBLE) and name != "out"
        how = f"; convert it first, for instance with {foreign_arrays.how_to_convert(name, array, dtypes[0])}"
        raise TypeError(
            f"{name} must be a NumPy array of {listed(dtypes, 'or')}, or another array that hands its memory out, not "
            f"{kind.__name__}{how if fits else ''}"
        )
    # A copy of an output is another array than the one that is to be written.
    fix = "pass an array on the host as out" if name == "out" else foreign_arrays.how_to_copy(name, array)
    raise TypeError(
        f"{name} is a {kind.__module__.partition('.')[0]} array ({kind.__name__}) in memory that {asked[1]} cannot "
        f"reach: {fix}"
    )


def _check_outputs(
    problem: Problem,
    asked: Asked,
    inputs: Sequence[Placed],
    outs: Sequence[Placed],
    shapes: Sequence[tuple[int, ...]],
    dtypes: Sequence[np.dtype[Any]],
) -> None:
    for at, out in enumerate(outs):
        _check_output(problem, asked, inputs, out, shapes[at], dtypes[at])
    if len(outs) > 1 and any(overlap(one, other) for one, other in combinations(outs, 2)):
        raise ValueError(f"outputs of {problem.name} share memory; pass arrays that lie apart")


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


def _prepare(asked: Asked, dtype: np.dtype[Any]) -> tuple[Device, Launch]:
    choices = choices_by_dtype(asked)
    choice = target, text = chosen(asked, choices, dtype.name)
    device = _opened(asked, target)
    alike = [name for name, of_dtype in choices.items() if first_there(of_dtype) == choice]
    with _lock:
        key = (id(device), text.kernel, text.variant, dtype.name)
        ready = _launches.get(key)
        if ready is None:
            with surroundings.opening():
                ready = _launches[key] = device, plugins.checked_launch(device.prepare(text, dtype))
        _ready[asked, dtype] = ready
        # What is asked for has one shortcut: that of its first dtype, for all that are computed where that is.
        if next(iter(choices)) in alike and isinstance(device, HostDevice):
            shortcut = device.shortcut(text, alike)
            if shortcut is not None:
                shortcuts[asked] = shortcut
    return ready


def _opened(asked: Asked, target: Target) -> Device:
    """The device of a target, opened at the first time."""
    backend, where, count = asked[1], target.name, thread_count(asked)
    if backend in _broken_by_fork:
        raise BackendUnavailable(
            f"{backend} was used before this process was forked, and its threads or its driver stayed in the parent",
            'start such a process by multiprocessing.get_context("spawn")',
        )
    with _lock, surroundings.opening():
        device = _devices.get((backend, where, count))
        if device is None:
            opened = plugins.checked_device(registry.backend(backend).open(where, count))
            device = _devices.setdefault((backend, where, count), opened)  # a call within may have opened it too
    return device


def share(backend: str, target: str, threads: int, device: Device) -> None:
    """Let calls use a device that was opened elsewhere with so many threads."""
    with _lock:
        _devices[backend, target, threads] = device


def share_launch(device: Device, text: KernelText, dtype: np.dtype[Any], launch: Launch) -> None:
    """Let calls use a kernel that was prepared on a device elsewhere."""
    with _lock:
        _launches[id(device), text.kernel, text.variant, dtype.name] = device, launch


def _run(device: Device, launch: Launch, arrays: Sequence[Placed], outputs: int, sizes: tuple[Any, ...]) -> None:
    """Run it on its inputs and, behind them, as many outputs."""
    if isinstance(device, HostDevice):
        launch(arrays, sizes)
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
        buffers = device.place(launch, sizes, arrays, outputs=outputs)
        launch(buffers, sizes)
        device.wait()
        for buffer, output in list(zip(buffers, arrays, strict=True))[-outputs:]:
            if not isinstance(output, Adopted):
                device.download(buffer, output)
    finally:
        try:
            for buffer in buffers:
                device.release(buffer)
        finally:
            computing.discard(this)


_of_thread = local()
"""`computing`: the devices on which calls of this thread are under way, by `id`."""
