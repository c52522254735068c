"""What one call of MPI moves, as data: launches carry it out and count it, predictions read it.

MPI is imported where an exchange runs: importing it makes a process a rank, and whoever predicts is none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from py_backends.contract import Array
from py_backends.ranks import traffic
from py_backends.ranks.traffic import Round, Traffic

if TYPE_CHECKING:
    from py_backends.ranks.interface import MPI

PROC_NULL = -1
"""No rank: nothing is sent there, and nothing comes."""
_OF_BYTES = {1: "BYTE", 2: "UINT16_T", 4: "UINT32_T", 8: "UINT64_T"}
"""The names of MPI's types by the bytes of an element. Values do not matter for moving, and MPI has no bfloat16."""


class Subarray(NamedTuple):
    """A part of an array as a type of message."""

    sizes: tuple[int, ...]
    subsizes: tuple[int, ...]
    starts: tuple[int, ...]


@dataclass(frozen=True)
class Exchange(ABC):
    """One call of a function of MPI, by all ranks of a communicator. Sizes are bytes."""

    @abstractmethod
    def sent(self, rank: int) -> int:
        """What the rank that calls it sends to others."""

    @abstractmethod
    def traffic(self, rank: int) -> Traffic:
        """What the rank that calls it does, by MPICH's algorithm."""

    @abstractmethod
    def run(self, line: MPI.Intracomm, *buffers: Any) -> None:
        """Carry it out on what `Communicator` was given."""


@dataclass(frozen=True)
class Allgatherv(Exchange):
    """blocks: of each rank. in_place: each lies in its place already."""

    blocks: tuple[int, ...]
    in_place: bool = False

    def sent(self, rank: int) -> int:
        """Around a ring: each rank passes on what it has got, all but what the next one had at the beginning."""
        return sum(self.blocks) - self.blocks[(rank + 1) % len(self.blocks)]

    def traffic(self, rank: int) -> Traffic:
        return traffic.allgather(self.blocks) + Traffic(copied=0 if self.in_place else self.blocks[rank])

    def run(self, line: MPI.Intracomm, *buffers: Any) -> None:
        of_mpi, (block, whole) = _mpi(), buffers
        own = of_mpi.IN_PLACE if self.in_place else [_as_bytes(block), of_mpi.BYTE]
        if len(set(self.blocks)) == 1:  # a site's MPICH sends unequal ones in small pieces: see `engine`
            line.Allgather(own, [_as_bytes(whole), self.blocks[0], of_mpi.BYTE])
        else:
            counts = list(self.blocks)  # a pair would be counts and places
            line.Allgatherv(own, [_as_bytes(whole), counts, of_mpi.BYTE])


@dataclass(frozen=True)
class Allreduce(Exchange):
    """ranks: how many take part. size: of what each has. op: the name of the operation."""

    ranks: int
    size: int
    op: str = "SUM"

    def sent(self, rank: int) -> int:
        """By recursive doubling: in each round pairs exchange what they have, and all have twice as much after it.

        If the number of ranks is no power of two, the first ones come in pairs. One of each gives the other its
        elements, and gets the sums at the end. (Thakur, Rabenseifner and Gropp, Optimization of collective
        communication operations in MPICH, Int. J. High Perform. Comput. Appl. 19, 2005, section 4.)
        """
        rounds = self.ranks.bit_length() - 1
        in_pairs = 2 * (self.ranks - 2**rounds)
        return self.size * (rounds if rank >= in_pairs else rounds + 1 if rank % 2 else 1)

    def traffic(self, rank: int) -> Traffic:
        return traffic.allreduce(self.ranks, self.size)

    def run(self, line: MPI.Intracomm, *buffers: Any) -> None:
        own, results = buffers
        line.Allreduce(_sent(own), results, _operation(self.op))


@dataclass(frozen=True)
class Alltoallw(Exchange):
    """sent_to, received_from: by ranks, this one included. strided: of that what is not in one piece on either side."""

    sent_to: tuple[int, ...]
    received_from: tuple[int, ...]
    strided: int

    def sent(self, rank: int) -> int:
        return sum(self.sent_to) - self.sent_to[rank]

    def traffic(self, rank: int) -> Traffic:
        kept = self.sent_to[rank]
        return traffic.alltoall(len(self.sent_to), self.sent(rank)) + Traffic(copied=kept, strided=self.strided)

    def run(self, line: MPI.Intracomm, *buffers: Any) -> None:
        """A rank copies what it keeps itself, while the others fetch their parts."""
        source, sent, target, received = buffers
        here = line.rank
        with _message(source, sent, here) as going, _message(target, received, here) as coming:
            request = line.Ialltoallw(going, coming)
            target[_box(received[here])] = source[_box(sent[here])]
            request.Wait()


