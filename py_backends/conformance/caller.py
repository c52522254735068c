"""A worker that makes calls too: `python -m py_backends.conformance.caller`.

One process for both, so that what takes long to compile may be compiled once.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import cattrs
import numpy as np

from py_backends import api, calls, registry
from py_backends.conformance.calls import THREADS, Call, Misfit, Subject
from py_backends.conformance.memory import Laid, with_neighbour
from py_backends.conformance.trials import reference
from py_backends.contract import Array, Device, Problem
from py_backends.harness.check import judge
from py_backends.harness.worker import Session, serve


class Caller(Session):
    """What the worker answers beyond what every worker does. Calls share its device and what it has compiled."""

    def open(self, descriptors: list[int], backend: str, target: str, threads: int) -> dict[str, Any]:
        """As a session does. Calls with other numbers of threads open devices of their own, which keep no times."""
        answer = super().open(descriptors, backend, target, threads)
        calls.share(backend, target, threads, self._device)
        return answer

    def prepare(self, descriptors: list[int], kernel: str, variant: str, dtype: str) -> dict[str, Any]:
        """As a session does."""
        answer = super().prepare(descriptors, kernel, variant, dtype)
        text = registry.kernel_texts(kernel, self._backend)[variant]
        calls.share_launch(self._device, text, np.dtype(dtype), self._launches[kernel, variant, dtype])
        return answer

    def call(self, descriptors: list[int], subject: dict[str, Any], calls: list[dict[str, Any]]) -> dict[str, Any]:
        """Make calls, one after the other; which of them went wrong, and how."""
        whose = cattrs.structure(subject, Subject)
        for at, call in enumerate(calls):
            made = cattrs.structure(call, Call)
            if wrong := perform_at(self._device, whose, made) if made.to_device else perform(whose, made):
                return {"at": at, "wrong": wrong}
        return {"at": None, "wrong": None}

    def together(self, descriptors: list[int], subject: dict[str, Any], calls: list[dict[str, Any]]) -> dict[str, Any]:
        """Make calls from several threads at once, each thread its share; the first that went wrong."""
        whose = cattrs.structure(subject, Subject)
        made = [cattrs.structure(call, Call) for call in calls]
        perform(whose, made[0])  # so that what is prepared once is there
        with ThreadPoolExecutor(THREADS) as pool:
            shares = [made[thread::THREADS] for thread in range(THREADS)]
            found = list(pool.map(lambda share: [perform(whose, call) for call in share], shares))
        wrong = {
            thread + THREADS * position: reason
            for thread, share in enumerate(found)
            for position, reason in enumerate(share)
            if reason
        }
        first = min(wrong, default=None)
        return {"at": first, "wrong": None if first is None else wrong[first]}


@dataclass
class _Arrays:
    """The arrays of one call, the memory they lie in, and what may change of it."""

    inputs: list[Any]
    out: Any
    memory: list[Array]


def perform(subject: Subject, call: Call) -> str | None:
    """Make a call; what was wrong with it, or None.

    One that does not fit comes after one that does: what is kept from that one must not take the other.
    """
    problem, dtype = registry.problem(subject.kernel), np.dtype(subject.dtype)
    if call.unfit or call.misfit:
        perform(subject, replace(call, unfit=None, misfit=None))
    values = _values(problem, call, dtype)
    arrays = _arranged(problem, call, dtype, values)
    before = [memory.copy() for memory in arrays.memory]
    expected = _refusal(problem, call)
    try:
        result = _function(subject)(*arrays.inputs, threads=call.threads, out=arrays.out)
    except (TypeError, ValueError) as error:
        if not isinstance(error, expected or ()):
            return f"it raised {type(error).__name__}: {error}"
        same = all(map(np.array_equal, before, arrays.memory))
        return None if same else "it refused the call, and wrote all the same"
    if expected:
        return f"it took the call, which must end as {expected.__name__}"
    return _wrong_result(problem, call, values, arrays, result) or _touched(before, arrays)


def perform_at(device: Device, subject: Subject, call: Call) -> str | None:
    """Make a call whose result stays on the device, and pass it back in, twice; what was wrong with it, or None.

    A device elsewhere whose library has no arrays has to refuse it.
    """
    problem, dtype = registry.problem(subject.kernel), np.dtype(subject.dtype)
    run, inputs = _function(subject), _values(problem, call, dtype)
    refused = not device.on_cpu and device.new((1,), dtype) is None
    arrays = _Arrays(inputs, None, [array.view(np.uint8) for array in inputs])
    before = [memory.copy() for memory in arrays.memory]
    try:
        first = run(*inputs)
        there = run(*inputs, to="device")
        values = [first, *inputs[1:]]
        for _ in range(2):  # the second one would see that the first has changed what lies there
            result = run(there, *inputs[1:])
            if wrong := _wrong_result(problem, call, values, arrays, result) or _touched(before, arrays):
                return f"{wrong}, from a result on the device"
    except (TypeError, ValueError) as error:
        return None if refused and isinstance(error, ValueError) else f"it raised {type(error).__name__}: {error}"
    return "it has no arrays on its device, and left a result there" if refused else None


def _function(subject: Subject) -> Callable[..., Any]:
    """The Python function of a text on its target."""
    run = api.function(subject.kernel)
    return partial(run, backend=subject.backend, variant=subject.variant, target=subject.target)


def _values(problem: Problem, call: Call, dtype: np.dtype[Any]) -> list[Array]:
    generator = np.random.default_rng(call.seed)
    shapes = problem.shapes(call.sizes)[:-1]
    if not call.values:
        values = [generator.standard_normal(shape, np.float64).astype(dtype) for shape in shapes]
    else:
        with np.errstate(over="ignore"):
            pool = np.array(call.values, np.float64).astype(dtype)
        values = [generator.choice(pool, shape) for shape in shapes]
    return _first_for_others(call, values)


def _first_for_others(call: Call, inputs: list[Any]) -> list[Any]:
    """The inputs, of which all that have the first one's shape are the first one where the call wants it so."""
    return [inputs[0] if call.twice and each.shape == inputs[0].shape else each for each in inputs]


