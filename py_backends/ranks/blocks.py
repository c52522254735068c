"""Arrays in blocks, one for each rank, and how they move from one arrangement of blocks to another.

A block is a box of the array: one slice for each dimension. Scattering, gathering and rearranging are the same: every
rank sends to every other what both of their boxes have in common.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

from py_backends.contract import Array

if TYPE_CHECKING:
    from py_backends.ranks.interface import MPI  # importing it makes this process a rank

Box = tuple[slice, ...]
Boxes = tuple[Box, ...]
"""The box of each rank."""

_OF_BYTES = {1: "BYTE", 2: "UINT16_T", 4: "UINT32_T", 8: "UINT64_T"}
"""The names of MPI's types by the bytes of an element. Values do not matter for moving, and MPI has no bfloat16."""


class Exchanging(Protocol):
    """Ranks that exchange parts of arrays. `rank` is this one's place."""

    rank: int

    def exchanging(self, sent: Any, received: Any, count: int) -> AbstractContextManager[None]:
        """Exchange them, so many bytes, while the caller does something else."""


@dataclass
class Blocks:
    """An array of a shape in blocks.

    boxes: what each rank holds; `block` is this rank's.
    of_needed: what each rank's kernel needs, which includes what the rank holds; `needed` is this rank's memory for it.
    """

    shape: tuple[int, ...]
    boxes: Boxes
    of_needed: Boxes
    block: Array
    needed: Array


def on_first(shape: tuple[int, ...], ranks: int) -> Boxes:
    """The whole array on the first rank, nothing on the others."""
    return tuple(tuple(slice(0, size if rank == 0 else 0) for size in shape) for rank in range(ranks))


def on_every(shape: tuple[int, ...], ranks: int) -> Boxes:
    """The whole array on every rank."""
    return (tuple(slice(0, size) for size in shape),) * ranks


def extent(box: Box) -> tuple[int, ...]:
    """The shape of a box."""
    return tuple(each.stop - each.start for each in box)


def inside(box: Box, outer: Box) -> Box:
    """The place of a box within one that contains it."""
    return tuple(
        slice(part.start - whole.start, part.stop - whole.start) for part, whole in zip(box, outer, strict=True)
    )


def parts_in(box: Box, others: Boxes) -> list[tuple[int, ...]]:
    """The extent of what a box has in common with each of others. No boxes are made: predictions ask for thousands."""
    return [
        tuple([max(0, min(a.stop, b.stop) - max(a.start, b.start)) for a, b in zip(box, other, strict=True)])
        for other in others
    ]


def in_pieces(box: Box, parts: Sequence[tuple[int, ...]]) -> bool:
    """Whether some part of a box, by its extent, is not one piece of its memory: rows of it, not whole."""
    whole_rows = extent(box)[1:]
    return any(part[1:] != whole_rows and math.prod(part) for part in parts)


def move(ranks: Exchanging, source: Array, sources: Boxes, target: Array, targets: Boxes) -> None:
    """Fill each rank's `target`, its block by `targets`, from the `source` blocks of all ranks.

    A rank copies what it keeps itself, while the others fetch their parts.
    """
    here = ranks.rank
    parts_sent = [_common(sources[here], box) for box in targets]
    parts_received = [_common(targets[here], box) for box in sources]
    kept = parts_sent[here]
    parts_sent[here] = parts_received[here] = tuple(slice(0, 0) for _ in kept)
    with (
        _Types(source, sources[here], parts_sent) as sent,
        _Types(target, targets[here], parts_received) as received,
        ranks.exchanging(sent.message, received.message, sent.bytes),
    ):
        target[inside(kept, targets[here])] = source[inside(kept, sources[here])]


class _Types:
    """A rank's side of the exchange: the part of its block that moves, as an MPI type for each other rank."""

    def __init__(self, block: Array, box: Box, parts: Sequence[Box]) -> None:
        from py_backends.ranks.interface import MPI

        self._element: MPI.Datatype = getattr(MPI, _OF_BYTES[block.itemsize])
        sizes = [math.prod(extent(part)) * block.itemsize for part in parts]
        self.bytes = sum(sizes)
        self._made = [self._type(box, part) if size else None for part, size in zip(parts, sizes, strict=True)]
        counts = [int(made is not None) for made in self._made]
        types = [made or self._element for made in self._made]
        self.message: Any = [block.view(f"u{block.itemsize}"), (counts, [0] * len(parts)), types]

    def _type(self, box: Box, part: Box) -> MPI.Datatype:
        first = [each.start for each in inside(part, box)]
        return self._element.Create_subarray(extent(box), extent(part), first).Commit()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for made in self._made:
            if made is not None:
                made.Free()


def _common(one: Box, other: Box) -> Box:
    """What two boxes have in common."""
    starts = [max(a.start, b.start) for a, b in zip(one, other, strict=True)]
    stops = [min(a.stop, b.stop) for a, b in zip(one, other, strict=True)]
    return tuple(slice(start, max(start, stop)) for start, stop in zip(starts, stops, strict=True))
