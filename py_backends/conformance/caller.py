"""A worker that also makes calls: `python -m py_backends.conformance.caller`.

One process does both, so that slow compilations happen only once. A crash of it becomes a failure with its reason.
"""

from __future__ import annotations

import ctypes
import math
import mmap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from py_backends import registry
from py_backends.conformance.calls import IN_ORDER, NO_ARRAY, READ_ONLY, Call, Layout, Misfit
from py_backends.conformance.trials import Inputs, drawn_from, references, with_own_dtypes
from py_backends.contract import Array, Device, Problem
from py_backends.errors import BrokenKernel
from py_backends.functions import api
from py_backends.number_formats import number_format
from py_backends.results.check import check_outputs
from py_backends.results.spec import Sizes
from py_backends.wording import in_one_line
from py_backends.workers.serve import serve
from py_backends.workers.session import Session

_LINE = 64
_MARGIN = 256
"""How many bytes are watched before and behind an array."""
_NAN = 0xFF
"""A floating-point number of such bytes is NaN, and an integer of them is -1."""


class Caller(Session):
    """The requests that this worker answers and others do not."""

    def open(self, descriptors: list[int], backend: str, target: str, threads: int) -> dict[str, Any]:
        """Open a device as a session does.

        Calls with other numbers of threads open devices of their own, which keep no times.
        """
        self._target = target
        return super().open(descriptors, backend, target, threads)

    def call(
        self, descriptors: list[int], kernel: str, variant: str, dtype: str, calls: list[dict[str, Any]], threads: int
    ) -> dict[str, Any]:
        """Make calls one after the other until one goes wrong. Say which one (`at`) and how; None if none does.

        `broken` says why the problem itself has no right answer, in place of both.

        Several threads make them at once, each thread its share. Then it is the first wrong one of all.
        """
        run = partial(api.function(kernel), backend=self._backend, variant=variant, target=self._target)
        what = run, registry.problem(kernel), np.dtype(dtype)
        every = msgspec.convert(calls, list[Call])
        wrong: dict[int, str] = {}

        def make_share(first: int) -> None:
            for at in range(first, len(every), threads):
                call = every[at]
                before = _threads_of_libraries() if call.threads and threads == 1 else {}
                reason = perform_at(self._device, *what, call) if call.to_device else perform(*what, call)
                if reason := reason or _threads_that_differ(before):
                    wrong[at] = reason
                    return

        try:
            if threads == 1:
                make_share(0)  # in the thread that opened the device
            else:
                self.call([], kernel, variant, dtype, calls[:1], threads=1)  # so what is prepared only once is there
                with ThreadPoolExecutor(threads) as pool:
                    list(pool.map(make_share, range(threads)))
        except BrokenKernel as broken:
            return {"broken": broken.reason, "fix": broken.fix}
        first = min(wrong, default=None)
        return {"at": first, "wrong": None if first is None else wrong[first]}


def _threads_of_libraries() -> dict[str, int]:
    """The number of threads of each library that has one for the whole process, by the library's file."""
    import threadpoolctl  # here, since it sets a variable of a library that a backend may load

    return {library["filepath"]: library["num_threads"] for library in threadpoolctl.threadpool_info()}


def _threads_that_differ(before: dict[str, int]) -> str | None:
    """A library whose number of threads a call has left as the call needed it. What was loaded since has no before."""
    now = _threads_of_libraries() if before else {}
    for file, threads in before.items():
        if threads != now.get(file, threads):
            return f"it left {Path(file).name} with {now[file]} threads for all callers, which had {threads} before"
    return None


def perform(run: Callable[..., Any], problem: Problem, dtype: np.dtype[Any], call: Call) -> str | None:
    """Call a Python function with one source on one target. Say what was wrong, or None.

    A call that does not fit follows one that does. What is kept from the first must not accept the second.
    """
    if call.misfit:
        perform(run, problem, dtype, replace(call, misfit=None))
    arrays, expected = Arrays.of(problem, dtype, call), _must_raise(problem, call)
    try:
        result = run(*arrays.inputs, threads=call.threads, out=arrays.out, **_numbers(problem, call))
    except (TypeError, ValueError) as error:
        return arrays.wrong_refusal(error, expected)
    if expected:
        return f"it accepted the call, which must end as {expected.__name__}"
    return arrays.wrong_result(problem, call, dtype, arrays.values, result)


