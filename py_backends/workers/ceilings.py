"""The machine's measured ceilings: multiply-adds in registers, and bytes to and from memory and its caches.

The arithmetic ceiling is 2 x multiply-adds / seconds, in FLOP/s. Chains of fused multiply-adds read and write registers
alone, and each element counts. Each number format uses the CPU's instruction that does the most multiply-adds at once.
For bfloat16 and int8 this is often an instruction that adds several products to one sum.

A memory ceiling, in bytes a second, belongs to a working set: the bytes of all vectors together. Many passes go over
it, so its data come from the nearest cache that holds them. There are these kinds:

- `stored_additions`: vecadd with ordinary stores, 3 x elements x bytes of an element / seconds. The hardware reads each
  line before it overwrites it; these bytes are not counted.
- `streamed_additions`: the same with non-temporal stores, which bypass the caches. They are faster if the data come
  from memory, and slower if a cache holds the data.
- `stored_copies` and `streamed_copies`: the same for copies of a vector, 2 x elements x bytes of an element / seconds.
- `reads`: reads alone.

Everything runs in the calling process, on OpenMP threads. No other thread pool may spin in this process.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np

from py_backends import _compiled
from py_backends.contract import Array
from py_backends.results.report import READS, STORED, STORED_COPIES, STREAMED, STREAMED_COPIES

_KERNELS = {
    STREAMED: ("vecadd_streamed", 3),
    STORED: ("vecadd_stored", 3),
    STREAMED_COPIES: ("copy_streamed", 2),
    STORED_COPIES: ("copy_stored", 2),
    READS: ("read", 1),
}
"""By kind, what is measured, and how many vectors move."""

_STEP = 98_304
"""Multiply-adds of one step of all chains. The largest step has six tiles of 16 x 16 sums, each of 64 products of int8.
Chains of smaller instructions take several steps for as many."""
_FACTOR, _ADDEND = 0.5, 1.0
"""With these, every chain tends to 2: no number overflows or becomes subnormal. Sums of products grow, but stay normal.
In int8 the factor is 0, and sums stay as they are."""
_SETTLES_WITHIN = 0.03
"""Seconds of work after which the clock has settled: wide instructions lower it."""
_FIRST_COUNT = 2**20 // _STEP * _STEP

_PARTS = 8
"""A sample is the best of this many parts. A disturbance of one part says nothing about the machine."""
_PART_SECONDS = 0.001
"""Seconds of one part. Starting and joining threads takes a few microseconds of them."""
_WARM_UP = 0.003
"""Seconds of uncounted passes before a sample. While this process was stopped, others filled the caches."""
_PART_BYTES = 2**24
"""Bytes of one part of a large working set. It takes about `_PART_SECONDS`: memory moves some 10 bytes a nanosecond."""
_REVISITED = 2**28
"""Bytes. A sample of a working set up to this size warms the caches and then goes over all of it. A sample of a larger
one takes only the next parts, which few caches still hold."""
_PAGE = 4096
_STAGGER = 1408
"""Bytes by which the distance of two vectors exceeds whole pages. On x86 a load waits for an earlier store if the last
12 bits of their addresses agree: the CPU takes them for the same address."""


def instruction_sets(dtype: str = "float32") -> list[str]:
    """The instruction sets of this CPU with multiply-adds in a dtype, the best first.

    Raises BackendUnavailable if the compiled module is missing.
    """
    there = [name for name, _, there in _compiled.load("ceilings").instruction_sets() if there]
    return [name for name in there if ("multiply_add", dtype, name) in _kernels()]


def measured_dtypes() -> set[str]:
    """The dtypes in which multiply-adds are measured."""
    return {dtype for kernel, dtype, _ in _kernels() if kernel == "multiply_add"}


class MultiplyAdds:
    """The arithmetic ceiling of one dtype, instruction set and number of threads. No instruction set: the best one."""

    def __init__(self, dtype: np.dtype[Any], threads: int, instruction_set: str | None = None) -> None:
        self._kernel = _kernel("multiply_add", dtype, instruction_set)
        self._threads = threads
        self._constants = np.array([_FACTOR, _ADDEND], dtype)
        self._sums = np.empty(threads, self._kernel.result_dtype)
        self._per_second = self._settle()

    def flops_per_second(self, seconds: float = 0.02) -> float:
        """The rate of all threads together in one run of about `seconds`."""
        count = max(1, int(seconds * self._per_second / _STEP)) * _STEP
        per_second = count / self._run(count)
        # The best rate so far sets the length of later runs. The rate of a disturbed run would make the next run so
        # short that starting threads dominates it, and so on for ever.
        self._per_second = max(self._per_second, per_second)
        return 2 * self._threads * per_second

    def sample(self) -> float:
        """The rate of the best of several short runs."""
        self.flops_per_second(_PART_SECONDS)  # a process that was stopped finds other clocks
        return max(self.flops_per_second(_PART_SECONDS) for _ in range(_PARTS))

    def _settle(self) -> float:
        """Multiply-adds a second of one thread, once the clock has settled."""
        begin = perf_counter()
        while perf_counter() - begin < _SETTLES_WITHIN:
            taken = self._run(_FIRST_COUNT)
        return _FIRST_COUNT / taken

    def _run(self, count: int) -> float:
        begin = perf_counter()
        self._kernel([self._constants, self._sums], [count], self._threads)
        return perf_counter() - begin


class Block:
    """Memory for the vectors of every working set of up to `size` bytes. All inputs are 1."""

    def __init__(self, size: int) -> None:
        self._inputs = _whole_pages(size + 2 * _PAGE)
        self._output = _whole_pages(size // 2 + 2 * _PAGE)
        self._inputs.view(np.float32)[:] = 1  # read as float64 this is an ordinary number too
        self._output[:] = 0  # so that no sample pays for page faults

    def vectors(self, count: int, dtype: np.dtype[Any], elements: int) -> list[Array]:
        """The vectors a, b and c for additions, a and c for copies, a alone for reads."""
        length = elements * dtype.itemsize
        second = -(-length // _PAGE) * _PAGE + _STAGGER
        a, b = (self._inputs[first : first + length] for first in (0, second))
        c = self._output[2 * _STAGGER : 2 * _STAGGER + length]
        return [vector.view(dtype) for vector in {1: [a], 2: [a, c], 3: [a, b, c]}[count]]


class Bandwidth:
    """A memory ceiling for a working set of about `working_set` bytes: whole elements, and at least one.

    bytes: the bytes of all vectors, which one pass moves.
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
            dtype = np.dtype(np.float32)  # bytes move alike in every format
        name, vectors = _KERNELS[kind]
        self._kernel = _kernel(name, dtype, instruction_set)
        self._threads = threads
        self._bytes_of_one = vectors * dtype.itemsize
        elements = max(1, round(working_set / self._bytes_of_one))
        self.bytes = elements * self._bytes_of_one
        self._vectors = (block or Block(self.bytes)).vectors(vectors, dtype, elements)
        self._sums = [np.empty(threads, dtype)] if kind == READS else []
        self._windows = _windows(elements, self._bytes_of_one)
        self._next = 0
        self._per_second = self.bytes_per_second()

    def bytes_per_second(self, repetitions: int = 1) -> float:
        """The rate of all threads together over `repetitions` passes."""
        return repetitions * self.bytes / self._run(slice(None), repetitions)

    def sample(self) -> float:
        """The rate of the best of several parts. The caches hold what they would hold after many passes."""
        if self.bytes > _REVISITED:
            rates = [self._part() for _ in range(_PARTS)]
        else:
            self._passes(_WARM_UP)
            rates = self._passes(_PARTS * _PART_SECONDS)
        self._per_second = max(self._per_second, *rates)
        return max(rates)

    def _passes(self, seconds: float) -> list[float]:
        """The rates of all parts of one pass, and of further passes until `seconds` are over."""
        rates: list[float] = []
        end = perf_counter() + seconds
        while not rates or perf_counter() < end:
            rates += [self._part() for _ in self._windows]
        return rates

    def _part(self) -> float:
        """The rate over the next part. A small part is repeated."""
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
    """The working set, split into consecutive parts."""
    count = max(1, elements * bytes_of_one // _PART_BYTES)
    lines = -(-elements // 16)
    edges = [min(elements, lines * part // count * 16) for part in range(count + 1)]
    return [slice(begin, end) for begin, end in pairwise(edges)]


def _whole_pages(size: int) -> Array:
    """`size` bytes, rounded up to whole pages and aligned to one."""
    size = -(-size // _PAGE) * _PAGE
    memory = np.empty(size + _PAGE, np.uint8)
    begin = -memory.ctypes.data % _PAGE
    return memory[begin : begin + size]


@cache
def _kernels() -> dict[tuple[str, str, str], Any]:
    compiled = _compiled.load("ceilings").kernels()
    return {(kernel.kernel, kernel.dtype, kernel.instruction_set): kernel for kernel in compiled}


def _kernel(name: str, dtype: np.dtype[Any], instruction_set: str | None) -> Any:
    there = instruction_sets(dtype.name)  # asks the system for AMX, without which the first tile would end this process
    return _kernels()[name, dtype.name, instruction_set or there[0]]
