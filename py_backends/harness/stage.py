"""Shared memory in which one case after the other stands, each array between guard zones.

A `Case` has memory of its own, which takes longer to make than a small kernel to run. Who runs thousands of small cases
puts them one by one on a stage, which a worker attaches once.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence

import numpy as np

from py_backends._contract import Array
from py_backends.harness.memory import SharedArray, guard_elements

_BYTE = np.dtype(np.uint8)
_KEPT = -1.0e30
"""Stands before and behind the output. Not NaN, since that is what reading beyond an input gives."""


class Stage:
    """Memory for the arrays of a case, whose first elements may lie anywhere.

    Before and behind each input stands NaN, so that a kernel that reads beyond it gives itself away; around the output
    a value that must still be there after each run. Workers attach the inputs read-only.
    """

    def __init__(self, arrays: int, capacity: int) -> None:
        """Room for `arrays` arrays of `capacity` bytes each, zones included. Pages never touched take no memory."""
        self.capacity = capacity
        self._memory = [SharedArray.create(capacity, 0, _BYTE) for _ in range(arrays)]
        self.sizes: tuple[int, ...] = ()
        self.dtype = np.dtype(np.float32)
        self.spans: list[tuple[int, int]] = []
        """For each array, the first byte of its content, and the bytes of it and, as a rule, the zone behind it."""
        self.output = np.empty(0, self.dtype)
        self._zones: list[Array] = []

    @property
    def descriptors(self) -> list[int]:
        """Of the inputs and the output, for a worker to attach."""
        return [shared.descriptor for shared in self._memory]

    @property
    def elements(self) -> list[int]:
        """Bytes of each array's memory."""
        return [self.capacity] * len(self._memory)

    def set(
        self,
        sizes: Sequence[int],
        inputs: Sequence[Array],
        shape: tuple[int, ...],
        starts: Sequence[int],
        *,
        bare: bool = False,
    ) -> None:
        """Put a case on the stage: its inputs, and an output of NaN.

        shape: of the output, whose dtype is that of the inputs.
        starts: for each array, how many elements beyond the beginning of a page its first element lies.
        bare: whether spans end with the content, and not with the zone behind it.

        Raises MemoryError where an array does not fit.
        """
        self.sizes, self.dtype = tuple(sizes), inputs[0].dtype
        self.spans.clear()
        for memory, array, start in zip(self._memory, inputs, starts, strict=False):
            content, zones = self._place(memory, array.size, start)
            content[...] = array.reshape(-1)
            for zone in zones:
                zone.fill(np.nan)
        content, self._zones = self._place(self._memory[-1], math.prod(shape), starts[-1])
        if bare:
            lengths = [array.nbytes for array in inputs] + [content.nbytes]
            self.spans = [(first, length) for (first, _), length in zip(self.spans, lengths, strict=True)]
        self.output = content.reshape(shape)
        self.poison()

    def poison(self) -> None:
        """Fill the output with NaN, so that nothing old can pass for a result."""
        self.output.fill(np.nan)
        for zone in self._zones:
            zone.fill(_KEPT)

    def trespass(self) -> str | None:
        """Where something was written that is not the output; None where nothing was."""
        kept = self.dtype.type(_KEPT)
        places = ("before the beginning", "past the end")
        wrong = [place for place, zone in zip(places, self._zones, strict=True) if not (zone == kept).all()]
        return f"it wrote {' and '.join(wrong)} of its output" if wrong else None

    def close(self) -> None:
        """Give the descriptors back; the memory stays until the arrays on it are gone."""
        for shared in self._memory:
            shared.close()

    def _place(self, memory: SharedArray, elements: int, start: int) -> tuple[Array, list[Array]]:
        """The content of an array and its zones: whole pages and `start` elements before, a row and more behind."""
        item = self.dtype.itemsize
        zone = guard_elements(self.sizes) * item
        first = -(-zone // mmap.PAGESIZE) * mmap.PAGESIZE + start * item
        behind = first + elements * item
        if behind + zone > self.capacity:
            raise MemoryError(f"an array of {elements} elements and its guard zones exceed {self.capacity} bytes")
        self.spans.append((first, elements * item + zone))
        before, content, after = (
            memory.whole[begin:end].view(self.dtype)
            for begin, end in ((0, first), (first, behind), (behind, behind + zone))
        )
        return content, [before, after]