def perform_at(
    device: Device, run: Callable[..., Any], problem: Problem, dtype: np.dtype[Any], call: Call
) -> str | None:
    """Make a call whose result stays on the device, and pass it back in, twice. Say what was wrong, or None.

    A device with memory of its own, whose library has no arrays, has to refuse it.
    """
    arrays = Arrays.of(problem, dtype, call)
    expected = ValueError if not device.on_cpu and device.new((1,), dtype) is None else None
    try:
        run = partial(run, **_numbers(problem, call))
        first = run(*arrays.inputs)
        there = run(*arrays.inputs, to="device")
        values = [first, *arrays.values[1:]]
        for _ in range(2):  # the second call would see if the first changed what is there
            if wrong := arrays.wrong_result(problem, call, dtype, values, run(there, *arrays.inputs[1:])):
                return f"{wrong}, from a result on the device"
    except BrokenKernel:
        raise
    except (TypeError, ValueError) as error:
        return arrays.wrong_refusal(error, expected)
    return "it has no arrays on its device, and left a result there" if expected else None


def _numbers(problem: Problem, call: Call) -> dict[str, Any]:
    """The numbers of a call that belong to no array, by name."""
    return dict(zip(problem.numbers, call.sizes[len(problem.dimensions) :], strict=True))


def _must_raise(problem: Problem, call: Call) -> type[Exception] | None:
    """The error that the call has to end with; None where it has to succeed."""
    if call.misfit is not None:
        return TypeError if call.misfit.fault in {"dtype", "no array"} else ValueError
    if call.shares is None or problem.in_place:
        return None
    *inputs, own = (math.prod(shape) for shape in problem.shapes(call.sizes))
    shared = inputs[call.shares]
    return ValueError if -own < call.shift < shared and own and shared else None


@dataclass
class Arrays:
    """The arrays of one call, and the memory that they lie in, which is watched.

    values: those of the inputs, before anything is wrong with one.
    inputs: as they are passed.
    outs: those that are passed as `out`, one for each output; none for a call without.
    several: whether `out` is a tuple of them.
    memory: the bytes around each input, and around those of `outs` that have memory of their own.
    """

    values: Inputs
    inputs: Inputs
    outs: list[Any]
    several: bool
    memory: list[Array]

    def __post_init__(self) -> None:
        self._before, self._outs_before = [memory.copy() for memory in self.memory], list(map(np.copy, self.outs))

    @property
    def out(self) -> Any:
        """What is passed as `out`."""
        if not self.outs:
            return None
        return tuple(self.outs) if self.several else self.outs[0]

    @classmethod
    def of(cls, problem: Problem, dtype: np.dtype[Any], call: Call) -> Arrays:
        """Lay out the arrays of a call."""
        count, generator = len(problem.inputs), np.random.default_rng(call.seed)
        every = list(zip(problem.shapes(call.sizes), problem.array_dtypes(dtype), strict=True))
        drawn = drawn_from(call.values, [shape for shape, _ in every[:count]], dtype, generator)
        values = _first_for_others(call, with_own_dtypes(problem, call.sizes, dtype, drawn, generator))
        layouts = (*call.layouts, *call.layouts[-1:] * len(values))
        given = [_spoilt(array, at, call.misfit) for at, array in enumerate(values)]
        laid = [lay(array, layout) for array, layout in zip(given, layouts, strict=False)]
        outs: list[Any] = []
        if call.shares is not None:
            ((shape, result),) = every[count:]
            reach = (abs(call.shift) + math.prod(shape)) * max(dtype.itemsize, result.itemsize)
            laid[call.shares] = lay(values[call.shares], IN_ORDER, _MARGIN + reach)
            outs = [laid[call.shares].beside(call.shift, shape, result)]
        elif call.out is not None:
            for shape, result in every[count:]:
                poisoned = np.full(shape, number_format(result).poison, result)
                misfit = None if outs else call.misfit  # of the first one alone
                laid.append(lay(_spoilt(poisoned, None, misfit), call.out))
                outs.append([] if misfit == NO_ARRAY else laid[-1].array)
                laid[-1].array.flags.writeable = misfit != READ_ONLY
        inputs = _first_for_others(call, [each.array for each in laid[:count]])
        return cls(values, inputs, outs, problem.outputs > 1, [each.memory for each in laid])

    def wrong_refusal(self, error: Exception, expected: type[Exception] | None) -> str | None:
        """What is wrong after a call that raised. None where it had to raise, and changed nothing."""
        if expected is None or not isinstance(error, expected):
            return f"it raised {type(error).__name__}: {in_one_line(str(error))}"
        return None if self._first_changed() is None else "it refused the call, but wrote to the output"

    def wrong_result(
        self, problem: Problem, call: Call, dtype: np.dtype[Any], values: Inputs, result: Any
    ) -> str | None:
        """What is wrong with the results of a call of these values, or with memory outside the outputs.

        Afterwards `outs` are as they were before the call.
        """
        results = result if problem.outputs > 1 else (result,)
        if not isinstance(results, tuple) or len(results) != problem.outputs:
            return f"it returned {type(result).__name__}, and has {problem.outputs} outputs"
        if any(made is not out for made, out in zip(results, self.outs, strict=False)):
            return "it returned another array than out"
        outputs = slice(len(problem.inputs), None)
        wanted = zip(problem.shapes(call.sizes)[outputs], problem.array_dtypes(dtype)[outputs], strict=True)
        for made, (shape, of_output) in zip(results, wanted, strict=True):
            if not isinstance(made, np.ndarray) or (made.shape, made.dtype) != (shape, of_output):
                return f"it returned {type(made).__name__} {getattr(made, 'shape', '')} {getattr(made, 'dtype', '')}"
        answers = references(problem, values, call.sizes, dtype)
        if wrong := check_outputs([np.asarray(made, order="C") for made in results], answers, problem.rule).reason:
            return wrong
        for out, before in zip(self.outs, self._outs_before, strict=True):
            out[...] = before
        at = self._first_changed()
        if at is None:
            return None
        return "it changed an input" if at < len(self.inputs) else "it wrote beside the elements of out"

    def _first_changed(self) -> int | None:
        """The first memory that has changed since before the call."""
        pairs = enumerate(zip(self._before, self.memory, strict=True))
        return next((at for at, (before, now) in pairs if not np.array_equal(before, now)), None)


