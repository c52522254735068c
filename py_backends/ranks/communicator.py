"""A communicator that carries out what sources ask for, and counts bytes and time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from py_backends.contract import Array
from py_backends.ranks import mpi
from py_backends.ranks.exchanges import Exchange
from py_backends.ranks.memory import Memory
from py_backends.ranks.progress import Progress

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


class CountingCommunicator(mpi.Communicator):
    """Ranks that run.

    mpi: the communicator of mpi4py.
    tally: what was communicated on it and on all that were made of it.
    memory: of this rank, for what its kernels compute with.
    """

    def __init__(self, made_of: MPI.Intracomm, tally: Tally | None = None, memory: Memory | None = None) -> None:
        self.mpi, self.rank, self.size = made_of, made_of.rank, made_of.size
        self.tally, self.memory = tally or Tally(), memory or Memory()
        self._grids: dict[tuple[int, ...], _Grid] = {}

    def empty(self, shape: Sequence[int], dtype: Any) -> Array:
        return self.memory.borrow(tuple(shape), np.dtype(dtype))

    def Create_cart(self, dims: Sequence[int]) -> _Grid:  # noqa: N802  # MPI's name
        """Made once for each grid, and kept: MPI has some 2,000 communicators."""
        grid = mpi.check_grid(dims, self.size)
        if grid not in self._grids:
            self._grids[grid] = _Grid(self, grid)
        return self._grids[grid]

    def carry_out(self, exchange: Exchange, *buffers: Any) -> None:
        """Count its bytes, and the time within, as communication of this rank.

        A step of `heat` may be as short as these lines.
        """
        tally = self.tally
        begin, before = perf_counter(), tally.progress.told(computing=False)
        try:
            exchange.run(self.mpi, *buffers)
        finally:
            tally.progress.told(computing=before)
        tally.seconds += perf_counter() - begin
        tally.sent += exchange.sent(self.rank)

    def free(self) -> None:
        """Give it back to MPI, with all that were made of it. All of its ranks do so together."""
        for grid in self._grids.values():
            grid.free()
        self._grids.clear()
        self.mpi.Free()


class _Grid(mpi.Grid):
    def __init__(self, ranks: CountingCommunicator, dims: tuple[int, ...]) -> None:
        self._ranks, self._made = ranks, ranks.mpi.Create_cart(dims)
        self._subs: dict[tuple[bool, ...], CountingCommunicator] = {}

    def Sub(self, remain_dims: Sequence[bool]) -> CountingCommunicator:  # noqa: N802  # MPI's name
        remaining = tuple(remain_dims)
        if remaining not in self._subs:
            made = self._made.Sub(list(remaining))
            self._subs[remaining] = CountingCommunicator(made, self._ranks.tally, self._ranks.memory)
        return self._subs[remaining]

    def free(self) -> None:
        for sub in self._subs.values():
            sub.free()
        self._made.Free()
