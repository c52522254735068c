"""What ranks exchange, as data: the source of a kernel states it once. Running, counting and predicting read the same.

A source for `mpi` has a function `exchanges(rank, ranks, widths, *sizes)`, as it has `blocks`. It returns the exchanges
of a rank in one launch, each by a name. The kernel's function carries one out by `ranks.exchange(name, ...)`.

MPI is imported where an exchange runs: importing it makes a process a rank, and whoever predicts is none.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from py_backends.contract import Array
from py_backends.ranks import traffic
from py_backends.ranks.blocks import Boxes, Exchanging, in_pieces, move, parts_in
from py_backends.ranks.traffic import Traffic

if TYPE_CHECKING:
    from py_backends.ranks.interface import MPI


class Line(Exchanging, Protocol):
    """The ranks that take part in an exchange: their communicator, this rank's place among them, and their number."""

    mpi: MPI.Intracomm
    size: int

    def counted(self, sent: int) -> AbstractContextManager[None]:
        """Count so many bytes, and the time within, as communication of this rank."""


@dataclass(frozen=True)
class Exchange(ABC):
    """One exchange, by one function of MPI.

    along: who takes part, as a grid of all ranks and one of its dimensions: the ranks that differ from this one in that
        dimension alone. None for all ranks.
    times: how often a launch has it.
    """

    _: KW_ONLY
    along: tuple[tuple[int, ...], int] | None = None
    times: int = 1

    @abstractmethod
    def sent(self, place: int) -> int:
        """The bytes that the rank at a place among those who take part sends to others, each time."""

    @abstractmethod
    def traffic(self, place: int, *arrays: Any) -> Traffic:
        """What the rank at a place does each time, by MPICH's algorithm. The arrays are those that `run` is given."""

    @abstractmethod
    def run(self, line: Line, *arrays: Any) -> None:
        """Carry it out. All who take part do so together."""


@dataclass(frozen=True)
class Allgatherv(Exchange):
    """Bring the blocks of all ranks to all of them, one after the other.

    counts: the elements of each rank's block.
    width: bytes of an element.

    Run on this rank's block and the whole. The block is None where it lies in its place in the whole already.
    """

    counts: Sequence[int]
    width: int

    def sent(self, place: int) -> int:
        """Around a ring: each rank passes on what it has got, all but what the next one had at the beginning."""
        return (sum(self.counts) - self.counts[(place + 1) % len(self.counts)]) * self.width

    def traffic(self, place: int, *arrays: Any) -> Traffic:
        copied = 0 if arrays[0] is None else self.counts[place] * self.width
        return traffic.allgather([count * self.width for count in self.counts]) + Traffic(copied=copied)

    def run(self, line: Line, *arrays: Any) -> None:
        from py_backends.ranks.interface import MPI

        block, whole = arrays
        bytes_of = [count * self.width for count in self.counts]
        own = MPI.IN_PLACE if block is None else [_as_bytes(block), MPI.BYTE]
        everything = _as_bytes(whole)
        with line.counted(self.sent(line.rank)):
            if len(set(self.counts)) == 1:  # a site's MPICH sends unequal ones in small pieces: see `engine`
                line.mpi.Allgather(own, [everything, bytes_of[0], MPI.BYTE])
            else:
                line.mpi.Allgatherv(own, [everything, bytes_of, MPI.BYTE])


@dataclass(frozen=True)
class Reduce_scatter(Exchange):  # noqa: N801  # MPI's name
    """Add the parts of all ranks, and leave each rank its share of the sum.

    counts: the elements of each rank's share.
    width: bytes of an element.

    Run on this rank's part of every sum, and the memory of its share.
    """

    counts: Sequence[int]
    width: int

    def sent(self, place: int) -> int:
        """To every other rank what this one adds to its share."""
        return (sum(self.counts) - self.counts[place]) * self.width

    def traffic(self, place: int, *arrays: Any) -> Traffic:
        return traffic.reduce_scatter([count * self.width for count in self.counts])

    def run(self, line: Line, *arrays: Any) -> None:
        parts, own = arrays
        with line.counted(self.sent(line.rank)):
            line.mpi.Reduce_scatter(parts, own, self.counts)


