"""Blocks that go around a ring of ranks: each rank has one at a time, and none has room for all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from py_backends.contract import Array
from py_backends.ranks import traffic
from py_backends.ranks.exchanges import Exchange, Line
from py_backends.ranks.traffic import Traffic


@dataclass(frozen=True)
class Shift(Exchange):
    """Give the next rank a block, and get one from the rank before. The last rank's next one is the first.

    counts: the rows of each rank's own block, or its elements.
    width: bytes of a row.

    All send as much, for the largest block. Run on memory of so much, and on as much for what comes: see `around`.
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


class _Lender(Protocol):
    def lent(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> AbstractContextManager[Array]:
        """An array, contents undefined, for as long as the context lasts."""


class Ranks(Protocol):
    """All ranks, as a kernel sees them: this one's place, their number, its memory and its stated exchanges."""

    rank: int
    size: int
    memory: _Lender
    stated: Mapping[str, Exchange]

    def exchange(self, name: str, *arrays: Any) -> None:
        """Carry out an exchange."""


def around(ranks: Ranks, name: str, block: Array) -> Iterator[tuple[int, Array]]:
    """Each rank's block with that rank's number: first this rank's own, then that of the rank before it, and so on.

    name: of a `Shift` that is stated for as many times as there are other ranks. block: this rank's own, which is not
    written to. What is changed in another rank's block goes on with it.
    """
    stated = ranks.stated[name]
    assert isinstance(stated, Shift), "its counts tell how large the others' blocks are"
    if ranks.size == 1:
        yield ranks.rank, block
        return
    largest = max(stated.counts)
    memory = (largest, *block.shape[1:])
    with ranks.memory.lent(memory, block.dtype) as one, ranks.memory.lent(memory, block.dtype) as other:
        here, there = block, one
        if min(stated.counts) < largest:  # for all ranks alike: what is sent is as large as the largest block
            here = other
            here[: stated.counts[ranks.rank]] = block
        for turn in range(ranks.size):
            if turn:
                ranks.exchange(name, here, there)
                here, there = there, other if there is one else one
            owner = (ranks.rank - turn) % ranks.size
            yield owner, here[: stated.counts[owner]]
