"""A communicator of MPI as kernels see it: with mpi4py's names, and what was sent and how long it took counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from time import perf_counter
from typing import Any

import numpy as np

from py_backends.contract import Array
from py_backends.ranks.interface import MPI
from py_backends.ranks.memory import Memory
from py_backends.ranks.progress import Progress


@dataclass
class Tally:
    """What one rank has communicated: seconds, waiting for the others included, and bytes that it sent.

    progress: where it is told that it waits for others.
    """

    seconds: float = 0.0
    sent: int = 0
    progress: Progress = field(default_factory=Progress)


class Communicator:
    """Some ranks that talk to one another.

    rank, size: this rank's number among them, and how many they are.
    tally: what was communicated on it and on all that were made of it.
    memory: of this rank, for what its kernels compute with.
    """

    def __init__(self, made_of: MPI.Intracomm, tally: Tally | None = None, memory: Memory | None = None) -> None:
        self.mpi, self.rank, self.size = made_of, made_of.rank, made_of.size
        self.tally, self.memory = tally or Tally(), memory or Memory()
        self._grids: dict[tuple[int, ...], tuple[Communicator, ...]] = {}

    def lines(self, grid: Sequence[int]) -> tuple[Communicator, ...]:
        """The ranks in a grid: for each of its dimensions those that differ from this rank in that one alone.

        The last dimension is the fastest. Made once for each grid, by all ranks.
        """
        made = self._grids.get(tuple(grid))
        if made is None:
            cartesian = self.mpi.Create_cart(grid)
            keep = np.eye(len(grid), dtype=bool).tolist()
            made = tuple(Communicator(cartesian.Sub(axis), self.tally, self.memory) for axis in keep)
            cartesian.Free()
            self._grids[tuple(grid)] = made
        return made

    def free(self) -> None:
        """Give it back to MPI, which has some 2,000, with all that were made of it. All of its ranks do so together."""
        for line in chain(*self._grids.values()):
            line.free()
        self._grids.clear()
        self.mpi.Free()

    def Allgatherv(self, block: Array | None, whole_and_counts: Sequence[Any]) -> None:  # noqa: N802  # mpi4py's name
        """Bring the blocks of all ranks, so many elements each, to all of them, one after the other.

        block: this rank's own; None where it lies in its place in the whole already.
        """
        whole, counts = whole_and_counts
        # Around a ring: each rank passes on what it has got, all but what the next one had at the beginning.
        sent = (sum(counts) - counts[(self.rank + 1) % self.size]) * whole.itemsize
        bytes_of = [count * whole.itemsize for count in counts]
        own = MPI.IN_PLACE if block is None else [_as_bytes(block), MPI.BYTE]
        everything = _as_bytes(whole)
        with self._counted(sent):
            if len(set(counts)) == 1:  # a site's MPICH sends unequal ones in small pieces: see `engine`
                self.mpi.Allgather(own, [everything, bytes_of[0], MPI.BYTE])
            else:
                self.mpi.Allgatherv(own, [everything, bytes_of, MPI.BYTE])

    def Reduce_scatter(self, parts: Array, own: Array, counts: Sequence[int]) -> None:  # noqa: N802
        """Add the parts of all ranks, and leave each rank its own share of the sum, so many elements."""
        sent = (sum(counts) - counts[self.rank]) * parts.itemsize
        with self._counted(sent):
            self.mpi.Reduce_scatter(parts, own, counts)

    @contextmanager
    def exchanging(self, sent: Any, received: Any, count: int) -> Iterator[None]:
        """Exchange parts of blocks with other ranks, and send so many bytes, while the caller does something else."""
        with self._counted(count):
            request = self.mpi.Ialltoallw(sent, received)
            yield
            request.Wait()

    @contextmanager
    def _counted(self, sent: int) -> Iterator[None]:
        begin = perf_counter()
        with self.tally.progress.counted(computing=False):
            yield
        self.tally.seconds += perf_counter() - begin
        self.tally.sent += sent


def _as_bytes(array: Array) -> Array:
    """The same memory without its number format, of which MPI knows not every one."""
    return array.reshape(-1).view(np.uint8)
