"""The machine's measured ceilings: multiply-adds in registers, and bytes to and from memory and its caches.

The arithmetic ceiling, in FLOP/s, is 2 x multiply-adds / seconds, counted in single elements: chains of fused
multiply-adds that read and write registers alone. Each number format has the instruction of the CPU that does most of
them at once: of bfloat16 and int8 often one that adds several products to a sum.

The ceilings of memory, in bytes a second, belong to a working set: the bytes of all vectors together, which are gone
over again and again, so that they come from the nearest cache that holds them. Two are those of vecadd, which is
3 x elements x bytes of one / seconds. With ordinary stores (`stored_additions`) the hardware moves a fourth vector,
since it reads what it is about to overwrite; it is not counted. Non-temporal ones (`streamed_additions`) go past the
caches: the better way to memory, and a poor one where a cache holds everything. The third, `reads`, only reads.

Everything runs in the calling process, on threads of OpenMP: ask from a process in which no other pool spins.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np

from py_backends import _compiled
from py_backends.contract import Array

STREAMED, STORED, READS = "streamed_additions", "stored_additions", "reads"
"""The kinds of bandwidth."""
_KERNELS = {STREAMED: "vecadd_streamed", STORED: "vecadd_stored", READS: "read"}

_STEP = 98_304
"""Multiply-adds of one step of all chains, or of several where an instruction does fewer: six tiles of 16 x 16 sums, of
64 products of int8 each, are the most."""
_FACTOR, _ADDEND = 0.5, 1.0
"""Every chain tends to 2, so that no number grows, and none becomes subnormal. Sums of products grow, and stay normal;
of int8, in which the factor is 0, they stay as they are."""
_SETTLES_WITHIN = 0.03
"""Seconds of work after which clocks have come to where wide instructions keep them."""
_FIRST_COUNT = 2**20 // _STEP * _STEP

_PARTS = 8
"""A sample is the best of so many parts: what disturbs one of them is no property of the machine."""
_PART_SECONDS = 0.001
"""Of one part, in which starting and joining threads takes a few microseconds."""
_WARM_UP = 0.003
"""Seconds of passes that come before and do not count: who was stopped finds the caches full of others' data."""
_PART_BYTES = 2**24
"""Of one part of a larger working set: about as long, since memory moves some ten bytes a nanosecond."""
_REVISITED = 2**28
"""Bytes of the largest working set that a sample goes over in whole, after a pass that warms the caches. Of a larger
one it takes the parts that come next, which few caches still hold."""
_PAGE = 4096
_STAGGER = 1408
"""Bytes by which vectors lie apart beyond whole pages: where the addresses of a load and a store before it agree in
their last 12 bits, x86 takes them for the same, and the load waits."""


def instruction_sets(dtype: str = "float32") -> list[str]:
    """Those of this CPU that have multiply-adds in a dtype, best first; BackendUnavailable where none is compiled."""
    there = [name for name, _, there in _compiled.load("ceilings").instruction_sets() if there]
    return [name for name in there if ("multiply_add", dtype, name) in _kernels()]


def measured_dtypes() -> set[str]:
    """Those in which multiply-adds are measured."""
    return {dtype for kernel, dtype, _ in _kernels() if kernel == "multiply_add"}


class MultiplyAdds:
    """The arithmetic ceiling of one dtype, instruction set (the best one where None) and number of threads."""

    def __init__(self, dtype: np.dtype[Any], threads: int, instruction_set: str | None = None) -> None:
        self._kernel = _kernel("multiply_add", dtype, instruction_set)
        self._threads = threads
        self._constants = np.array([_FACTOR, _ADDEND], dtype)
        self._sums = np.empty(threads, self._kernel.result_dtype)
        self._per_second = self._settle()

    def flops_per_second(self, seconds: float = 0.02) -> float:
        """The rate of one run of about `seconds`, all threads together."""
        count = max(1, int(seconds * self._per_second / _STEP)) * _STEP
        per_second = count / self._run(count)
        # The best that was seen sizes later runs: one that was disturbed would make the next so short that only
        # starting threads is seen, and so on for ever.
        self._per_second = max(self._per_second, per_second)
        return 2 * self._threads * per_second

    def sample(self) -> float:
        """The rate of the best of several short runs."""
        self.flops_per_second(_PART_SECONDS)  # who was stopped finds clocks and caches as others left them
        return max(self.flops_per_second(_PART_SECONDS) for _ in range(_PARTS))

    def _settle(self) -> float:
        """Multiply-adds a second of one thread, at the clock that stays."""
        begin = perf_counter()
        while perf_counter() - begin < _SETTLES_WITHIN:
            taken = self._run(_FIRST_COUNT)
        return _FIRST_COUNT / taken

    def _run(self, count: int) -> float:
        begin = perf_counter()
        self._kernel([self._constants, self._sums], [count], self._threads)
        return perf_counter() - begin


