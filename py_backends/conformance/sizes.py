"""At which sizes kernels go wrong: around the widths of vectors, tiles, blocks and work groups."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from py_backends.contract import Problem
from py_backends.results.spec import Sizes

WIDTHS = (4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256)
"""Lanes of a vector, rows and columns of tiles and blocks, work items of a group."""
_SMALL = {1, 2, 3, 5, 6, 7, 11, 12, 13, 14, 21, 42}
EDGES = tuple(sorted(_SMALL | {width + by for width in WIDTHS for by in (-1, 0, 1)}))
"""One below, at and above each width, and sizes smaller than any width."""

SHAPES: dict[str, list[Sizes]] = {
    # none, one, several blocks of a GPU, and one below, at and above each width of vectors and work groups
    "vecadd": [
        (n,) for n in (0, 1, 2049, 3, 255, 256, 257, 31, 33, 2, 4, 5, 7, 8, 9, 15, 16, 17, 32, 63, 65, 64, 521)
    ],
    "matmul": [
        (0, 5, 3), (5, 0, 3), (5, 3, 0), (65, 63, 9), (1, 66, 17),
        (2, 3, 5), (17, 15, 16), (33, 17, 9), (65, 1, 4), (1, 1, 1),
        (1, 7, 3), (7, 1, 3), (7, 3, 1), (3, 4, 5), (4, 8, 5),
        (9, 3, 4), (2, 15, 3), (3, 16, 2), (2, 17, 3), (15, 16, 17),
        (1, 65, 4), (1, 1, 129), (3, 9, 2), (16, 16, 16), (4, 31, 3),
        (2, 32, 5), (3, 33, 2),
    ],
}  # fmt: skip
"""Few sizes that show the most, the most telling first. They are for kernels that run in several forms, or slowly."""

LARGER_SHAPES: dict[str, list[Sizes]] = {
    "vecadd": [(4096,), (100_003,), (1_048_577,)],
    "matmul": [
        (64, 64, 64),
        (67, 131, 257),
        (257, 131, 67),
        (300, 1, 200),
        (1, 300, 200),
        (129, 127, 128),
        (4, 6, 1700),
        (29, 70, 800),
        (4, 131, 1700),
        (4, 4200, 3),
        (200, 170, 150),
    ],
}
"""Sizes for all but interpreted work items. The last one is shared among threads."""

SHARED: dict[str, Sizes] = {"vecadd": (100_003,), "matmul": (200, 170, 150)}
"""Sizes with so much work that threads share it."""
_NEAR = 64
"""The most by which sizes are raised to fit a problem."""


def fits(problem: Problem, sizes: Sizes) -> bool:
    """Whether a problem has these sizes. If its `shapes` raises ValueError, the suite does not use them."""
    try:
        problem.shapes(sizes)
    except ValueError:
        return False
    return True


def fitting(problem: Problem, several: Iterable[Sizes]) -> list[Sizes]:
    """Each of these sizes, or the nearest above it that the problem has, if any is near.

    All dimensions are raised equally.
    """
    raised = ([tuple(size + by for size in sizes) for by in range(_NEAR)] for sizes in several)
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
    bearable = (sizes for sizes in distinct if fits(problem, sizes) and problem.work(sizes) <= most_work)
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
