"""What the ranks of one opened device hold and do. Every rank has a session, and all do the same at the same time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter
from types import ModuleType
from typing import Any

import numpy as np

from py_backends import registry
from py_backends.contract import Array, Problem
from py_backends.ranks.blocks import Blocks, Boxes, extent, inside, move, on_every, on_first
from py_backends.ranks.communicator import Communicator
from py_backends.ranks.exchanges import Exchange
from py_backends.ranks.local import LocalKernels, OnArrays

FIRST = 0
"""The rank that sees the caller's arrays."""
Layout = tuple[tuple[tuple[int, ...], Boxes, Boxes], ...]


@dataclass
class Held:
    """A buffer: an array in blocks, and on the first rank what of the caller's memory lies behind it.

    blocks: None until a launch has said what shape it has.
    behind: the whole of it, flat, where `blocks` is None.
    """

    dtype: np.dtype[Any]
    blocks: Blocks | None
    behind: Array


@dataclass(frozen=True)
class Prepared:
    """A kernel on ranks for inputs of a dtype: its problem, its source's module, and what each rank computes with.

    The module's `blocks` says which box of each array a rank holds, and its `needs` which box its kernel is given.
    Where it has no `needs`, that is the same box. Else it contains the rank's own box, and others' shares are gathered
    around that. Its `exchanges`, if it has any, says what a launch exchanges.
    """

    problem: Problem
    text: ModuleType
    local: OnArrays
    dtype: np.dtype[Any]

    @property
    def widths(self) -> tuple[int, ...]:
        """Bytes of an element of each array."""
        return (self.dtype.itemsize,) * len(self.problem.inputs) + (self.problem.result_dtype(self.dtype).itemsize,)


_ELEMENT = (1,)
"""How an array without dimensions lies on ranks: the box of one element can be empty, which one without cannot."""


@lru_cache
def _layout(kernel: Prepared, ranks: int, sizes: tuple[int, ...]) -> Layout:
    """For each array its shape, its box on each rank, and the box that each rank computes with.

    An array without dimensions lies on every rank if it is an input, whatever the source says, and on the first if it
    is the output. Each rank has memory for it.
    """
    shapes = kernel.problem.shapes(sizes)
    held, needed = (
        zip(*(boxes(rank, ranks, kernel.widths, *sizes) for rank in range(ranks)), strict=True)
        for boxes in (kernel.text.blocks, getattr(kernel.text, "needs", kernel.text.blocks))
    )
    every, output = on_every(_ELEMENT, ranks), len(shapes) - 1
    of_element = {
        at: on_first(_ELEMENT, ranks) if at == output else every for at, shape in enumerate(shapes) if not shape
    }
    return tuple(
        (_ELEMENT, of_element[at], every) if at in of_element else array
        for at, array in enumerate(zip(shapes, held, needed, strict=True))
    )


@lru_cache
def _exchanges(kernel: Prepared, rank: int, ranks: int, sizes: tuple[int, ...]) -> Mapping[str, Exchange]:
    """What a launch exchanges, as the source states it."""
    if not hasattr(kernel.text, "exchanges"):
        return {}
    stated: Mapping[str, Exchange] = kernel.text.exchanges(rank, ranks, kernel.widths, *sizes)
    return stated


