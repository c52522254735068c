"""Guarded memory for the arrays of one case after the other, each array between two zones.

Before and behind each input stands the format's poison, NaN, so that a kernel that reads beyond it gives itself away;
around the output a value that must still be there after each run. Workers attach the inputs read-only.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from py_backends.contract import Array
from py_backends.harness.spec import Sizes
from py_backends.number_formats import number_format
from py_backends.shared_memory import SharedMemory

_SHORTEST_ZONE, _LONGEST_ZONE = 1024, 1 << 16


class Span(NamedTuple):
    """Where an array lies in its memory, in bytes: its first, how many it has, and how many the zone behind it."""

    first: int
    size: int
    zone: int

    @property
    def end(self) -> int:
        """Where its zone ends."""
        return self.first + self.size + self.zone


def zone_elements(sizes: Sizes) -> int:
    """Length of a zone: a whole row where that is not too long, so that one row too many is seen."""
    return _SHORTEST_ZONE + min(max(sizes, default=0), _LONGEST_ZONE)


def span(elements: int, sizes: Sizes, dtype: np.dtype[Any], start: int = 0) -> Span:
    """Where an array lies whose first element is `start` elements beyond the beginning of a page."""
    zone = zone_elements(sizes) * dtype.itemsize
    first = -(-zone // mmap.PAGESIZE) * mmap.PAGESIZE + start * dtype.itemsize
    return Span(first, elements * dtype.itemsize, zone)


class Arena:
    """Memory for inputs and an output.

    sizes, dtype: of the case that is there; the dtype is that of its inputs.
    spans: of its arrays.
    inputs: flat.
    """

    def __init__(self, capacities: Sequence[int]) -> None:
        """Room for arrays of so many bytes each, zones included."""
        self._memory = [SharedMemory.create(capacity) for capacity in capacities]
        self.sizes: Sizes = ()
        self.dtype = np.dtype(np.float32)
        self.spans: list[Span] = []
        self.inputs: list[Array] = []
        self.output: Array = np.empty(0, self.dtype)
        self._dtypes: list[np.dtype[Any]] = []
        self._output_zones: list[Array] = []

    @property
    def descriptors(self) -> list[int]:
        """Of the memory of inputs and output, for a worker to attach."""
        return [memory.descriptor for memory in self._memory]

    @property
    def capacities(self) -> list[int]:
        """Bytes of each array's memory."""
        return [memory.bytes.size for memory in self._memory]

    def place(
        self,
        sizes: Sizes,
        dtype: np.dtype[Any],
        shapes: Sequence[tuple[int, ...]],
        starts: Sequence[int] = (0,),
        *,
        result: np.dtype[Any] | None = None,
        bare: bool = False,
    ) -> None:
        """Make room for a case, whose inputs are to be filled in; its output is poisoned.

        starts: for each array, how many elements beyond the beginning of a page its first element lies; the last one
            counts for all further arrays.
        result: the dtype of the output; that of the inputs where None.
        bare: whether kernels are given the arrays without the zones behind them.

        Raises MemoryError where an array does not fit.
        """
        self.sizes, self.dtype = tuple(sizes), dtype
        counts = [math.prod(shape) for shape in shapes]
        beginnings = [*starts, *[starts[-1]] * len(counts)]
        self._dtypes = [dtype] * (len(counts) - 1) + [result or dtype]
        self.spans = [
            span(count, self.sizes, of_array, start)
            for count, of_array, start in zip(counts, self._dtypes, beginnings, strict=False)
        ]
        if any(each.end > memory.bytes.size for each, memory in zip(self.spans, self._memory, strict=True)):
            raise MemoryError(f"an array of {max(counts)} elements and its guard zones exceed {self.capacities} bytes")
        *self.inputs, output = [self._part(at, each.first, each.size) for at, each in enumerate(self.spans)]
        self.output = output.reshape(shapes[-1])
        for at in range(len(self.inputs)):
            for zone in self._zones(at):
                zone.fill(number_format(dtype).poison)
        self._output_zones = self._zones(-1)
        if bare:
            self.spans = [each._replace(zone=0) for each in self.spans]
        self.poison()

    def poison(self) -> None:
        """Fill the output with what is no result, so that nothing old can pass for one."""
        filled = number_format(self.output.dtype)
        self.output.fill(filled.poison)
        for zone in self._output_zones:
            zone.fill(filled.kept)

    def trespass(self) -> str | None:
        """Where something was written that is not the output; None where nothing was."""
        dtype = self.output.dtype
        kept, places = dtype.type(number_format(dtype).kept), ("before the beginning", "past the end")
        zones = zip(places, self._output_zones, strict=True)
        wrong = [place for place, zone in zones if not (zone == kept).all()]
        return f"it wrote {' and '.join(wrong)} of its output" if wrong else None

    def close(self) -> None:
        """Give the descriptors back; the memory stays until the arrays on it are gone."""
        for memory in self._memory:
            memory.close()

    def _zones(self, at: int) -> list[Array]:
        """Before and behind an array."""
        first, size, zone = self.spans[at]
        return [self._part(at, 0, first), self._part(at, first + size, zone)]

    def _part(self, at: int, first: int, size: int) -> Array:
        return self._memory[at].bytes[first : first + size].view(self._dtypes[at])
