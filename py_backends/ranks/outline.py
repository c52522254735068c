"""A launch in outline: what a rank computes, exchanges and holds, without its arrays.

The source's own function runs, on arrays that have a shape and no memory. So it cannot say anything else than it does.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from py_backends.errors import WrongRequest
from py_backends.ranks import ring
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
    shapes = kernel.problem.shapes(sizes)
    needs = getattr(kernel.text, "needs", kernel.text.blocks)(rank, ranks, kernel.widths, *sizes)
    *inputs, output = (
        _Shape(extent(box) if shape else (), np.dtype(kernel.dtype)) for shape, box in zip(shapes, needs, strict=True)
    )
    output = _Shape(output.shape, kernel.problem.result_dtype(kernel.dtype))
    recorder = _Recorder(rank, ranks, kernel.exchanges(rank, ranks, sizes))
    for array in (*inputs, output):
        recorder.memory.hold(array.nbytes)
        array.events = recorder.events

    def local(*arrays: _Shape, **numbers: int) -> None:
        whole = {**kernel.problem.numbers, **numbers}
        recorder.events.append(Call((*kernel.problem.sizes(*arrays[:-1]), *whole.values())))  # type: ignore[arg-type]  # shapes do

    try:
        getattr(kernel.text, kernel.problem.name)(recorder, local, *inputs, output, *sizes)
    except (AttributeError, TypeError) as error:
        raise WrongRequest(
            f"the source of {kernel.problem.name} for mpi cannot be followed without its arrays: {error}"
        ) from error
    return Outline(tuple(recorder.events), recorder.memory.most)


_NOTHING = np.empty(())


@dataclass
class _Shape:
    """An array without memory. It can be cut, set and added to, and its elements are nowhere."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    events: list[Event] = field(default_factory=list)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __getitem__(self, where: Any) -> _Shape:
        part = np.broadcast_to(_NOTHING, self.shape)[where]
        return _Shape(part.shape, self.dtype, self.events)

    def __setitem__(self, where: Any, array: object) -> None:
        part = self[where]
        in_one_piece = part.shape[1:] == self.shape[1:]
        self.events.append(Traffic(copied=part.nbytes) if in_one_piece else Traffic(strided=part.nbytes))

    def __iadd__(self, other: object) -> Self:
        self.events.append(Traffic(added=self.nbytes))
        return self

    def reshape(self, *shape: int) -> _Shape:
        return _Shape(np.broadcast_to(_NOTHING, self.shape).reshape(shape).shape, self.dtype, self.events)


class _Memory:
    """Counts what a rank holds. most: bytes, where they are most. events: what is done with its arrays is added."""

    def __init__(self, events: list[Event]) -> None:
        self.most = self._now = 0
        self._events = events

    def hold(self, size: int) -> None:
        self._now += size
        self.most = max(self.most, self._now)

    @contextlib.contextmanager
    def lent(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Iterator[_Shape]:
        array = _Shape(shape, np.dtype(dtype), self._events)
        self.hold(array.nbytes)
        yield array
        self.hold(-array.nbytes)


class _Recorder:
    """A communicator that carries nothing out."""

    def __init__(self, rank: int, size: int, stated: Mapping[str, Exchange]) -> None:
        self.rank, self.size, self.stated = rank, size, stated
        self.events: list[Event] = []
        self.memory = _Memory(self.events)

    def exchange(self, name: str, *arrays: Any) -> None:
        stated = self.stated[name]
        place = self.rank
        if stated.along is not None:
            grid, dimension = stated.along
            place = int(np.unravel_index(self.rank, grid)[dimension])
        self.events.append(stated.traffic(place, *arrays))

    def around(self, own: ring.Blocks) -> Iterator[ring.Turn]:
        """One iteration for all blocks that are as large: thousands of ranks have thousands of them, all alike."""
        if self.size == 1:
            yield self.rank, tuple(own.values())
            return
        rows = list(zip(*(ring.counts(self, name) for name in own), strict=True))
        others = rows[: self.rank] + rows[self.rank + 1 :]
        with ring.room(self, own) as (space, _):
            ring.fill(self, own, space)
            yield self.rank, tuple(own.values())
            for of_owner, times in Counter(others).items():
                first, at = len(self.events), others.index(of_owner)
                for name in own:
                    self.exchange(name)
                yield at + (at >= self.rank), self._blocks(own, of_owner)
                self.events += self.events[first:] * (times - 1)

    def _blocks(self, like: ring.Blocks, rows: Sequence[int]) -> Any:
        """Blocks as others, of so many rows."""
        return tuple(
            _Shape((count, *block.shape[1:]), block.dtype, self.events)
            for block, count in zip(like.values(), rows, strict=True)
        )
