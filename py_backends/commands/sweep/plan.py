"""What a sweep runs: every backend at each size, in rounds that go where the answer lies.

A size applies to all dimensions: 64 stands for 64 elements, or for matrices of 64 x 64. A row that takes too long for
the budget is skipped and never shortened. So every point has the size at which it was measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from py_backends import registry
from py_backends.commands.sweep.search import search as searching
from py_backends.contract import Problem
from py_backends.errors import WrongRequest
from py_backends.harness.plan import Plan
from py_backends.harness.request import Request
from py_backends.harness.schedule import until_known
from py_backends.harness.sizing import most_bytes, size_of
from py_backends.number_formats import DTYPES

_MOST_SIZES = 12
_RUNS = 32
"""Each row must have time for this many runs. Clear answers for a hundred rows take some 17 rounds, and a round takes
longer than a run of each row."""


def largest_size(problem: Problem, dtype: str, budget: float) -> int:
    """The largest power of two whose arrays fit into memory, and can be made and checked in `budget` seconds.

    Raises WrongRequest for an unknown dtype.
    """
    registry.known(dtype, DTYPES, "dtype")
    return 1 << max(1, size_of(problem, dtype, most_bytes(budget))).bit_length() - 1


def sizes_between(first: int, last: int) -> list[int]:
    """Sizes from the first up to the last. Each is twice the one before, or 4, 8, ... times if there were too many."""
    if last < first:
        raise WrongRequest(f"there is no size from {first} to {last}: give a smaller --from or a larger --to")
    doublings = (last // first).bit_length() - 1
    step = max(1, math.ceil(doublings / (_MOST_SIZES - 1)))
    return [first * 2**power for power in range(0, doublings + 1, step)]


def plan(
    kernels: Sequence[str],
    sizes: Mapping[str, Sequence[int]],
    *,
    search: bool = False,
    every_target: bool = False,
    **names: Any,
) -> Plan:
    """The plan: each kernel at its sizes.

    search: whether rounds go to the sizes near the crossover, or to all sizes.
    every_target: whether a backend runs on all targets of a device, or only on the first.
    names: backends, variants and so on, as `Request` takes them.
    """
    shapes = {kernel: list(map(registry.problem(kernel).equal_sizes, sizes[kernel])) for kernel in kernels}
    request = Request(kernels, shapes=shapes, every_target=every_target, **names)
    return Plan.of(
        request,
        request.specs,
        timed_only=True,
        runs=_RUNS,
        shorten=False,
        schedule=searching if search else until_known,
    )
