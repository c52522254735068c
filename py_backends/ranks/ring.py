"""Blocks that go around a ring of ranks: each rank has one at a time, and none has room for all of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np

from py_backends.contract import Array
from py_backends.ranks import traffic
from py_backends.ranks.exchanges import Exchange, Line
from py_backends.ranks.traffic import Traffic

Blocks = Mapping[str, Array]
"""A block for each stated `Shift`, by its name."""
Turn = tuple[int, tuple[Array, ...]]
"""A rank's number, and that rank's own blocks."""


@dataclass(frozen=True)
class Shift(Exchange):
    """Give the next rank a block, and get one from the rank before. The last rank's next one is the first.

    counts: the rows of each rank's own block, or its elements.
    width: bytes of a row.

    All send as much, for the largest block. Run on memory of so much, and on as much for what comes.
    """

    counts: Sequence[int]
    width: int

    def sent(self, place: int) -> int:
        return max(self.counts) * self.width if len(self.counts) > 1 else 0

    def traffic(self, place: int, *arrays: Any) -> Traffic:
        return Traffic((traffic.Round(self.sent(place)),)) if self.sent(place) else Traffic()

    def run(self, line: Line, *arrays: Any) -> None:
        here, there = (array.reshape(-1).view(np.uint8) for array in arrays)
        after, before = (line.rank + 1) % line.size, (line.rank - 1) % line.size
        with line.counted(self.sent(line.rank)):
            line.mpi.Sendrecv(here, after, recvbuf=there, source=before)


class Ranks(Protocol):
    """Ranks that exchange what is stated. `rank` is this one's number, and its `memory` can be lent."""

    rank: int
    size: int
    stated: Mapping[str, Exchange]
    memory: Any

    def exchange(self, name: str, *arrays: Any) -> None:
        """Carry out an exchange."""


def counts(ranks: Ranks, name: str) -> Sequence[int]:
    """The rows of the blocks of all ranks, as a `Shift` states them."""
    return cast(Shift, ranks.stated[name]).counts


@contextlib.contextmanager
def room(ranks: Ranks, own: Blocks) -> Iterator[tuple[list[Array], list[Array]]]:
    """Memory for the largest block of each name, twice: for one that goes, and one that comes."""
    with contextlib.ExitStack() as lent:
        one, other = (
            [
                lent.enter_context(ranks.memory.lent((max(counts(ranks, name)), *block.shape[1:]), block.dtype))
                for name, block in own.items()
            ]
            for _ in range(2)
        )
        yield one, other


def fill(ranks: Ranks, own: Blocks, space: Sequence[Array]) -> list[Array]:
    """Blocks of a rank with as many rows as any rank's has.

    Where all have as many, they are the blocks themselves. It is so for all ranks, or for none.
    """
    filled = []
    for (name, block), memory in zip(own.items(), space, strict=True):
        if len(set(counts(ranks, name))) == 1:
            filled.append(block)
        else:
            memory[: block.shape[0]] = block
            filled.append(memory)
    return filled


def around(ranks: Ranks, own: Blocks) -> Iterator[Turn]:
    """See `Communicator.around`."""
    if ranks.size == 1:
        yield ranks.rank, tuple(own.values())
        return
    with room(ranks, own) as (one, other):
        here, there = fill(ranks, own, other), one
        for turn in range(ranks.size):
            if turn + 1 < ranks.size:  # before it computes: ranks that begin together do not wait for one another
                for name, sent, received in zip(own, here, there, strict=True):
                    ranks.exchange(name, sent, received)
            owner = (ranks.rank - turn) % ranks.size
            yield owner, tuple(block[: counts(ranks, name)[owner]] for name, block in zip(own, here, strict=True))
            here, there = there, other if there is one else one
