"""histogram: c[k] = how many elements of a lie in bin k, of 256 equal bins of [0, 1), for a vector of n elements.

Bin k is the interval [k / 256, (k + 1) / 256). So x belongs to floor(256 x). The product is exact in every format,
since 256 is a power of two. Numbers outside of [0, 1) are counted nowhere: 1 itself, negative ones, infinities, NaN.
-0 equals 0, and is in bin 0. A negative subnormal number is outside. A target that takes subnormal numbers for zero may
count it in bin 0. Of int8, x belongs to bin x + 128, and all are counted.

There is one right answer, and every bit of it is checked. Counts are int32, so n is less than 2^31.

A histogram is a scatter whose writes collide: McCool, Robison and Reinders, Structured Parallel Programming (2012,
section 3.5.5 and chapter 6), name the ways out. Updates are atomic, or each thread has a table of its own, and the
tables are added up. How often elements meet in one bin decides what an update costs. `skewed` draws inputs by that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import numpy as np

from py_backends.contract import Array, Ladder, Problem, Reference, Rung

BINS = 256
_BEYOND_CACHES = 16_000_057
"""Elements, more than the caches of most machines hold. A prime, so that every vector width leaves a ragged end."""
STEPS_ON_CPU = Ladder(
    rungs=(
        Rung("cpp", "lecture", "one table"),
        Rung("openmp", "atomics", "threads, atomic updates"),
        Rung("openmp", "lecture", "a table a thread"),
        Rung("openmp", "several_tables", "several tables a thread"),
        Rung("openmp", "tuned", "places first"),
    ),
    sizes=(_BEYOND_CACHES,),
    name="CPU",
)

STEPS_ON_GPU = Ladder(
    rungs=(
        Rung("cuda", "lecture", "one table, atomic updates"),
        Rung("cuda", "shared_tables", "a table a block"),
        Rung("cuda", "tuned", "a table a warp, chunks"),
    ),
    # More than the caches of a large GPU hold.
    sizes=(2**28,),
    name="GPU",
)

_CHUNK = 2**16
"""Elements that are drawn, or that the reference takes, at a time. Their copies stay in the cache."""


class Histogram(Problem):
    name = "histogram"
    signature = "(n)->(256)"
    rule = "bitwise"
    rate = "gbytes_per_second"
    dtypes = ("float32", "float64", "float16", "bfloat16", "int8")
    results = MappingProxyType(dict.fromkeys(dtypes, "int32"))
    largest_sizes = MappingProxyType({"n": 2**31 - 1})
    in_place = False
    steps = (STEPS_ON_CPU, STEPS_ON_GPU)
    default_sizes = (_BEYOND_CACHES,)

    _share: Callable[[int], float] = staticmethod(lambda _: 0.0)

    def reference(self, inputs: Sequence[Array]) -> Reference:
        (a,) = inputs
        counts = np.zeros(BINS, np.int64)
        for begin in range(0, len(a), _CHUNK):
            counts += np.bincount(bins(a[begin : begin + _CHUNK]), minlength=BINS)
        return Reference(counts.astype(np.int32))

    def draw(self, sizes: Sequence[int], dtype: np.dtype[Any], generator: np.random.Generator) -> list[Array]:
        """Uniform numbers: all bins have about as many. Within `skewed`, a share of them is in one bin."""
        (n,) = sizes
        if dtype.kind == "i":
            a = generator.integers(-128, 127, n, dtype, endpoint=True)
        else:
            a = generator.random(n, np.float64 if dtype == np.float64 else np.float32)
        if share := self._share(n):
            chosen = center(int(generator.integers(BINS)), dtype)
            for begin in range(0, n, _CHUNK):
                part = a[begin : begin + _CHUNK]
                part[generator.random(len(part), np.float32) < share] = chosen
        return [a]

    @contextmanager
    def skewed(self, share: Callable[[int], float]) -> Iterator[None]:
        """Within, inputs of n elements are drawn with `share(n)` of these in one bin. The other ones are uniform."""
        self._share = share
        try:
            yield
        finally:
            del self._share

    def work(self, sizes: Sequence[int]) -> int:
        return max(1, *sizes)

    def least_communication(self, sizes: Sequence[int], dtype: np.dtype[Any], ranks: int) -> float:
        """An owner of counters receives what makes them depend on elements of others.

        That is a number for each of them, or these elements themselves, where they are fewer bytes. Counters lie evenly
        on all ranks, or on as many as there are bins.
        """
        (n,) = sizes
        of_others = n - math.ceil(n / ranks)
        return float(min(math.ceil(BINS / ranks) * self.result_dtype(dtype).itemsize, of_others * dtype.itemsize))


def bins(a: Array) -> Array:
    """The bins of those elements that are counted."""
    if a.dtype == np.int8:
        return a.astype(np.intp) + 128
    with np.errstate(invalid="ignore"):  # of NaN that signals
        x = a.astype(np.float64)
    return (BINS * x[(x >= 0) & (x < 1)]).astype(np.intp)


def center(k: int, dtype: np.dtype[Any]) -> Any:
    """A number in the middle of bin k; of int8, the only one."""
    return k - 128 if dtype.kind == "i" else (k + 0.5) / BINS


PROBLEM = Histogram()
