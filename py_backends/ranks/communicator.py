"""A communicator of MPI as kernels see it: it carries out what they state, and counts bytes and time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from py_backends.ranks.exchanges import Exchange
from py_backends.ranks.memory import Memory
from py_backends.ranks.progress import Progress
from py_backends.ranks.ring import Blocks, Turn, around

if TYPE_CHECKING:
    from py_backends.ranks.interface import MPI  # importing it makes this process a rank


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
    stated: the exchanges of the kernel that is running, by name.
    """

    def __init__(self, made_of: MPI.Intracomm, tally: Tally | None = None, memory: Memory | None = None) -> None:
        self.mpi, self.rank, self.size = made_of, made_of.rank, made_of.size
        self.tally, self.memory = tally or Tally(), memory or Memory()
        self.stated: Mapping[str, Exchange] = {}
        self._grids: dict[tuple[int, ...], tuple[Communicator, ...]] = {}

    def exchange(self, name: str, *arrays: Any) -> None:
        """Carry out an exchange that the running kernel has stated. Its class says on which arrays."""
        stated = self.stated[name]
        line = self
        if stated.along is not None:
            grid, dimension = stated.along
            line = self.lines(grid)[dimension]
        stated.run(line, *arrays)

    def around(self, own: Blocks) -> Iterator[Turn]:
        """Each rank's blocks, one rank after the other: this one's own, those of the rank before it, and so on.

        own: this rank's block for each name of a `Shift`, which is stated for as many times as there are other ranks.
        Whoever gets the blocks does not write to them: the next rank has them already.
        """
        return around(self, own)

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

    @contextmanager
    def exchanging(self, sent: Any, received: Any, count: int) -> Iterator[None]:
        """Exchange parts of blocks with other ranks, and send so many bytes, while the caller does something else."""
        with self.counted(count):
            request = self.mpi.Ialltoallw(sent, received)
            yield
            request.Wait()

    @contextmanager
    def counted(self, sent: int) -> Iterator[None]:
        """Count so many bytes, and the time within, as communication of this rank."""
        begin = perf_counter()
        with self.tally.progress.counted(computing=False):
            yield
        self.tally.seconds += perf_counter() - begin
        self.tally.sent += sent