class Session:
    """The ranks of one device; `memory` is an array of the caller's on the first rank, and None on the others.

    ranks: these ranks.
    """

    def __init__(self, ranks: Communicator, threads: int) -> None:
        self.ranks = ranks
        self._local = LocalKernels(threads)
        self._kernels: dict[tuple[str, str, str], Prepared] = {}
        self._held: dict[int, Held] = {}

    def prepare(self, backend: str, kernel: str, variant: str, dtype: str) -> str:
        """Make a kernel ready on every rank; by which backend and target each computes its block."""
        local, by = self._local.prepare(kernel, np.dtype(dtype))
        text = registry.kernel_texts(kernel, backend)[variant]
        self._kernels[kernel, variant, dtype] = Prepared(text.problem, text.load(), local, np.dtype(dtype))
        return by

    def upload(self, buffer: int, dtype: str, place: Sequence[Any] | None, memory: Array | None = None) -> None:
        """Scatter an array to the blocks' owners; one for no kernel yet stays on the first rank.

        place: the kernel, its variant, the dtype and sizes, and which of its arrays it is.
        """
        if place is None:
            behind = np.empty(0, dtype) if memory is None else memory.copy()
            self._held[buffer] = Held(np.dtype(dtype), None, behind)
            return
        self.allocate(buffer, dtype, place)
        held = self._held[buffer]
        assert held.blocks is not None, "it has just been placed"
        self._scatter(memory, held.blocks)
        if memory is not None:
            held.behind = memory[math.prod(held.blocks.shape) :].copy()

    def allocate(self, buffer: int, dtype: str, place: Sequence[Any] | None) -> None:
        """Blocks for an array, contents undefined; for no kernel yet none."""
        blocks = None
        if place is not None:
            kernel, variant, of_inputs, sizes, at = place
            prepared = self._kernels[kernel, variant, of_inputs]
            blocks = self._new(np.dtype(dtype), *_layout(prepared, self.ranks.size, tuple(sizes))[at])
        self._held[buffer] = Held(np.dtype(dtype), blocks, np.empty(0, dtype))

    def download(self, buffer: int, memory: Array | None = None) -> None:
        """Gather an array from its blocks' owners."""
        held = self._held[buffer]
        whole = np.empty(0, held.dtype) if memory is None else memory
        if held.blocks is not None:
            shape, count = held.blocks.shape, math.prod(held.blocks.shape)
            boxes = on_first(shape, self.ranks.size)
            target = whole[: count if memory is not None else 0].reshape(extent(boxes[self.ranks.rank]))
            move(self.ranks, held.blocks.block, held.blocks.boxes, target, boxes)
            whole = whole[count:]
        if memory is not None:
            whole[: held.behind.size] = held.behind

    def release(self, buffers: Sequence[int]) -> None:
        """Let the memory of buffers go, which they may not have come to get."""
        for held in (self._held.pop(buffer, None) for buffer in buffers):
            if held and held.blocks:
                self.ranks.memory.give_back(held.blocks.needed)

    def launch(
        self, kernel: str, variant: str, dtype: str, buffers: Sequence[int], sizes: Sequence[int]
    ) -> tuple[float, float, int]:
        """Run a kernel on buffers, inputs first: this rank's seconds, those of communication, and the bytes it sent.

        What lies in other blocks than the kernel's is rearranged first, which counts as communication.
        """
        prepared, ranks = self._kernels[kernel, variant, dtype], self.ranks
        layouts = _layout(prepared, ranks.size, tuple(sizes))
        ranks.stated = _exchanges(prepared, ranks.rank, ranks.size, tuple(sizes))
        ranks.tally.seconds, ranks.tally.sent = 0.0, 0
        ranks.mpi.Barrier()
        begin = perf_counter()
        held = [self._held[buffer] for buffer in buffers]
        replaced: list[Blocks] = []
        arranged = [
            self._arrange(each, *layout, replaced, filled=at < len(held) - 1)
            for at, (each, layout) in enumerate(zip(held, layouts, strict=True))
        ]
        shapes = prepared.problem.shapes(sizes)
        arrays = [each.needed if shape else each.needed[0, ...] for each, shape in zip(arranged, shapes, strict=True)]
        with ranks.tally.progress.counted(computing=True):
            getattr(prepared.text, kernel)(ranks, prepared.local, *arrays, *sizes)
        seconds = perf_counter() - begin
        for blocks in replaced:
            ranks.memory.give_back(blocks.needed)
        return seconds, ranks.tally.seconds, ranks.tally.sent

    def _arrange(
        self,
        held: Held,
        shape: tuple[int, ...],
        boxes: Boxes,
        of_needed: Boxes,
        replaced: list[Blocks],
        *,
        filled: bool,
    ) -> Blocks:
        """Bring a buffer into a kernel's blocks, where it does not lie in them; an output's contents stay behind.

        replaced: is given the blocks before. They stay as they are, since one buffer may be two inputs, which lie in
            different blocks.
        """
        old = held.blocks
        if old is not None and (old.shape, old.boxes, old.of_needed) == (shape, boxes, of_needed):
            return old
        new = self._new(held.dtype, shape, boxes, of_needed)
        if old is None:
            count = math.prod(shape)
            if filled:
                self._scatter(held.behind if self.ranks.rank == FIRST else None, new)
            held.behind = held.behind[count:].copy()
        elif filled:
            move(self.ranks, old.block, old.boxes, new.block, boxes)
        if old is not None:
            replaced.append(old)
        held.blocks = new
        return new

    def _scatter(self, memory: Array | None, blocks: Blocks) -> None:
        """Fill blocks from an array on the first rank, which may be longer."""
        boxes = on_first(blocks.shape, self.ranks.size)
        whole = np.empty(0, blocks.block.dtype) if memory is None else memory[: math.prod(blocks.shape)]
        move(self.ranks, whole.reshape(extent(boxes[self.ranks.rank])), boxes, blocks.block, blocks.boxes)

    def _new(self, dtype: np.dtype[Any], shape: tuple[int, ...], boxes: Boxes, of_needed: Boxes) -> Blocks:
        needed = of_needed[self.ranks.rank]
        memory = self.ranks.memory.take(extent(needed), dtype)
        return Blocks(shape, boxes, of_needed, memory[inside(boxes[self.ranks.rank], needed)], memory)