class Block:
    """Memory from which every working set of up to `size` bytes takes its vectors: inputs of 1, and outputs."""

    def __init__(self, size: int) -> None:
        self._inputs = _whole_pages(size + 2 * _PAGE)
        self._output = _whole_pages(size // 3 + 2 * _PAGE)
        self._inputs.view(np.float32)[:] = 1  # as float64 an ordinary number, too
        self._output[:] = 0  # brings the pages in

    def vectors(self, kind: str, dtype: np.dtype[Any], elements: int) -> list[Array]:
        """a, b and c for additions; a alone for reads."""
        length = elements * dtype.itemsize
        if kind == READS:
            return [self._inputs[:length].view(dtype)]
        second = -(-length // _PAGE) * _PAGE + _STAGGER
        return [
            self._inputs[:length].view(dtype),
            self._inputs[second : second + length].view(dtype),
            self._output[2 * _STAGGER : 2 * _STAGGER + length].view(dtype),
        ]


class Bandwidth:
    """A ceiling of memory: `kind`, for a working set of about `working_set` bytes (whole elements, at least one).

    bytes: those of all its vectors, and of one pass.
    """

    def __init__(
        self,
        kind: str,
        dtype: np.dtype[Any],
        threads: int,
        working_set: int,
        block: Block | None = None,
        instruction_set: str | None = None,
    ) -> None:
        if dtype not in (np.float32, np.float64):
            dtype = np.dtype(np.float32)  # the bytes of any format are moved alike
        self._kernel = _kernel(_KERNELS[kind], dtype, instruction_set)
        self._threads = threads
        vectors = 1 if kind == READS else 3
        self._bytes_of_one = vectors * dtype.itemsize
        elements = max(1, round(working_set / self._bytes_of_one))
        self.bytes = elements * self._bytes_of_one
        self._vectors = (block or Block(self.bytes)).vectors(kind, dtype, elements)
        self._sums = [np.empty(threads, dtype)] if kind == READS else []
        self._windows = _windows(elements, self._bytes_of_one)
        self._next = 0
        self._per_second = self.bytes_per_second()

    def bytes_per_second(self, repetitions: int = 1) -> float:
        """The rate of `repetitions` passes in a row, all threads together."""
        return repetitions * self.bytes / self._run(slice(None), repetitions)

    def sample(self) -> float:
        """The rate of the best of several parts, where caches hold what they would after many passes."""
        if self.bytes > _REVISITED:
            rates = [self._part() for _ in range(_PARTS)]
        else:
            self._passes(_WARM_UP)
            rates = self._passes(_PARTS * _PART_SECONDS)
        self._per_second = max(self._per_second, *rates)
        return max(rates)

    def _passes(self, seconds: float) -> list[float]:
        """The rates of all parts of one pass, and of further passes until so many seconds are over."""
        rates: list[float] = []
        end = perf_counter() + seconds
        while not rates or perf_counter() < end:
            rates += [self._part() for _ in self._windows]
        return rates

    def _part(self) -> float:
        """The rate over the next part, gone over again and again where it is small."""
        window = self._windows[self._next]
        self._next = (self._next + 1) % len(self._windows)
        moved = (window.stop - window.start) * self._bytes_of_one
        repetitions = max(1, round(_PART_SECONDS * self._per_second / moved)) if len(self._windows) == 1 else 1
        return float(repetitions * moved / self._run(window, repetitions))

    def _run(self, window: slice, repetitions: int) -> float:
        arrays = [vector[window] for vector in self._vectors]
        elements = arrays[0].size
        begin = perf_counter()
        self._kernel([*arrays, *self._sums], [elements, repetitions], self._threads)
        return perf_counter() - begin


def _windows(elements: int, bytes_of_one: int) -> list[slice]:
    """The working set in parts that follow one another."""
    count = max(1, elements * bytes_of_one // _PART_BYTES)
    lines = -(-elements // 16)
    edges = [min(elements, lines * part // count * 16) for part in range(count + 1)]
    return [slice(begin, end) for begin, end in pairwise(edges)]


def _whole_pages(size: int) -> Array:
    """`size` bytes, rounded up to pages, that begin with a page."""
    size = -(-size // _PAGE) * _PAGE
    memory = np.empty(size + _PAGE, np.uint8)
    begin = -memory.ctypes.data % _PAGE
    return memory[begin : begin + size]


@cache
def _kernels() -> dict[tuple[str, str, str], Any]:
    compiled = _compiled.load("ceilings").kernels()
    return {(kernel.kernel, kernel.dtype, kernel.instruction_set): kernel for kernel in compiled}


def _kernel(name: str, dtype: np.dtype[Any], instruction_set: str | None) -> Any:
    return _kernels()[name, dtype.name, instruction_set or instruction_sets(dtype.name)[0]]
