"""What the machine can do at most, measured: multiply-adds in registers, and additions that stream through memory.

The arithmetic ceiling, in FLOP/s, is 2 x multiply-adds / seconds, counted in single elements: chains of fused
multiply-adds that read and write registers alone. The memory ceiling, in bytes a second, is that of vecadd over
vectors far beyond the caches: 3 x elements x bytes of one / seconds, 12 bytes an element in float32 and 24 in float64.
With ordinary stores the hardware moves a fourth vector, since it reads what it is about to overwrite; it is not
counted.

Everything runs in the calling process, on threads of OpenMP: ask from a process in which no other pool spins.
"""

from __future__ import annotations

from functools import cache
from time import perf_counter
from typing import Any

import numpy as np

from py_backends import _compiled
from py_backends._contract import Array

_STEP = 192
"""Multiply-adds of one step of all chains: 12 chains of 16 elements, or more steps where registers hold fewer."""
_FACTOR, _ADDEND = 0.5, 1.0
"""Every chain tends to 2, so that no number grows, and none becomes subnormal."""
_SETTLES_WITHIN = 0.1
"""Seconds of work after which clocks have come to where wide instructions keep them."""
_FIRST_COUNT = 2**20 // _STEP * _STEP


def instruction_sets() -> list[str]:
    """Those of this CPU that ceilings are compiled for, best first; BackendUnavailable where none are."""
    return [name for name, _, there in _compiled.load("ceilings").instruction_sets() if there]


class MultiplyAdds:
    """The arithmetic ceiling of one dtype, instruction set (the best one where None) and number of threads."""

    def __init__(self, dtype: np.dtype[Any], threads: int, instruction_set: str | None = None) -> None:
        self._kernel = _kernel("multiply_add", dtype, instruction_set or instruction_sets()[0])
        self._threads = threads
        self._constants = np.array([_FACTOR, _ADDEND], dtype)
        self._sums = np.empty(threads, dtype)
        self._count = _FIRST_COUNT
        self._settle()

    def flops_per_second(self, seconds: float = 0.02) -> float:
        """The rate of one run of about `seconds`, all threads together."""
        taken = self._run(self._count)
        wanted = max(1, int(self._count * seconds / taken / _STEP)) * _STEP
        self._count = min(wanted, 8 * self._count)
        return 2 * self._threads * self._count / self._run(self._count)

    def _settle(self) -> None:
        begin = perf_counter()
        while perf_counter() - begin < _SETTLES_WITHIN:
            self._run(self._count)

    def _run(self, count: int) -> float:
        begin = perf_counter()
        self._kernel([self._constants, self._sums], [count], self._threads)
        return perf_counter() - begin


class StreamedAdditions:
    """The memory ceiling: c = a + b for vectors of `elements` elements, which this holds.

    streamed: with non-temporal stores, which go past the caches; else with ordinary ones.
    """

    def __init__(
        self,
        dtype: np.dtype[Any],
        elements: int,
        threads: int,
        instruction_set: str | None = None,
        *,
        streamed: bool = True,
    ) -> None:
        name = "vecadd_streamed" if streamed else "vecadd_stored"
        self._kernel = _kernel(name, dtype, instruction_set or instruction_sets()[0])
        self._threads = threads
        self._arrays: list[Array] = [np.full(elements, value, dtype) for value in (1, 2, 0)]
        self.bytes = sum(array.nbytes for array in self._arrays)

    def bytes_per_second(self, repetitions: int = 1) -> float:
        """The rate of `repetitions` runs in a row, all threads together."""
        begin = perf_counter()
        for _ in range(repetitions):
            self._kernel(self._arrays, [self._arrays[0].size], self._threads)
        return repetitions * self.bytes / (perf_counter() - begin)


@cache
def _kernels() -> dict[tuple[str, str, str], Any]:
    compiled = _compiled.load("ceilings").kernels()
    return {(kernel.kernel, kernel.dtype, kernel.instruction_set): kernel for kernel in compiled}


def _kernel(name: str, dtype: np.dtype[Any], instruction_set: str) -> Any:
    return _kernels()[name, dtype.name, instruction_set]