@dataclass(frozen=True)
class Exscan(Exchange):
    """ranks: how many take part. size: of what each has. op: the name of the operation."""

    ranks: int
    size: int
    op: str = "SUM"

    def sent(self, rank: int) -> int:
        """By recursive doubling: in each round pairs exchange the sums of all that they have heard of.

        If the number of ranks is no power of two, some have no partner in a round. (MPICH,
        src/mpi/coll/exscan/exscan_intra_recursive_doubling.c.)
        """
        return self.size * traffic.partners(rank, self.ranks)

    def traffic(self, rank: int) -> Traffic:
        return traffic.exscan(rank, self.ranks, self.size)

    def run(self, line: MPI.Intracomm, *buffers: Any) -> None:
        own, results = buffers
        line.Exscan(_sent(own), results, _operation(self.op))


@dataclass(frozen=True)
class Reduce_scatter(Exchange):  # noqa: N801  # MPI's name
    """shares: of each rank. op: the name of the operation."""

    shares: tuple[int, ...]
    op: str = "SUM"

    def sent(self, rank: int) -> int:
        """To every other rank what this one adds to its share."""
        return sum(self.shares) - self.shares[rank]

    def traffic(self, rank: int) -> Traffic:
        return traffic.reduce_scatter(self.shares)

    def run(self, line: MPI.Intracomm, *buffers: Any) -> None:
        parts, own = buffers
        line.Reduce_scatter(parts, own, [share // parts.itemsize for share in self.shares], _operation(self.op))


@dataclass(frozen=True)
class Sendrecv(Exchange):
    """dest, source: the ranks. size: of what is sent. coming: of what is received."""

    dest: int
    source: int
    size: int
    coming: int

    def sent(self, rank: int) -> int:
        return 0 if self.dest == rank else self.size

    def traffic(self, rank: int) -> Traffic:
        """A message of no bytes takes its time too, and the rank waits for it."""
        others = {self.dest, self.source} - {rank, PROC_NULL}
        return Traffic((Round(max(self.size, self.coming)),)) if others else Traffic()

    def run(self, line: MPI.Intracomm, *buffers: Any) -> None:
        of_mpi, (going, coming) = _mpi(), buffers
        dest = of_mpi.PROC_NULL if self.dest == PROC_NULL else self.dest
        source = of_mpi.PROC_NULL if self.source == PROC_NULL else self.source
        line.Sendrecv(_as_bytes(going), dest, recvbuf=_as_bytes(coming), source=source)


def _as_bytes(array: Array) -> Array:
    """The same memory without its number format, of which MPI knows not every one.

    Raises ValueError for an array that is not in one piece.
    """
    if not array.flags.c_contiguous:
        raise ValueError("a buffer that MPI sends or fills is in one piece: copy this one, or send it by Alltoallw")
    return (array if array.ndim else array.reshape(1)).view(np.uint8)


@cache
def _mpi() -> Any:
    """MPI, imported at the first exchange. A second look for it takes longer than a short message."""
    from py_backends.ranks.interface import MPI

    return MPI


def _sent(own: Any) -> Any:
    """What a rank sends. Where that lies in the buffer that receives, MPI has a name of its own for it."""
    return _mpi().IN_PLACE if isinstance(own, str) else own


def _operation(name: str) -> MPI.Op:
    operation: MPI.Op = getattr(_mpi(), name)
    return operation


def _box(part: Subarray) -> tuple[slice, ...]:
    return tuple(slice(start, start + size) for start, size in zip(part.starts, part.subsizes, strict=True))


@contextmanager
def _message(block: Array, parts: Sequence[Subarray], here: int) -> Iterator[Any]:
    """A rank's side of an exchange of all with all: a type of MPI for each other rank's part."""
    element: MPI.Datatype = getattr(_mpi(), _OF_BYTES[block.itemsize])
    made = [
        element.Create_subarray(*part).Commit() if rank != here and all(part.subsizes) else None
        for rank, part in enumerate(parts)
    ]
    counts = [int(each is not None) for each in made]
    try:
        yield [block.view(f"u{block.itemsize}"), (counts, [0] * len(parts)), [each or element for each in made]]
    finally:
        for each in made:
            if each is not None:
                each.Free()
