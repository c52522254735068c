"""Arrays in blocks, one for each rank, and how they move from one arrangement of blocks to another.

A block is a box of the array: one slice for each dimension. Scattering, gathering and rearranging are the same: every
rank sends to every other what both of their boxes have in common.
"""

from __future__ import annotations

from dataclasses import dataclass

from py_backends.contract import Array
from py_backends.ranks.exchanges import Subarray
from py_backends.ranks.mpi import Communicator, Create_subarray

Box = tuple[slice, ...]
Boxes = tuple[Box, ...]
"""The box of each rank."""


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


def move(ranks: Communicator, source: Array, sources: Boxes, target: Array, targets: Boxes) -> None:
    """Fill each rank's `target`, its block by `targets`, from the `source` blocks of all ranks."""
    here = ranks.rank
    sent = [_part(_common(sources[here], box), sources[here]) for box in targets]
    received = [_part(_common(targets[here], box), targets[here]) for box in sources]
    ranks.Alltoallw((source, sent), (target, received))


def _part(box: Box, outer: Box) -> Subarray:
    """A box within one that contains it, as a type of message."""
    return Create_subarray(extent(outer), extent(box), [each.start for each in inside(box, outer)])


def _common(one: Box, other: Box) -> Box:
    """What two boxes have in common."""
    starts = [max(a.start, b.start) for a, b in zip(one, other, strict=True)]
    stops = [min(a.stop, b.stop) for a, b in zip(one, other, strict=True)]
    return tuple(slice(start, max(start, stop)) for start, stop in zip(starts, stops, strict=True))
