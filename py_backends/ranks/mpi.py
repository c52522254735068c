"""MPI as the sources of kernels see it: a communicator with mpi4py's names and arguments for buffers.

A launch carries its calls out; `predict` only records them, in a process that is no rank: nothing here imports MPI.
Buffers are arrays in one piece, without MPI's types and places: an array, an array with counts, an array with parts.
Where MPI only moves them, they may have any number format. A launch raises ValueError for what is not in one piece.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from py_backends.ranks import exchanges
from py_backends.ranks.exchanges import PROC_NULL, Subarray

__all__ = ["IN_PLACE", "PROC_NULL", "SUM", "Communicator", "Create_subarray", "Grid", "Subarray", "check_grid"]

IN_PLACE = "IN_PLACE"
"""For `Allgatherv`, in place of the block that is sent: it lies in its place in the buffer that receives. For
`Allreduce` and `Exscan`, in place of what is sent: it lies in the buffer that receives, which the results overwrite."""
SUM = "SUM"
"""The operation that adds."""


def Create_subarray(  # noqa: N802  # MPI's name
    sizes: Sequence[int], subsizes: Sequence[int], starts: Sequence[int]
) -> Subarray:
    """The part of an array of the shape `sizes` that has the shape `subsizes` and begins at `starts`.

    Its elements are those of the buffer that it comes with. As in MPI (MPI_Type_create_subarray), but it may be empty.
    """
    return Subarray(tuple(sizes), tuple(subsizes), tuple(starts))


class Communicator(ABC):
    """Some ranks that talk to one another.

    rank, size: this rank's number among them, and how many they are.

    All of them call a collective method together.
    """

    rank: int
    size: int

    @abstractmethod
    def empty(self, shape: Sequence[int], dtype: Any) -> Any:
        """An array, contents undefined, until the launch ends. Its memory is used again by the next one."""

    @abstractmethod
    def Create_cart(self, dims: Sequence[int]) -> Grid:  # noqa: N802  # MPI's names, here and below
        """The ranks in a grid of so many along each dimension, all of them. The last dimension is the fastest.

        Raises ValueError for a grid of more or fewer places than ranks.
        """

    @abstractmethod
    def carry_out(self, exchange: exchanges.Exchange, *buffers: Any) -> None:
        """Do what one of the methods below was asked for."""

    def Allgatherv(self, sendbuf: Any, recvbuf: tuple[Any, Sequence[int]]) -> None:  # noqa: N802
        """Bring the blocks of all ranks to all of them, one after the other.

        recvbuf: the memory of all blocks, and the number of elements of each.
        """
        whole, counts = recvbuf
        blocks = tuple(count * whole.itemsize for count in counts)
        self.carry_out(exchanges.Allgatherv(blocks, in_place=_is_in_place(sendbuf)), sendbuf, whole)

    def Allreduce(self, sendbuf: Any, recvbuf: Any, op: str = SUM) -> None:  # noqa: N802
        """Combine the elements of all ranks one by one, and leave the results with every rank.

        sendbuf, recvbuf: arrays of one shape, of a number format that MPI adds, which bfloat16 and float16 are not. Or
            `IN_PLACE`, and an array.
        op: `SUM`. Raises ValueError for another.
        """
        _check(op)
        self.carry_out(exchanges.Allreduce(self.size, recvbuf.nbytes, op), sendbuf, recvbuf)

    def Alltoallw(self, sendbuf: tuple[Any, Sequence[Subarray]], recvbuf: tuple[Any, Sequence[Subarray]]) -> None:  # noqa: N802
        """Send each rank a part of an array, and put what comes from each into a part of another one.

        Both: an array, and its part for each rank, this one included. A part may be empty.
        """
        (source, sent), (target, received) = sendbuf, recvbuf
        sent_to, received_from = _bytes(source, sent), _bytes(target, received)
        strided = _strided(sent, sent_to, self.rank) + _strided(received, received_from, self.rank)
        self.carry_out(exchanges.Alltoallw(sent_to, received_from, strided), source, sent, target, received)

    def Exscan(self, sendbuf: Any, recvbuf: Any, op: str = SUM) -> None:  # noqa: N802
        """Combine the elements of all ranks before this one, one by one. With the first rank nothing is left.

        Else as `Allreduce`.
        """
        _check(op)
        self.carry_out(exchanges.Exscan(self.size, recvbuf.nbytes, op), sendbuf, recvbuf)

    def Reduce_scatter(self, sendbuf: Any, recvbuf: Any, recvcounts: Sequence[int], op: str = SUM) -> None:  # noqa: N802
        """Combine the elements of all ranks one by one, and leave each rank its share of the results.

        recvcounts: the elements of each rank's share, of which `recvbuf` is this rank's. Else as `Allreduce`.
        """
        _check(op)
        shares = tuple(count * sendbuf.itemsize for count in recvcounts)
        self.carry_out(exchanges.Reduce_scatter(shares, op), sendbuf, recvbuf)

    def Sendrecv(self, sendbuf: Any, dest: int, *, recvbuf: Any, source: int) -> None:  # noqa: N802
        """Send one rank an array, and receive one from another, or the same, at the same time.

        dest, source: `PROC_NULL` for none.
        recvbuf: an array as large as the one that comes.
        """
        sent = 0 if dest == PROC_NULL else sendbuf.nbytes
        received = 0 if source == PROC_NULL else recvbuf.nbytes
        self.carry_out(exchanges.Sendrecv(dest, source, sent, received), sendbuf, recvbuf)


class Grid(ABC):
    """Ranks in a grid."""

    @abstractmethod
    def Sub(self, remain_dims: Sequence[bool]) -> Communicator:  # noqa: N802
        """The ranks that differ from this one in the dimensions that remain, and in no other."""


def _check(op: str) -> None:
    if op != SUM:
        raise ValueError(f"ranks combine numbers by SUM, not by {op!r}")


def check_grid(dims: Sequence[int], ranks: int) -> tuple[int, ...]:
    """The dimensions of a grid. Raises ValueError unless it has a place for each rank, and no other."""
    if math.prod(dims) != ranks:
        raise ValueError(f"a grid of {' x '.join(map(str, dims))} has not {ranks} places")
    return tuple(dims)


def _is_in_place(sendbuf: Any) -> bool:
    return isinstance(sendbuf, str) and sendbuf == IN_PLACE


def _bytes(array: Any, parts: Sequence[Subarray]) -> tuple[int, ...]:
    return tuple(math.prod(each.subsizes) * array.itemsize for each in parts)


def _strided(parts: Sequence[Subarray], sizes: Sequence[int], own: int) -> int:
    """The bytes for others, if some part of an array is not one piece of its memory: rows of it, not whole."""
    in_pieces = any(size and each.subsizes[1:] != each.sizes[1:] for each, size in zip(parts, sizes, strict=True))
    return sum(sizes) - sizes[own] if in_pieces else 0
