"""A launch in outline: what a rank computes, exchanges and holds, without its arrays.

The source's own function runs, on arrays that have a shape and no memory. So it cannot say anything else than it does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from py_backends.errors import WrongRequest
from py_backends.ranks import mpi
from py_backends.ranks.blocks import extent
from py_backends.ranks.exchanges import Exchange
from py_backends.ranks.layout import Distributed
from py_backends.ranks.traffic import Traffic


@dataclass(frozen=True)
class Call:
    """The rank computes its block in one call of these sizes."""

    sizes: tuple[int, ...]


Event = Call | Traffic
"""What a rank does: it computes, or takes part in an exchange, or copies."""


@dataclass(frozen=True)
class Outline:
    """A rank in one launch.

    events: what it does, in this order.
    nbytes: of its arrays, those that it borrows for the launch included, where they are most.
    """

    events: tuple[Event, ...]
    nbytes: int


def outline(kernel: Distributed, rank: int, ranks: int, sizes: tuple[int, ...]) -> Outline:
    """What a rank does in a launch. Raises WrongRequest for a source that does more with arrays than pass them on."""
    recorded = record(kernel, rank, ranks, sizes)
    return Outline(tuple(recorded.events), recorded.nbytes)


def record(kernel: Distributed, rank: int, ranks: int, sizes: tuple[int, ...]) -> Record:
    """As `outline`, with all exchanges one by one."""
    shapes = kernel.problem.shapes(sizes)
    needs = getattr(kernel.text, "needs", kernel.text.blocks)(rank, ranks, kernel.widths, *sizes)
    dtypes = kernel.problem.array_dtypes(kernel.dtype)
    recorded = Record()
    arrays = [
        recorded.array(extent(box) if shape else (), dtype)
        for shape, box, dtype in zip(shapes, needs, dtypes, strict=True)
    ]

    def local(*arrays: _Shape, **numbers: Any) -> None:
        whole, inputs = {**kernel.problem.numbers, **numbers}, arrays[: len(kernel.problem.inputs)]
        recorded.events.append(Call((*kernel.problem.sizes(*inputs), *whole.values())))  # type: ignore[arg-type]  # shapes do

    try:
        getattr(kernel.text, kernel.problem.name)(_Recorder(rank, ranks, recorded), local, *arrays, *sizes)
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        raise WrongRequest(
            f"the source of {kernel.problem.name} for mpi cannot be followed without its arrays: {error}"
        ) from error
    return recorded


@dataclass
class Record:
    """What one rank does.

    exchanges: each with the first of the ranks that take part, by its number among all, and how many they are.
    nbytes: of its arrays.
    """

    events: list[Event] = field(default_factory=list)
    exchanges: list[tuple[int, int, Exchange]] = field(default_factory=list)
    nbytes: int = 0

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> _Shape:
        made = _Shape(shape, dtype, self.events)
        self.nbytes += made.nbytes
        return made


_NOTHING = np.empty(())


@dataclass(slots=True)
class _Shape:
    """An array without memory. It can be cut, set and added to, and its elements are nowhere."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    events: list[Event]

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __getitem__(self, where: Any) -> _Shape:
        if isinstance(where, slice):  # what goes around thousands of ranks is cut as often
            shape: tuple[int, ...] = (len(range(*where.indices(self.shape[0]))), *self.shape[1:])
        else:
            shape = np.broadcast_to(_NOTHING, self.shape)[where].shape
        return _Shape(shape, self.dtype, self.events)

    def __setitem__(self, where: Any, array: object) -> None:
        part = self[where]
        in_one_piece = part.shape[1:] == self.shape[1:]
        self.events.append(Traffic(copied=part.nbytes) if in_one_piece else Traffic(strided=part.nbytes))

    def __iadd__(self, other: object) -> Self:
        # One number for all stays in a register, so that one array is read in place of two.
        of_one_number = math.prod(getattr(other, "shape", ())) == 1 < self.size
        self.events.append(Traffic(added=self.nbytes / 2 if of_one_number else self.nbytes))
        return self

    def reshape(self, *shape: int) -> _Shape:
        return _Shape(np.broadcast_to(_NOTHING, self.shape).reshape(shape).shape, self.dtype, self.events)


class _Recorder(mpi.Communicator):
    """A communicator that carries nothing out. first: of its ranks, by its number among all."""

    def __init__(self, rank: int, size: int, recorded: Record, first: int = 0) -> None:
        self.rank, self.size, self.recorded, self._first = rank, size, recorded, first

    def empty(self, shape: Sequence[int], dtype: Any) -> _Shape:
        return self.recorded.array(tuple(shape), np.dtype(dtype))

    def Create_cart(self, dims: Sequence[int]) -> _Grid:  # noqa: N802  # MPI's name
        return _Grid(self, mpi.check_grid(dims, self.size))

    def carry_out(self, exchange: Exchange, *buffers: Any) -> None:
        self.recorded.events.append(exchange.traffic(self.rank))
        self.recorded.exchanges.append((self._first, self.size, exchange))


class _Grid(mpi.Grid):
    def __init__(self, ranks: _Recorder, dims: tuple[int, ...]) -> None:
        self._ranks, self._dims = ranks, dims
        self._coords = tuple(int(place) for place in np.unravel_index(ranks.rank, dims))

    def Sub(self, remain_dims: Sequence[bool]) -> _Recorder:  # noqa: N802  # MPI's name
        rank, size, first = 0, 1, 0
        for place, along, remains in zip(self._coords, self._dims, remain_dims, strict=True):
            first = first * along + (0 if remains else place)
            if remains:
                rank, size = rank * along + place, size * along
        return _Recorder(rank, size, self._ranks.recorded, first)
