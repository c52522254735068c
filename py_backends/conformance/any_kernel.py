"""The kinds that any kernel is tried with: sizes, places in memory, and sequences of calls."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from py_backends import registry
from py_backends.conformance.formats import FLOATS, IN_ALL_KINDS, NARROW, limits
from py_backends.conformance.sizes import EDGES, fits, middling, mixtures, ragged, sweeps, whole, work
from py_backends.conformance.trials import (
    OWN_INPUTS,
    Draw,
    Inputs,
    Kind,
    Shapes,
    Trial,
    blaming,
    drawn_by,
    drawn_from,
    has_own_draw,
    named,
    of_kernel,
    of_sizes,
    seeded,
    with_numbers,
)
from py_backends.contract import Problem
from py_backends.errors import BrokenKernel
from py_backends.results.spec import Sizes
from py_backends.wording import in_one_line

_MUCH_WORK = 3_000_000
"""How many operations plain Python does in a fraction of a second."""


def _shapes(problem: Problem) -> Iterator[Trial]:
    own = of_kernel(problem.name)
    known = (*own.few, *problem.edges, *(own.larger or (_halved(problem),)))
    all_quick = (*known, *sweeps(problem, EDGES), *mixtures(problem, EDGES, 60, 200_000, seed=1))
    fit = (sizes for sizes in all_quick if fits(problem, sizes))
    quick = [sizes for sizes in fit if sizes in known or work(problem, sizes) <= _MUCH_WORK]
    all_small = sweeps(problem, range(1, 301 if len(problem.dimensions) == 1 else 131))
    mixed = mixtures(problem, range(1, 300), 300, _MUCH_WORK // 3, seed=2)
    thorough = [sizes for sizes in (*all_small, *mixed) if sizes not in quick]
    yield from of_sizes([*quick, *thorough], thorough=thorough)


@cache
def taken(problem: Problem) -> Sizes | None:
    """The first sizes, with numbers, that a problem takes of all that any kernel is tried at. None where it takes none.

    Raises BrokenKernel if the `shapes` of a plug-in's problem fails.
    """
    for sizes in _tried(problem):
        with blaming(problem, sizes):
            found = whole(problem, sizes)
        if found is not None:
            return found
    return None


@cache
def refusal(kernel: str) -> str | None:
    """Why no case of a kernel can be chosen: its `shapes` fails, or takes none of the sizes. None where it takes some.

    A kernel without cases would look like one that passes.
    """
    problem = registry.problem(kernel)
    try:
        if taken(problem) is not None:
            return None
    except BrokenKernel as broken:
        return broken.reason
    every = list(dict.fromkeys(_tried(problem)))
    first = problem.whole_sizes(every[0])
    try:
        problem.shapes(first)
        why = named(first)
    except ValueError as refused:
        why = f"{named(first)}: {in_one_line(str(refused))}{registry.place(refused)}"
    return f"shapes refuses all of the {len(every)} sizes that were tried, the first {why}; name others in edges"


def _tried(problem: Problem) -> Iterator[Sizes]:
    """Sizes of which a problem has to take some: none of those of other kinds fits where none of these does."""
    yield from sweeps(problem, EDGES)
    yield from ((size,) * len(problem.dimensions) for size in EDGES)
    yield from problem.edges
    with blaming(problem, problem.default_sizes):
        halved = _halved(problem)
    yield halved


def _halved(problem: Problem) -> Sizes:
    """The default sizes, halved until they take little time and the problem has them."""
    sizes = problem.default_sizes[: len(problem.dimensions)]
    while max(sizes, default=0) > 1 and not (fits(problem, sizes) and work(problem, sizes) <= _MUCH_WORK):
        sizes = tuple(-(-size // 2) for size in sizes)
    return sizes


def _nothing(problem: Problem) -> Iterator[Trial]:
    every = itertools.product((0, 3), repeat=len(problem.dimensions))
    wide = itertools.product((0, 70), repeat=len(problem.dimensions))
    yield from of_sizes(sizes for sizes in (*every, *wide) if 0 in sizes)


def _alignment(problem: Problem) -> Iterator[Trial]:
    arrays = len(problem.shapes(problem.default_sizes))
    apart = [tuple(int(at == moved) for at in range(arrays)) for moved in range(arrays)]
    places = [*apart, (1,) * arrays, tuple(range(1, arrays + 1))]
    for sizes in dict.fromkeys((*middling(problem)[:2], *problem.edges[:1])):
        for by, place in itertools.product((1, 2, 3, 4, 5, 6, 7, 8, 12, 15), places):
            starts = tuple(by * one for one in place)
            name = f"{named(sizes)} beginning {', '.join(map(str, starts))} elements later"
            yield Trial(name, sizes, seeded, starts=starts, thorough=by not in {1, 2, 3, 8})


def _bare(problem: Problem) -> Iterator[Trial]:
    for sizes in dict.fromkeys((*middling(problem), *problem.edges)):
        yield Trial(named(sizes), sizes, seeded, bare=True)


def _repeats(problem: Problem) -> Iterator[Trial]:
    """A hundred calls of changing sizes: smaller after larger, and the same again."""
    first = [(size,) * len(problem.dimensions) for size in (9, 21, 9, 3, 21)]
    others = ragged(problem, np.random.default_rng(3), 40, 94)
    for call, sizes in enumerate((*first, *others, first[0]), 1):
        yield Trial(f"call {call}, {named(sizes)}", sizes, seeded)


def _kept(problem: Problem) -> Iterator[Trial]:
    """Inputs that differ from those of the call before in one element, at the same addresses.

    Before them, an output in which most of the result is there already.
    """
    draws: dict[str, Draw] = {f"{{}}, element {at} of 7 is another": partial(_but_for_one, at) for at in (7, 6, 3, 5)}
    for sizes in middling(problem)[:2]:
        yield Trial(f"{named(sizes)}, most of the result is there", sizes, seeded, begun=True)
        yield from of_sizes([sizes], draws)


def _but_for_one(place: int, shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Inputs that are the same in every trial of these shapes, but for an element of each at this place of 7."""
    arrays, others = (seeded(shapes, dtype, np.random.default_rng(seed)) for seed in (7, 8))
    for array, other in zip(arrays, others, strict=True):
        at = max(0, array.size * place // 7 - 1)
        array.flat[at : at + 1] = other.flat[at : at + 1]
    return arrays


def _same_bits(problem: Problem) -> Iterator[Trial]:
    yield from of_sizes([*middling(problem), of_kernel(problem.name).shared or _halved(problem)])


ALWAYS = (
    Kind(
        "shapes",
        "sizes around every width of a vector, tile or block; a skipped ragged end, swapped sizes",
        _shapes,
        interpreted=(9, 60),
        in_one_dtype=False,
        in_others=27,
    ),
    Kind("nothing", "empty arrays, and empty sums, which are zeros", _nothing, interpreted=(2, 7)),
    Kind("alignment", "arrays that do not begin at an aligned address", _alignment, in_others=20),
    Kind("bare", "elements read behind an array, on a device that knows its length", _bare),
    Kind("repeats", "what an earlier call left: buffers of its size, sums, flags", _repeats, interpreted=(3, 12)),
    Kind(
        "kept",
        "results of an earlier call that are given for inputs which only look the same, or left in the output",
        _kept,
        interpreted=(5, 10),
    ),
    Kind(
        "same-bits",
        "different bits for the same call, on a device that declares itself deterministic",
        _same_bits,
        again=True,
    ),
)


def _reaching(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Seeded inputs of very different magnitude."""
    reach = limits(dtype).reach
    return _scaled(-reach, reach, shapes, dtype, generator)


def _scaled(least: int, most: int, shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Seeded inputs, each element times a power of two from a range."""
    arrays = seeded(shapes, dtype, generator)
    return [np.ldexp(array, generator.integers(least, most + 1, array.shape)).astype(dtype) for array in arrays]


_ZEROS_AND_ONES = (0.0, -0.0, 1.0, -1.0)


def _large(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    largest = limits(dtype).largest
    return drawn_from([*_ZEROS_AND_ONES, largest, -largest], shapes, dtype, generator)


def _special_values(problem: Problem) -> Iterator[Trial]:
    draws: dict[str, Draw] = {
        "infinite and undefined, {}": partial(drawn_from, (*_ZEROS_AND_ONES, np.inf, -np.inf, np.nan)),
        "large, {}": _large,
        "zeros and ones, {}": partial(drawn_from, _ZEROS_AND_ONES),
    }
    for sizes in middling(problem):
        yield from of_sizes([sizes], draws)


def _subnormals(problem: Problem) -> Iterator[Trial]:
    for sizes in middling(problem):
        for dtype in FLOATS:
            least = round(np.log2(limits(np.dtype(dtype)).least))
            draw = partial(_scaled, least, least + 24)
            yield Trial(f"{named(sizes)}, {dtype}", sizes, draw, dtypes=(dtype,))


def _whole_numbers(problem: Problem) -> Iterator[Trial]:
    sizes = middling(problem)
    yield from of_sizes(sizes, {"from -9 to 9, {}": partial(drawn_from, range(-9, 10))})
    of_most = {"odd, above 2048, {}": partial(drawn_from, range(2**11 + 1, 2**12, 2))}
    yield from of_sizes(sizes, of_most, dtypes=IN_ALL_KINDS)
    yield from of_sizes(sizes, {"odd, of all digits, {}": _odd}, dtypes=NARROW)


def _odd(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Numbers that no lower precision can represent."""
    half = 2 ** (limits(dtype).digits - 1)
    return drawn_from(range(half + 1, 2 * half, 2), shapes, dtype, generator)


def _own_inputs(problem: Problem) -> Iterator[Trial]:
    """At all shapes. The numbers that `draw` sees are those of the trial, since shapes may depend on them."""

    def draw(sizes: Sizes, shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
        return drawn_by(problem, sizes, dtype, generator)

    if has_own_draw(problem):
        for trial in with_numbers(problem, _shapes(problem)):
            yield replace(trial, draw=partial(draw, trial.sizes))


WITHOUT_OWN = (
    Kind(
        OWN_INPUTS,
        "what shows where the inputs are those of the problem's own `draw`, and nowhere else",
        _own_inputs,
        interpreted=(9, 60),
        in_one_dtype=False,
        in_others=27,
    ),
    Kind("special-values", "signed zeros, infinities, NaN, the largest numbers", _special_values, dtypes=FLOATS),
    Kind("subnormals", "subnormal numbers that are flushed to zero", _subnormals, in_others=None),
    Kind(
        "scales",
        "elements of very different magnitude, of which small ones are lost",
        lambda problem: of_sizes(middling(problem), {"{}": _reaching}),
        dtypes=FLOATS,
    ),
    Kind("whole-numbers", "numbers with more digits than a lower precision has", _whole_numbers, in_others=None),
)
"""The kinds for kernels of which the suite knows only what their problem says."""
