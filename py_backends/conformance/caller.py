"""A worker that makes calls too: `python -m py_backends.conformance.caller`.

One process for both, so that what takes long to compile may be compiled once.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import cattrs
import numpy as np

from py_backends import _discovery, _functions
from py_backends._contract import Array, Problem
from py_backends.conformance.calls import THREADS, Call, Subject
from py_backends.conformance.memory import Laid, with_neighbour
from py_backends.harness.check import judge
from py_backends.harness.worker import Session, serve


class Caller(Session):
    """What the worker answers beyond what every worker does."""

    def call(self, descriptors: list[int], subject: dict[str, Any], calls: list[dict[str, Any]]) -> dict[str, Any]:
        """Make calls, one after the other; which of them went wrong, and how."""
        whose = cattrs.structure(subject, Subject)
        for at, call in enumerate(calls):
            if wrong := perform(whose, cattrs.structure(call, Call)):
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
    """Make a call; what was wrong with it, or None."""
    problem, dtype = _discovery.problem(subject.kernel), np.dtype(subject.dtype)
    values = _values(problem, call, dtype)
    arrays = _arranged(problem, call, dtype, values)
    before = [memory.copy() for memory in arrays.memory]
    expected = _refusal(problem, call)
    try:
        result = _functions.function(subject.kernel)(
            *arrays.inputs,
            backend=subject.backend,
            variant=subject.variant,
            target=subject.target,
            threads=call.threads,
            out=arrays.out,
        )
    except (TypeError, ValueError) as error:
        if not isinstance(error, expected or ()):
            return f"it raised {type(error).__name__}: {error}"
        same = all(map(np.array_equal, before, arrays.memory))
        return None if same else "it refused the call, and wrote all the same"
    if expected:
        return f"it took the call, which must end as {expected.__name__}"
    return _wrong_result(problem, call, values, arrays, result) or _touched(before, arrays)


def _values(problem: Problem, call: Call, dtype: np.dtype[Any]) -> list[Array]:
    generator = np.random.default_rng(call.seed)
    shapes = problem.shapes(call.sizes)[:-1]
    if not call.values:
        return [generator.standard_normal(shape, np.float64).astype(dtype) for shape in shapes]
    with np.errstate(over="ignore"):
        pool = np.array(call.values, np.float64).astype(dtype)
    return [generator.choice(pool, shape) for shape in shapes]


def _arranged(problem: Problem, call: Call, dtype: np.dtype[Any], values: list[Array]) -> _Arrays:
    layouts = call.layouts + call.layouts[-1:] * (len(values) - len(call.layouts))
    laid = [Laid(array.shape, dtype, layout) for array, layout in zip(values, layouts, strict=True)]
    for each, array in zip(laid, values, strict=True):
        each.fill(array)
    inputs, memory = [each.array for each in laid], [each.bytes for each in laid]
    shape = problem.shapes(call.sizes)[-1]
    if call.shares is not None:
        room, inputs[call.shares], out = with_neighbour(values[call.shares].shape, shape, call.shift, dtype)
        inputs[call.shares][...] = values[call.shares]
        memory[call.shares] = room
        return _Arrays(inputs, out, memory)
    if call.out is None:
        return _Arrays(inputs, None, memory)
    own = Laid(*_unfit(call, shape, dtype), call.out)
    own.array.flags.writeable = call.unfit != "read-only"
    return _Arrays(inputs, [] if call.unfit == "no array" else own.array, [*memory, own.bytes])


def _unfit(call: Call, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and dtype of `out`, wrong where the call wants it so."""
    if call.unfit == "size":
        shape = (*shape[:-1], shape[-1] + 1)
    if call.unfit == "dimensions":
        shape = (*shape, 1)
    other = np.dtype(np.float32 if dtype == np.float64 else np.float64)
    return shape, other if call.unfit == "dtype" else dtype


def _refusal(problem: Problem, call: Call) -> type[Exception] | None:
    """What the call has to end with; None where it has to be right."""
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
    return judge(np.ascontiguousarray(result), problem.reference(values), problem.rule).reason


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
