"""At which sizes kernels go wrong: around the widths of vectors, tiles, blocks and work groups."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from py_backends.contract import Problem
from py_backends.results.spec import Sizes

WIDTHS = (4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256)
"""Lanes of a vector, rows and columns of tiles and blocks, work items of a group."""
_SMALL = {1, 2, 3, 5, 6, 7, 11, 12, 13, 14, 21, 42}
EDGES = tuple(sorted(_SMALL | {width + by for width in WIDTHS for by in (-1, 0, 1)}))
"""One below, at and above each width, and sizes smaller than any width."""

_NEAR = 64
"""The most by which sizes are raised to fit a problem."""
_NUMBERS = (1, 2, 0, 3, 5, 4)
"""What the cases of a kind take in turn for a number that belongs to no array, odd and even ones."""
_REALS = (1.5, -0.375, 0.0, 0.1, 1.0, -2.0)
"""The same for a real number."""


def whole(problem: Problem, sizes: Sizes, at: int = 0) -> Sizes | None:
    """Sizes with the numbers of a case behind them, or with the next that the problem takes; None if it takes none.

    The last ones tried are the defaults. `at` is the place of the case in its kind. Sizes that have numbers keep these.
    """
    every = [sizes]
    if len(sizes) < len(problem.parameters):
        every = [(*sizes, *numbers) for numbers in (*_numbers(problem, at), tuple(problem.numbers.values()))]
    return next((each for each in every if _takes(problem, each)), None)


def _numbers(problem: Problem, first: int) -> Iterator[tuple[Any, ...]]:
    """The numbers of a case, and those of the cases after it, each once."""
    for at in range(first, first + len(_NUMBERS)):
        yield tuple(
            (_REALS if name in problem.reals else _NUMBERS)[(at + place) % len(_NUMBERS)]
            for place, name in enumerate(problem.numbers)
        )


def _takes(problem: Problem, sizes: Sizes) -> bool:
    try:
        problem.shapes(sizes)
    except ValueError:
        return False
    return True


def fits(problem: Problem, sizes: Sizes) -> bool:
    """Whether a problem has these sizes, with some numbers. If its `shapes` raises ValueError, the suite does not."""
    return whole(problem, sizes) is not None


def work(problem: Problem, sizes: Sizes) -> int:
    """The work at these sizes of arrays, with the defaults of the numbers, or with others if it does not take these."""
    usual = problem.whole_sizes(sizes)
    return problem.work(usual if _takes(problem, usual) else whole(problem, sizes) or usual)


def fitting(problem: Problem, several: Iterable[Sizes]) -> list[Sizes]:
    """Each of these sizes, or the nearest above it that the problem has, if any is near.

    All dimensions are raised equally. Numbers stay as they are.
    """
    raised = ((problem.resized(sizes, partial(operator.add, by)) for by in range(_NEAR)) for sizes in several)
    found = (next((sizes for sizes in each if fits(problem, sizes)), None) for each in raised)
    return list(dict.fromkeys(sizes for sizes in found if sizes is not None))


def sweeps(problem: Problem, values: Sequence[int]) -> Iterator[Sizes]:
    """One dimension takes every value while the others are small and all different."""
    dimensions = len(problem.dimensions)
    small = tuple(itertools.islice(itertools.cycle((3, 5, 2, 7)), dimensions))
    for at, value in itertools.product(range(dimensions), values):
        yield (*small[:at], value, *small[at + 1 :])


def mixtures(problem: Problem, values: Sequence[int], count: int, most_work: int, seed: int) -> Iterator[Sizes]:
    """So many distinct sizes that the problem has, drawn from `values`, with little work.

    Fewer if such sizes are rare.
    """
    drawn = np.random.default_rng(seed).choice(values, (20 * count, len(problem.dimensions)))
    distinct = dict.fromkeys(map(tuple, drawn.tolist()))
    bearable = (sizes for sizes in distinct if fits(problem, sizes) and work(problem, sizes) <= most_work)
    yield from itertools.islice(bearable, count)


def middling(problem: Problem) -> list[Sizes]:
    """A few sizes, ragged for every width, with all dimensions different. They are for kinds about values."""
    dimensions = len(problem.dimensions)
    if dimensions == 1:
        return fitting(problem, [(19,), (67,), (531,), (1,)])
    cycles = [(7, 19, 13), (33, 9, 67), (18, 66, 35), (1, 23, 4)]
    return fitting(problem, [tuple(itertools.islice(itertools.cycle(cycle), dimensions)) for cycle in cycles])


def ragged(problem: Problem, generator: np.random.Generator, below: int, count: int) -> list[Sizes]:
    """The first so many sizes of which none is 0."""
    return [tuple(map(int, generator.integers(1, below, len(problem.dimensions)))) for _ in range(count)]
