"""What the Python functions are tried with: how inputs lie in memory, what `out` is, who calls at the same time.

These are data, too. `caller` makes the calls in a process of its own, so that a crash is a failure with its reason.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from py_backends.conformance.sizes import fitting, middling, ragged, whole
from py_backends.conformance.trials import Case, Kind, named, of_kernel
from py_backends.contract import Problem
from py_backends.results.spec import Sizes

THREADS = 8
"""How many threads call at the same time."""

Fault = Literal["size", "dimensions", "dtype", "read-only", "no array"]
"""What makes an array unfit: an element or a dimension too many, or another dtype than the others have."""


@dataclass(frozen=True)
class Layout:
    """How an array lies in memory.

    order: `C`, or `F` for columns first.
    steps: of the last dimensions, in elements: -1 is reversed, 2 leaves one out.
    padding: elements between the end of a row and the next one.
    offset: bytes beyond an address that is aligned to a cache line.
    wall: whether it ends where the accessible memory ends. Then that decides where it begins.
    """

    order: Literal["C", "F"] = "C"
    steps: tuple[int, ...] = ()
    padding: int = 0
    offset: int = 0
    read_only: bool = False
    wall: bool = False


IN_ORDER = Layout()
LAYOUTS: dict[str, Layout] = {
    "in order": IN_ORDER,
    "columns first": Layout("F"),
    "reversed": Layout(steps=(-1,)),
    "reversed in all dimensions": Layout(steps=(-1, -1, -1)),
    "every second": Layout(steps=(2,)),
    "every third row": Layout(steps=(3, 1)),
    "part of wider rows": Layout(padding=5),
    "beginning at the second element": Layout(offset=8),
    "misaligned": Layout(offset=1),
    "misaligned by half an element": Layout(offset=2),
    "read-only": Layout(read_only=True),
    "columns first, every second, misaligned": Layout("F", (2,), 3, 1),
}


@dataclass(frozen=True)
class Misfit:
    """What is wrong with one array.

    at: the input that it is; None for `out`.
    fault: what is wrong; only `out` may be read-only or no array at all.
    dimension: the one that is too long.
    """

    at: int | None
    fault: Fault
    dimension: int = -1


READ_ONLY, NO_ARRAY = Misfit(None, "read-only"), Misfit(None, "no array")


@dataclass(frozen=True)
class Call(Case):
    """A case that is one call of a kernel's Python function.

    layouts: those of the inputs; the last one counts for all further inputs.
    out: how it lies; None for a call without.
    shares: the input in whose memory `out` lies; None where it has its own.
    shift: how many elements of that input `out` begins after its first; if negative, how many of its own before.
    misfit: what is wrong with an array, if anything.
    twice: whether all inputs of the first one's shape are the first one itself.
    to_device: whether the result stays on the device, and is then the first input of a further call.
    seed: the one of the inputs.
    values: the inputs are drawn from these, or from a normal distribution where there are none.
    """

    layouts: tuple[Layout, ...] = (IN_ORDER,)
    out: Layout | None = None
    shares: int | None = None
    shift: int = 0
    misfit: Misfit | None = None
    twice: bool = False
    to_device: bool = False
    threads: int | None = None
    seed: int = 1
    values: tuple[float, ...] = ()


def _layouts(problem: Problem) -> Iterator[Call]:
    arrays = len(problem.inputs)
    for sizes, (name, layout) in itertools.product(middling(problem)[:2], LAYOUTS.items()):
        yield Call(f"{named(sizes)}, all {name}", sizes, (layout,))
        for at in range(arrays):
            alone = (*[IN_ORDER] * at, layout, *[IN_ORDER] * (arrays - at - 1))
            yield Call(f"{named(sizes)}, input {at} {name}", sizes, alone)


def _out(problem: Problem) -> Iterator[Call]:
    for sizes, (name, layout) in itertools.product(middling(problem)[:2], LAYOUTS.items()):
        if not layout.read_only:
            yield Call(f"{named(sizes)}, {name}", sizes, out=layout)


def _walls(problem: Problem) -> Iterator[Call]:
    """A result would not show this: what is read too far is not used, or is used for what is not written."""
    wall = Layout(wall=True)
    for sizes in dict.fromkeys((*middling(problem), *problem.edges, *of_kernel(problem.name).of_several_pages)):
        yield Call(named(sizes), sizes, (wall,), out=wall)


def _in_place(problem: Problem) -> Iterator[Call]:
    """`out` is an input. A kernel that cannot work in place has to refuse it."""
    if not is_plain(problem):
        return
    seeds = {"": 1, " again": 2}
    for sizes, at, (again, seed) in itertools.product(_square(problem), range(len(problem.inputs)), seeds.items()):
        yield Call(f"{named(sizes)}, into input {at}{again}", sizes, shares=at, seed=seed)


def _overlapping(problem: Problem) -> Iterator[Call]:
    if not is_plain(problem):
        return
    for sizes in _square(problem):
        for at, shift in itertools.product(range(len(problem.inputs)), (-16, -3, -1, 1, 2, 7, 16)):
            yield Call(f"{named(sizes)}, {shift} elements from input {at}", sizes, shares=at, shift=shift)
        elements = math.prod(_shapes(problem, sizes)[0])
        for shift in (-elements, elements):
            yield Call(f"{named(sizes)}, just beside input 0, {shift}", sizes, shares=0, shift=shift)


def is_plain(problem: Problem) -> bool:
    """Whether `out` is one array, of which any input may be a part."""
    return problem.outputs == 1 and problem.one_dtype


def _square(problem: Problem) -> list[Sizes]:
    """Sizes at which `out` is as large as an input."""
    return fitting(problem, [(size,) * len(problem.dimensions) for size in (33, 70)])


def _shapes(problem: Problem, sizes: Sizes) -> tuple[tuple[int, ...], ...]:
    """The shapes at sizes that fit, with the numbers that the first case of a kind has."""
    return problem.shapes(whole(problem, sizes) or sizes)


def _unfit_out(problem: Problem) -> Iterator[Call]:
    for sizes, fault in itertools.product(middling(problem)[:2], get_args(Fault)):
        yield Call(f"{named(sizes)}, another {fault}", sizes, out=IN_ORDER, misfit=Misfit(None, fault))


def _unfit_inputs(problem: Problem) -> Iterator[Call]:
    """Calls with an output and without, since each may check its inputs in another place."""
    for sizes, misfit, out in itertools.product(middling(problem)[:2], _misfits(problem), (None, IN_ORDER)):
        name = f"{named(sizes)}, another {misfit.fault} of input {misfit.at}"
        name += f" in dimension {misfit.dimension}" if misfit.fault == "size" else ""
        yield Call(f"{name}{', with out' if out else ''}", sizes, misfit=misfit, out=out)


def _misfits(problem: Problem) -> Iterator[Misfit]:
    """For each input, the dimensions that other inputs fix, or the problem."""
    of_run = [at for at in range(len(problem.inputs)) if problem.own_dtype(at) is None]
    for at in range(len(problem.inputs)):
        if at not in of_run or len(of_run) > 1:  # else it would be another dtype that is taken
            yield Misfit(at, "dtype")
        yield Misfit(at, "dimensions")
    shapes = (problem.size_of_each_dimension() or ())[: len(problem.inputs)]
    every = list(itertools.chain.from_iterable(shapes))
    for at, shape in enumerate(shapes):
        for dimension, size in enumerate(shape):
            if size < 0 or every.count(size) > 1:  # else it would be another size that fits
                yield Misfit(at, "size", dimension)


def _twice(problem: Problem) -> Iterator[Call]:
    for sizes in _square(problem):
        first, *others = _shapes(problem, sizes)[: len(problem.inputs)]
        if is_plain(problem) and first in others:
            yield Call(named(sizes), sizes, twice=True)
            yield Call(f"{named(sizes)}, with out", sizes, twice=True, out=IN_ORDER)
            yield Call(f"{named(sizes)}, into itself", sizes, twice=True, shares=0)


def _to_device(problem: Problem) -> Iterator[Call]:
    """Small whole numbers, whose result is exact and so the same on the device and the host. Inputs have its dtype."""
    same = tuple(name for name in problem.dtypes if problem.result_dtype(np.dtype(name)).name == name)
    for sizes in _square(problem)[:1]:
        shapes = _shapes(problem, sizes)
        if is_plain(problem) and shapes[0] == shapes[-1]:
            yield Call(named(sizes), sizes, to_device=True, values=tuple(range(-3, 4)), dtypes=same)


def _nothing(problem: Problem) -> Iterator[Call]:
    for sizes in itertools.product((0, 3), repeat=len(problem.dimensions)):
        if 0 in sizes:
            yield Call(named(sizes), sizes)
            yield Call(f"{named(sizes)}, with out", sizes, out=IN_ORDER)


def _repeats(problem: Problem) -> Iterator[Call]:
    first = _square(problem)[:1]
    yield from (Call(name, sizes) for name in ("the first", "the second") for sizes in first)
    for number, sizes in enumerate(ragged(problem, np.random.default_rng(4), 50, 97), 3):
        yield Call(f"call {number}, {named(sizes)}", sizes, seed=number)
    yield from (Call("the hundredth, as the first", sizes) for sizes in first)


def _numbers_of_threads(problem: Problem) -> Iterator[Call]:
    for threads, sizes in itertools.product((1, 2, 3), middling(problem)[:3]):
        yield Call(f"{threads} threads, {named(sizes)}", sizes, threads=threads)


def _at_once(problem: Problem) -> Iterator[Call]:
    """Equally many calls for each thread, with other sizes and values, by turns on one thread and on the usual number.

    At first each needs as much memory as it ever will. A library may have one number of threads for its whole process,
    which calls that want different ones must not change under one another.
    """
    dimensions = len(problem.dimensions)
    most = (*[2] * (dimensions - 2), 1, 3000)
    deep = most[len(most) - dimensions :]
    numbers = itertools.cycle((None, 1))
    for thread in range(THREADS):
        yield Call(f"first call {thread}, {named(deep)}", deep, seed=thread, threads=next(numbers))
    for call, sizes in enumerate(ragged(problem, np.random.default_rng(5), 40, 6 * THREADS)):
        yield Call(f"call {call}, {named(sizes)}", sizes, seed=call, threads=next(numbers))


def _kind(name: str, protects: str, calls: Callable[[Problem], Iterator[Call]], **how: Any) -> Kind[Call]:
    """All calls of a kind, on targets that have their device, since the functions do not emulate."""
    return Kind(name, protects, calls, emulated=False, interpreted=None, in_one_dtype=False, **how)


KINDS = (
    _kind(
        "layouts",
        "inputs that are strided, reversed, offset, misaligned, read-only or stored by columns",
        _layouts,
        in_others=36,
    ),
    _kind("out", "an output that lies in any way, with nothing touched around it", _out),
    _kind("walls", "elements read or written behind the end of an array, in inaccessible memory", _walls),
    _kind("in-place", "an output that is an input: right, or refused where the kernel cannot", _in_place),
    _kind("overlapping", "an output that shares a part of an input's memory", _overlapping),
    _kind("unfit-out", "outputs of a wrong size or dtype, and read-only ones, which are refused", _unfit_out),
    _kind("unfit-inputs", "inputs of mixed dtypes or of shapes that do not fit, which are refused", _unfit_inputs),
    _kind("one-array-twice", "an array that is passed as two inputs", _twice),
    _kind("to-device", "a result that is left on its device, and passed back in", _to_device),
    _kind("nothing-called", "empty arrays", _nothing),
    _kind("calls-repeated", "the second call, and the hundredth after others of other sizes", _repeats),
    _kind(
        "numbers-of-threads",
        "one, two and three threads, of which no library keeps the number",
        _numbers_of_threads,
        costly=True,
    ),
    _kind(
        "threads-at-once", f"memory that {THREADS} threads share which call at the same time", _at_once, together=True
    ),
)
