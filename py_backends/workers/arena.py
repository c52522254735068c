"""Guarded memory for the arrays of a case: each array lies between two zones. An arena holds one case at a time.

The zones of an input hold the format's poison, usually NaN. A kernel that reads past an input thus gets a wrong result.
The zones of an output hold a known value, which each run must leave as it is. Workers attach the inputs read-only.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np

from py_backends.contract import Array
from py_backends.number_formats import number_format
from py_backends.results.spec import Sizes
from py_backends.system.shared_memory import SharedMemory

_SHORTEST_ZONE, _LONGEST_ZONE = 1024, 1 << 16
_CACHE_LINE = 64


class Span(NamedTuple):
    """Where an array lies in its memory: its first byte, its size in bytes, and that of the zone behind it."""

    first: int
    size: int
    zone: int

    @property
    def end(self) -> int:
        """The end of the zone behind it, in bytes."""
        return self.first + self.size + self.zone


def zone_elements(sizes: Sizes) -> int:
    """Elements of a zone. It holds a whole row if that is not too long, so that one row too many is detected."""
    return _SHORTEST_ZONE + int(min(max(sizes, default=0), _LONGEST_ZONE))


def span(elements: int, sizes: Sizes, dtype: np.dtype[Any], start: int = 0) -> Span:
    """The place of an array whose first element is `start` elements past the beginning of a page."""
    zone = zone_elements(sizes) * dtype.itemsize
    first = -(-zone // mmap.PAGESIZE) * mmap.PAGESIZE + start * dtype.itemsize
    return Span(first, elements * dtype.itemsize, zone)


TO_MOVE_IN = 64 * mmap.PAGESIZE
"""Bytes. Within one page each process would keep the upper bits of its addresses. By these a CPU tells apart what lies
in its first cache: a sum in the caches took 2.7 us in one process and 3.6 us in another, for life."""

_MAPPED_AGAIN = 1 << 24
"""Bytes of a case up to which workers map its memory anew when it moves. For more, that takes longer than a kernel."""


class Arena:
    """Memory for inputs and outputs.

    sizes: of the current case.
    dtype: in which it runs.
    spans: of its arrays, inputs and then outputs.
    inputs: its inputs as flat arrays.
    outputs: its outputs in their shapes.
    moves: how often it has moved so that those who map it have to map it again.
    """

    def __init__(self, capacities: Sequence[int]) -> None:
        """Allocate memory. `capacities`: the bytes of each array and its zones."""
        self._memory = [SharedMemory.create(capacity) for capacity in capacities]
        self.sizes: Sizes = ()
        self.dtype = np.dtype(np.float32)
        self.spans: list[Span] = []
        self.inputs: list[Array] = []
        self.outputs: list[Array] = []
        self.moves = 0
        self._dtypes: list[np.dtype[Any]] = []
        self._output_zones: list[list[Array]] = []

    @property
    def output(self) -> Array:
        """The first of its outputs, which is the only one of most kernels."""
        return self.outputs[0]

    @property
    def descriptors(self) -> list[int]:
        """The file descriptors of the memory of all arrays. A worker attaches them."""
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
        dtypes: Sequence[np.dtype[Any]] | None = None,
        outputs: int = 1,
        bare: bool = False,
    ) -> None:
        """Make room for a case, and poison its outputs. The caller fills in the inputs.

        starts: for each array, the distance of its first element from the beginning of a page, in elements. The last
            entry applies to all further arrays.
        dtypes: of the arrays, inputs and then as many outputs. None: all have that of the case.
        bare: whether kernels get the arrays without the zones behind them.

        Raises MemoryError if an array does not fit.
        """
        self.sizes, self.dtype = tuple(sizes), dtype
        counts = [math.prod(shape) for shape in shapes]
        beginnings = [*starts, *[starts[-1]] * len(counts)]
        self._dtypes = [dtype] * len(counts) if dtypes is None else list(dtypes)
        self.spans = [
            span(count, self.sizes, of_array, start)
            for count, of_array, start in zip(counts, self._dtypes, beginnings, strict=False)
        ]
        if any(each.end > memory.bytes.size for each, memory in zip(self.spans, self._memory, strict=True)):
            raise MemoryError(f"an array of {max(counts)} elements and its guard zones exceed {self.capacities} bytes")
        self._lay(shapes[-outputs:])
        if bare:
            self.spans = [each._replace(zone=0) for each in self.spans]

    def move(self, order: Random) -> None:
        """Lay each array elsewhere: at any cache line of the first pages behind its zone. Inputs keep their values.

        Where arrays lie makes kernels a few per cent faster or slower (T. Mytkowicz and others, Producing wrong data
        without doing anything obviously wrong!, ASPLOS 2009), so it is drawn by lot again and again. Each memory has
        to have `TO_MOVE_IN` to spare. A small case is also mapped anew, which draws the upper bits of addresses.
        """
        if sum(self.capacities) <= _MAPPED_AGAIN:
            self.moves += 1
        before = self.inputs
        for at, old in enumerate(self.spans):
            behind_zone = -(-old.zone // mmap.PAGESIZE) * mmap.PAGESIZE
            first = behind_zone + _CACHE_LINE * order.randrange(TO_MOVE_IN // _CACHE_LINE)
            self.spans[at] = old._replace(first=first)
        for at, values in enumerate(before):
            self._part(at, self.spans[at].first, self.spans[at].size)[...] = values  # NumPy minds that they overlap
        self._lay([output.shape for output in self.outputs])

    def _lay(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Take the arrays from their places, and fill the zones. `shapes`: of the outputs, which are poisoned."""
        arrays = [self._part(at, each.first, each.size) for at, each in enumerate(self.spans)]
        inputs = len(arrays) - len(shapes)
        self.inputs = arrays[:inputs]
        self.outputs = [array.reshape(shape) for array, shape in zip(arrays[inputs:], shapes, strict=True)]
        for at, array in enumerate(self.inputs):
            for zone in self._zones(at):
                zone.fill(number_format(array.dtype).poison)
        self._output_zones = [self._zones(at) for at in range(inputs, len(arrays))]
        self.poison()

    def poison(self) -> None:
        """Fill the outputs with a value that is no result, so that an old result cannot pass for a new one."""
        for output, zones in zip(self.outputs, self._output_zones, strict=True):
            filled = number_format(output.dtype)
            output.fill(filled.poison)
            for zone in zones:
                zone.fill(filled.kept)

    def trespass(self) -> str | None:
        """A sentence that says where a kernel wrote outside an output; None if it did not."""
        for at, (output, zones) in enumerate(zip(self.outputs, self._output_zones, strict=True), 1):
            kept, places = number_format(output.dtype).kept, ("before the beginning", "past the end")
            wrong = [
                place for place, zone in zip(places, zones, strict=True) if not (zone == output.dtype.type(kept)).all()
            ]
            if wrong:
                which = "its output" if len(self.outputs) == 1 else f"its output {at}"
                return f"it wrote {' and '.join(wrong)} of {which}"
        return None

    def close(self) -> None:
        """Close the descriptors. The memory stays until the arrays on it are gone."""
        for memory in self._memory:
            memory.close()

    def _zones(self, at: int) -> list[Array]:
        """The zones before and behind an array."""
        first, size, zone = self.spans[at]
        return [self._part(at, 0, first), self._part(at, first + size, zone)]

    def _part(self, at: int, first: int, size: int) -> Array:
        return self._memory[at].bytes[first : first + size].view(self._dtypes[at])
