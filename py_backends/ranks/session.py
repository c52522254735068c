"""What the ranks of one opened device hold and do. Every rank has a session, and all do the same at the same time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter
from typing import Any

import numpy as np

from py_backends import registry
from py_backends.contract import Array
from py_backends.ranks import measuring
from py_backends.ranks.blocks import Blocks, Boxes, extent, inside, move, on_first
from py_backends.ranks.communicator import CountingCommunicator
from py_backends.ranks.layout import Distributed
from py_backends.ranks.local import LocalKernels, OnArrays

FIRST = 0
"""The rank that sees the caller's arrays."""


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
    """A kernel on ranks, and what each rank computes its block with."""

    kernel: Distributed
    local: OnArrays


_layout = lru_cache(Distributed.layout)
"""A launch asks for the same again and again."""


class Session:
    """The ranks of one device; `memory` is an array of the caller's on the first rank, and None on the others.

    ranks: these ranks.
    """

    def __init__(self, ranks: CountingCommunicator, threads: int) -> None:
        self.ranks = ranks
        self._local = LocalKernels(threads)
        self._kernels: dict[tuple[str, str, str], Prepared] = {}
        self._held: dict[int, Held] = {}
        self._measured: dict[tuple[str, ...], Callable[[], int]] = {}

    def prepare(self, backend: str, kernel: str, variant: str, dtype: str) -> str:
        """Make a kernel ready on every rank; by which backend and target each computes its block."""
        local, by = self._local.prepare(kernel, np.dtype(dtype))
        text = registry.kernel_texts(kernel, backend)[variant]
        self._kernels[kernel, variant, dtype] = Prepared(Distributed(text.problem, text.load(), np.dtype(dtype)), local)
        return by

    def measure(self, what: str, samples: int, kernel: Sequence[str] = (), **numbers: Any) -> list[float]:
        """Seconds of the slowest rank, so many times, for what `measuring` has under that name.

        It has been done once before, as launches have, and its arrays are kept for the next time.

        kernel: its name, variant and dtype, for a call of it.
        """
        key = what, *kernel, *map(str, numbers.items())
        if key not in self._measured:
            if kernel:
                name, variant, dtype = kernel
                prepared = self._kernels[name, variant, dtype]
                numbers |= {"local": prepared.local, "problem": prepared.kernel.problem, "dtype": dtype}
            self._measured[key] = getattr(measuring, what)(self.ranks, **numbers)
            self._measured[key]()
        return measuring.slowest(self.ranks, self._measured[key], samples)

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
            blocks = self._new(np.dtype(dtype), *_layout(prepared.kernel, self.ranks.size, tuple(sizes))[at])
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
    ) -> tuple[float, float, int, int]:
        """Run a kernel on buffers, inputs first: this rank's seconds, those of communication, bytes sent and held.

        What lies in other blocks than the kernel's is rearranged first, which counts as communication.
        """
        prepared, ranks = self._kernels[kernel, variant, dtype], self.ranks
        layouts = _layout(prepared.kernel, ranks.size, tuple(sizes))
        ranks.tally.seconds, ranks.tally.sent = 0.0, 0
        ranks.mpi.Barrier()
        begin = perf_counter()
        held, inputs = [self._held[buffer] for buffer in buffers], len(prepared.kernel.problem.inputs)
        replaced: list[Blocks] = []
        arranged = [
            self._arrange(each, *layout, replaced, filled=at < inputs)
            for at, (each, layout) in enumerate(zip(held, layouts, strict=True))
        ]
        shapes = prepared.kernel.problem.shapes(sizes)
        arrays = [each.needed if shape else each.needed[0, ...] for each, shape in zip(arranged, shapes, strict=True)]
        with ranks.tally.progress.counted(computing=True):
            getattr(prepared.kernel.text, kernel)(ranks, prepared.local, *arrays, *sizes)
        seconds, most = perf_counter() - begin, ranks.memory.most
        ranks.memory.give_back_borrowed()
        for blocks in replaced:
            ranks.memory.give_back(blocks.needed)
        return seconds, ranks.tally.seconds, ranks.tally.sent, most

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
