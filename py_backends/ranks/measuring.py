"""What a rank's work costs on this machine: its calls, its messages, its memory. Predictions are made of these times.

All ranks do the same at the same time, since they share the machine's memory and its network.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from py_backends.contract import Array, Problem
from py_backends.problem import rounded_to
from py_backends.ranks.communicator import CountingCommunicator
from py_backends.ranks.local import OnArrays

if TYPE_CHECKING:
    from py_backends.ranks.interface import MPI

_COLD = 32 << 20
"""Bytes through which messages and copies wander, so that large ones come from memory, as in a kernel."""
_SHORT = 1 << 14
"""Bytes of a message up to which several are timed as one: the clock and the barrier cost as much as it does."""
_SEVERAL = 16
_OF_A_ROW = 4096


def call(
    ranks: CountingCommunicator, local: OnArrays, problem: Problem, dtype: str, sizes: Sequence[int]
) -> Callable[[], int]:
    """A call of a rank's own kernel for arrays of its own."""
    element = np.dtype(dtype)
    drawn, dtypes = problem.draw(sizes, element, np.random.default_rng(ranks.rank)), problem.array_dtypes(element)
    inputs = [rounded_to(of, np.asarray(array)) for of, array in zip(dtypes, drawn, strict=False)]
    outputs = map(np.empty, problem.shapes(sizes)[len(inputs) :], dtypes[len(inputs) :])
    arrays = [*inputs, *outputs]
    numbers = dict(zip(problem.numbers, sizes[len(problem.dimensions) :], strict=True))

    def once() -> int:
        local(*arrays, **numbers)
        return 1

    return once


def messages(ranks: CountingCommunicator, size: int) -> Callable[[], int]:
    """A message to the neighbour, and one from it at the same time. With an odd number of ranks, the last has none."""
    from py_backends.ranks.interface import MPI

    partner = ranks.rank ^ 1
    partner = partner if partner < ranks.size else MPI.PROC_NULL
    sent, received = _places(size), _places(size)
    several = _SEVERAL if size <= _SHORT else 1

    def once() -> int:
        for _ in range(several):
            ranks.mpi.Sendrecv(next(sent), partner, recvbuf=next(received), source=partner)
        return several

    return once


def copies(_ranks: CountingCommunicator, size: int) -> Callable[[], int]:
    """A copy within a rank's memory."""
    sources, targets = _places(size), _places(size)

    def once() -> int:
        next(targets)[...] = next(sources)
        return 1

    return once


def rows(ranks: CountingCommunicator, size: int, row: int = _OF_A_ROW) -> Callable[[], int]:
    """A message that is spread over the rows of a larger array: rows of so many bytes.

    On several ranks it is a message to the neighbour, as `messages`. A rank alone only spreads what is there, which is
    what it does with bytes from a network.
    """
    from py_backends.ranks.interface import MPI

    partner = ranks.rank ^ 1
    partner = partner if partner < ranks.size else MPI.PROC_NULL
    element, count = MPI.UINT32_T, max(1, size // row)
    wide = row // element.size
    spread: MPI.Datatype = element.Create_subarray((count, 2 * wide), (count, wide), (0, 0)).Commit()
    sources, targets = _places(count * row), _places(2 * count * row)

    def once() -> int:
        source, target = next(sources), next(targets)
        if ranks.size > 1:
            ranks.mpi.Sendrecv([source, count * wide, element], partner, recvbuf=[target, 1, spread], source=partner)
        else:
            spread.Unpack(source, 0, target, ranks.mpi)
        return 1

    return once


def sums(_ranks: CountingCommunicator, size: int) -> Callable[[], int]:
    """An addition of numbers as MPI does it for a reduction.

    Ranks add what they have just computed or received. So a cache has it where it has the room, and both arrays stay
    where they are.
    """
    from py_backends.ranks.interface import MPI

    source, target = (np.ones(math.ceil(size / 4), np.float32) for _ in range(2))

    def once() -> int:
        MPI.SUM.Reduce_local(source, target)
        return 1

    return once


def slowest(ranks: CountingCommunicator, once: Callable[[], int], samples: int) -> list[float]:
    """Seconds for one, so many times: of the rank that takes longest. Each begins with all ranks."""
    from py_backends.ranks.interface import MPI

    seconds = np.empty(samples)
    for sample in range(samples):
        ranks.mpi.Barrier()
        begin = perf_counter()
        done = once()
        seconds[sample] = (perf_counter() - begin) / done
    most = np.empty_like(seconds)
    ranks.mpi.Allreduce(seconds, most, MPI.MAX)
    return [float(each) for each in most]


class _places:  # noqa: N801  # an iterator, as those of itertools
    """One piece of memory of a size after the other, for ever."""

    def __init__(self, size: int) -> None:
        count = max(1, min(64, _COLD // max(1, size)))
        self._memory = np.ones((count, math.ceil(size)), np.uint8)
        self._next = 0

    def __next__(self) -> Array:
        self._next = (self._next + 1) % len(self._memory)
        piece: Array = self._memory[self._next]
        return piece