@dataclass(frozen=True)
class Allreduce(Exchange):
    """Add the elements of all ranks, and leave the sums with every rank.

    ranks: how many take part.
    count: the elements of each.
    width: bytes of an element.

    Run on this rank's elements, and the memory of the sums.
    """

    ranks: int
    count: int
    width: int

    def sent(self, place: int) -> int:
        """By recursive doubling: in each round pairs exchange what they have, and all have twice as much after it.

        If the number of ranks is no power of two, the first ones come in pairs. One of each gives the other its
        elements, and gets the sums at the end. (Thakur, Rabenseifner and Gropp, Optimization of collective
        communication operations in MPICH, Int. J. High Perform. Comput. Appl. 19, 2005, section 4.)
        """
        rounds = self.ranks.bit_length() - 1
        in_pairs = 2 * (self.ranks - 2**rounds)
        times = rounds if place >= in_pairs else rounds + 1 if place % 2 else 1
        return times * self.count * self.width

    def traffic(self, place: int, *arrays: Any) -> Traffic:
        return traffic.allreduce(self.ranks, self.count * self.width)

    def run(self, line: Line, *arrays: Any) -> None:
        own, sums = arrays
        with line.counted(self.sent(line.rank)):
            line.mpi.Allreduce(own, sums)


@dataclass(frozen=True)
class Alltoallw(Exchange):
    """Bring an array that lies in some boxes on ranks to other boxes. Every rank sends to any other.

    sources, targets: the box of each rank before and after.
    width: bytes of an element.

    Run on this rank's block before, and the memory of its block after.
    """

    sources: Boxes
    targets: Boxes
    width: int

    def sent(self, place: int) -> int:
        """What this rank's box before has in common with the boxes of others after."""
        return self._moved(parts_in(self.sources[place], self.targets), place)

    def traffic(self, place: int, *arrays: Any) -> Traffic:
        strided = 0
        for box, others in (self.targets[place], self.sources), (self.sources[place], self.targets):
            parts = parts_in(box, others)
            moved = self._moved(parts, place)
            strided += moved if in_pieces(box, parts) else 0
        kept = math.prod(parts[place]) * self.width
        return traffic.alltoall(len(self.sources), moved) + Traffic(copied=kept, strided=strided)

    def _moved(self, parts: Sequence[tuple[int, ...]], place: int) -> int:
        """The bytes of the parts of other ranks."""
        return (sum(map(math.prod, parts)) - math.prod(parts[place])) * self.width

    def run(self, line: Line, *arrays: Any) -> None:
        before, after = arrays
        move(line, before, self.sources, after, self.targets)


@dataclass(frozen=True)
class Sendrecv(Exchange):
    """Give both neighbours in a line of ranks the elements of this rank that are next to theirs, and get theirs.

    before, after: the ranks; None at an end of the line.
    count: the elements that each gives to the other.
    width: bytes of an element.

    Run on this rank's block with those elements of the neighbours around it, in one piece.
    """

    before: int | None
    after: int | None
    count: int
    width: int

    def sent(self, place: int) -> int:
        return self.count * self.width * sum(neighbour is not None for neighbour in (self.before, self.after))

    def traffic(self, place: int, *arrays: Any) -> Traffic:
        """In one direction, then in the other. A rank at an end sends in one of them, and receives in the other."""
        alone = self.before is None and self.after is None
        return Traffic() if alone else Traffic((traffic.Round(self.count * self.width, times=2),))

    def run(self, line: Line, *arrays: Any) -> None:
        """All ranks send in one direction, then in the other, so that none waits for a chain of others."""
        from py_backends.ranks.interface import MPI

        (whole,) = arrays
        elements, count = _as_bytes(whole), self.count * self.width
        before, after = (MPI.PROC_NULL if rank is None else rank for rank in (self.before, self.after))
        with line.counted(self.sent(line.rank)):
            line.mpi.Sendrecv(elements[count : 2 * count], before, recvbuf=elements[-count:], source=after)
            line.mpi.Sendrecv(elements[-2 * count : -count], after, recvbuf=elements[:count], source=before)


def _as_bytes(array: Array) -> Array:
    """The same memory without its number format, of which MPI knows not every one."""
    return array.reshape(-1).view(np.uint8)
