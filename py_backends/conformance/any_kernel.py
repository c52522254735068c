"""The kinds that any kernel is tried with: sizes, places in memory, calls that follow each other."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from py_backends.conformance.sizes import EDGES, LARGER_SHAPES, SHAPES, SHARED, fits, middling, mixtures, sweeps
from py_backends.conformance.trials import Draw, Inputs, Kind, Trial, Values, named, seeded
from py_backends.contract import Array, Problem
from py_backends.harness.spec import Sizes

_MUCH_WORK = 3_000_000
"""Operations that plain Python does in a fraction of a second."""


def of_sizes(problem: Problem, sizes: Iterable[Sizes], *, thorough: bool = False) -> Iterator[Trial]:
    """Seeded inputs at each of these sizes."""
    for each in dict.fromkeys(sizes):
        yield Trial(named(each), each, seeded, thorough=thorough)


def unlike(trials: Iterable[Trial]) -> Iterator[Trial]:
    """The first of each name."""
    seen: set[str] = set()
    for trial in trials:
        if trial.name not in seen:
            seen.add(trial.name)
            yield trial


def _shapes(problem: Problem) -> Iterator[Trial]:
    known = (*SHAPES.get(problem.name, ()), *problem.edges, *LARGER_SHAPES.get(problem.name, (_large(problem),)))
    quick = (*known, *sweeps(problem, EDGES), *mixtures(problem, EDGES, 60, 200_000, seed=1))
    fit = (sizes for sizes in quick if fits(problem, sizes))
    bearable = (sizes for sizes in fit if sizes in known or problem.work(sizes) <= _MUCH_WORK)
    all_small = sweeps(problem, range(1, 301 if len(problem.dimensions) == 1 else 131))
    mixed = mixtures(problem, range(1, 300), 300, _MUCH_WORK // 3, seed=2)
    yield from unlike(
        itertools.chain(
            of_sizes(problem, bearable),
            of_sizes(problem, all_small, thorough=True),
            of_sizes(problem, mixed, thorough=True),
        )
    )


def _large(problem: Problem) -> Sizes:
    """The default sizes, halved until they are bearable and the problem has them."""
    sizes = problem.default_sizes
    while max(sizes) > 1 and not (fits(problem, sizes) and problem.work(sizes) <= _MUCH_WORK):
        sizes = tuple(-(-size // 2) for size in sizes)
    return sizes


def _nothing(problem: Problem) -> Iterator[Trial]:
    every = itertools.product((0, 3), repeat=len(problem.dimensions))
    wide = itertools.product((0, 70), repeat=len(problem.dimensions))
    yield from of_sizes(problem, (sizes for sizes in (*every, *wide) if 0 in sizes))


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
    """A hundred calls of changing sizes, smaller after larger and the same again."""
    dimensions = len(problem.dimensions)
    generator = np.random.default_rng(3)
    first = [(size,) * dimensions for size in (9, 21, 9, 3, 21)]
    ragged = [tuple(map(int, generator.integers(1, 40, dimensions))) for _ in range(94)]
    again = first[0]
    for call, sizes in enumerate((*first, *ragged, again), 1):
        yield Trial(f"call {call}, {named(sizes)}", sizes, seeded)


def _same_bits(problem: Problem) -> Iterator[Trial]:
    yield from of_sizes(problem, [*middling(problem), SHARED.get(problem.name, _large(problem))])


ALWAYS = (
    Kind(
        "shapes",
        "sizes around every width of a vector, tile or block; a ragged end that is skipped, sizes that are swapped",
        _shapes,
        interpreted=(9, 60),
        in_one_dtype=False,
    ),
    Kind("nothing", "empty arrays, and sums of nothing, which are zeros", _nothing, interpreted=(2, 7)),
    Kind("alignment", "arrays that begin between the addresses that vectors are aligned to", _alignment),
    Kind("bare", "elements read behind an array, of a device that knows its length", _bare),
    Kind("repeats", "what an earlier call left: buffers of its size, sums, flags", _repeats, interpreted=(3, 12)),
    Kind(
        "same-bits", "other bits for the same call, of a device that says it is deterministic", _same_bits, again=True
    ),
)


def special(problem: Problem, values: Values, sizes: Iterable[Sizes], what: str) -> Iterator[Trial]:
    """Inputs drawn from a few values."""

    def draw(problem: Problem, sizes: Sequence[int], dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
        return [generator.choice(np.array(values(dtype), dtype), shape) for shape in problem.shapes(sizes)[:-1]]

    for each in sizes:
        yield Trial(f"{what}, {named(each)}", each, draw)


def scaled_by(exponents: Sequence[int]) -> Draw:
    """Seeded inputs, each element times a power of two from a range."""

    def draw(problem: Problem, sizes: Sequence[int], dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
        return [_scaled(array, exponents, generator) for array in seeded(problem, sizes, dtype, generator)]

    return draw


def _scaled(array: Array, exponents: Sequence[int], generator: np.random.Generator) -> Array:
    return np.ldexp(array, generator.integers(exponents[0], exponents[1] + 1, array.shape)).astype(array.dtype)


def _special_values(problem: Problem) -> Iterator[Trial]:
    zeros = [0.0, -0.0, 1.0, -1.0]
    for sizes in middling(problem):
        yield from special(problem, lambda _: [*zeros, np.inf, -np.inf, np.nan], [sizes], "infinite and undefined")
        yield from special(problem, lambda dtype: [*zeros, *_largest(dtype)], [sizes], "large")
        yield from special(problem, lambda _: zeros, [sizes], "zeros and ones")


def _largest(dtype: np.dtype[Any]) -> list[float]:
    largest = float(np.finfo(dtype).max)
    return [largest, -largest]


def _subnormals(problem: Problem) -> Iterator[Trial]:
    for sizes in middling(problem):
        for dtype, least in (("float32", -149), ("float64", -1074)):
            draw = scaled_by((least, least + 24))
            yield Trial(f"{named(sizes)}, {dtype}", sizes, draw, dtypes=(dtype,))


def _scales(problem: Problem) -> Iterator[Trial]:
    for sizes in middling(problem):
        yield Trial(named(sizes), sizes, scaled_by((-60, 60)))


def _whole_numbers(problem: Problem) -> Iterator[Trial]:
    yield from special(problem, lambda _: range(-9, 10), middling(problem), "from -9 to 9")
    yield from special(problem, lambda _: range(2**11 + 1, 2**12, 2), middling(problem), "odd, above 2048")


WITHOUT_OWN = (
    Kind("special-values", "signed zeros, infinities, NaN, the largest numbers", _special_values),
    Kind("subnormals", "subnormal numbers that are flushed to zero", _subnormals),
    Kind("scales", "elements of very different size, whose small ones are lost", _scales),
    Kind("whole-numbers", "numbers of more digits than a lower precision has", _whole_numbers),
)
"""For kernels of which the suite knows no more than their problem says."""