def _given(values: list[Array], misfit: Misfit | None) -> list[Array]:
    """The inputs as they are passed: one of them does not fit where the call wants it so."""
    given = list(values)
    if misfit is not None:
        array = given[misfit.at]
        longer = [(0, int(dimension == misfit.dimension)) for dimension in range(array.ndim)]
        given[misfit.at] = {
            "dtype": array.astype(_other(array.dtype)),
            "size": np.pad(array, longer),
            "dimensions": array[..., np.newaxis],
        }[misfit.what]
    return given


def _other(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(np.float32 if dtype == np.float64 else np.float64)


def _arranged(problem: Problem, call: Call, dtype: np.dtype[Any], values: list[Array]) -> _Arrays:
    layouts = call.layouts + call.layouts[-1:] * (len(values) - len(call.layouts))
    given = _given(values, call.misfit)
    laid = [Laid(array.shape, array.dtype, layout) for array, layout in zip(given, layouts, strict=True)]
    for each, array in zip(laid, given, strict=True):
        each.fill(array)
    inputs, memory = [each.array for each in laid], [each.bytes for each in laid]
    shape = problem.shapes(call.sizes)[-1]
    if call.shares is not None:
        room, inputs[call.shares], out = with_neighbour(values[call.shares].shape, shape, call.shift, dtype)
        inputs[call.shares][...] = values[call.shares]
        memory[call.shares] = room
        return _Arrays(_first_for_others(call, inputs), out, memory)
    inputs = _first_for_others(call, inputs)
    if call.out is None:
        return _Arrays(inputs, None, memory)
    own = Laid(*_unfit(call, shape, dtype), call.out)
    own.array.flags.writeable = call.unfit != "read-only"
    return _Arrays(inputs, [] if call.unfit == "no array" else own.array, [*memory, own.bytes])


def _unfit(call: Call, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and dtype of `out`, wrong where the call wants it so."""
    if call.unfit == "size":
        shape = (*shape[:-1], shape[-1] + 1) if shape else (2,)
    if call.unfit == "dimensions":
        shape = (*shape, 1)
    return shape, _other(dtype) if call.unfit == "dtype" else dtype


def _refusal(problem: Problem, call: Call) -> type[Exception] | None:
    """What the call has to end with; None where it has to be right."""
    if call.misfit is not None:
        return TypeError if call.misfit.what == "dtype" else ValueError
    if call.unfit is not None:
        return TypeError if call.unfit in {"dtype", "no array"} else ValueError
    if call.shares is None or problem.in_place:
        return None
    shapes = problem.shapes(call.sizes)
    shared, own = (int(np.prod(shape)) for shape in (shapes[call.shares], shapes[-1]))
    return ValueError if -own < call.shift < shared and own and shared else None


def _wrong_result(problem: Problem, call: Call, values: list[Array], arrays: _Arrays, result: Any) -> str | None:
    if arrays.out is not None and result is not arrays.out:
        return "it returned another array than out"
    shape, dtype = problem.shapes(call.sizes)[-1], values[0].dtype
    if not isinstance(result, np.ndarray) or (result.shape, result.dtype) != (shape, dtype):
        return f"it returned {type(result).__name__} {getattr(result, 'shape', '')} {getattr(result, 'dtype', '')}"
    return judge(np.asarray(result, order="C"), reference(problem, values, call.sizes), problem.rule).reason


def _touched(before: list[Array], arrays: _Arrays) -> str | None:
    """Whether memory changed that is not the output's."""
    for at, (old, memory) in enumerate(zip(before, arrays.memory, strict=True)):
        now = memory
        if arrays.out is not None and np.may_share_memory(memory, arrays.out):
            now = memory.copy()
            _same_place(arrays.out, memory, now)[...] = _same_place(arrays.out, memory, old)
        if not np.array_equal(old, now):
            return "it changed an input" if at < len(arrays.inputs) else "it wrote beside the elements of out"
    return None


def _same_place(array: Array, memory: Array, other: Array) -> Array:
    """What lies in `other` as `array` does in `memory`."""
    offset = array.__array_interface__["data"][0] - memory.ctypes.data
    return np.ndarray(array.shape, array.dtype, other, offset, array.strides)


if __name__ == "__main__":
    serve(Caller())