def _first_for_others(call: Call, inputs: Inputs) -> Inputs:
    """The inputs. If the call has `twice`, all of the first one's shape are the first one itself."""
    return [inputs[0] if call.twice and each.shape == inputs[0].shape else each for each in inputs]


def _spoilt(array: Array, at: int | None, misfit: Misfit | None) -> Array:
    """The array as it is passed at a place. At the misfit's place it has that fault."""
    if misfit is None or misfit.at != at:
        return array
    if misfit.fault == "dtype":
        return array.astype(number_format(array.dtype).mistaken_for)
    if misfit.fault == "dimensions":
        return array[..., np.newaxis]
    if misfit.fault == "size":
        array = np.atleast_1d(array)
        longer = np.zeros((array.ndim, 2), int)
        longer[misfit.dimension, 1] = 1
        return np.pad(array, longer)
    return array


class Laid(NamedTuple):
    """An array, the bytes of all the memory around it, and the index of its first byte in that."""

    array: Array
    memory: Array
    first: int

    def beside(self, shift: int, shape: Sizes, dtype: np.dtype[Any]) -> Array:
        """An array in the same memory. It begins `shift` elements of the other array after that one's first.

        If `shift` is negative, it begins so many of its own elements before.
        """
        size = (self.array.dtype if shift > 0 else dtype).itemsize
        return np.ndarray(shape, dtype, self.memory, self.first + shift * size)


def lay(values: Array, layout: Layout, margin: int = _MARGIN) -> Laid:
    """Lay an array out in memory of its own. Bytes of NaN stand before it, and behind it up to a wall."""
    steps = ((1,) * values.ndim + layout.steps)[len(layout.steps) :]
    counts = [length * abs(step) for length, step in zip(values.shape, steps, strict=True)]
    if counts:
        counts[-1] += layout.padding
    size = math.prod(counts) * values.itemsize
    if layout.wall:
        memory, first = _before_a_wall(margin + size), margin
    else:
        memory = np.full(2 * margin + _LINE + layout.offset + size, _NAN, np.uint8)
        first = margin + -(memory.ctypes.data + margin) % _LINE + layout.offset
    whole = memory[first : first + size].view(values.dtype).reshape(counts, order=layout.order)
    stepped: tuple[Any, ...] = (..., *(slice(None, None, step) for step in steps))  # with `...`, an element is an array
    begun: tuple[Any, ...] = (..., *(slice(length) for length in values.shape))
    array: Array = whole[stepped][begun]
    array[...] = values
    array.flags.writeable = not layout.read_only
    return Laid(array, memory, first)


def _before_a_wall(size: int) -> Array:
    """So many bytes of NaN at the end of a page. The next page is inaccessible."""
    readable = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = np.frombuffer(mmap.mmap(-1, readable + mmap.PAGESIZE), np.uint8)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    nothing_allowed = 0  # PROT_NONE in <sys/mman.h>
    if libc.mprotect(memory.ctypes.data + readable, mmap.PAGESIZE, nothing_allowed) != 0:
        raise OSError(ctypes.get_errno(), "mprotect")
    room: Array = memory[readable - size : readable]
    room.fill(_NAN)
    return room


if __name__ == "__main__":
    serve(Caller())
