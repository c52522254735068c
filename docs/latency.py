"""Prints how long a load takes from each level of memory: `python docs/latency.py`, which needs Numba and some seconds.

Every load needs the result of the one before, so nothing can overlap: the time of a step is the latency. One element of
each cache line holds the place of another, all of them in one random cycle that no prefetcher can guess.
"""

from __future__ import annotations

import sys
from time import perf_counter
from typing import Any

import numpy as np
from numba import njit

from py_backends.contract import Array
from py_backends.system import machine

LINE = 64
"""Bytes of a cache line."""
SIZES = [2**power for power in range(14, 29, 2)]
STEPS, ROUNDS = 2_000_000, 7


@njit  # type: ignore[untyped-decorator]  # Numba has no types
def follow(next_place: Array, place: Any, steps: int) -> Any:
    """The place after so many steps."""
    place = np.uint64(place)  # of a signed one Numba would look whether it counts from the end
    for _ in range(steps):
        place = next_place[place]
    return place


def cycle(size: int) -> Array:
    """For one element of each line of so many bytes the place of the next; all others are 0."""
    places = np.zeros(size // 8, np.uint64)
    order = np.random.default_rng(1).permutation(size // LINE) * (LINE // 8)
    places[order] = np.roll(order, -1)
    return places


def nanoseconds(size: int) -> float:
    """Of one load: the best of several rounds, for what disturbs one of them is no property of the memory."""
    places, best = cycle(size), float("inf")
    place = follow(places, 0, size // LINE)  # brings all lines as near as they fit
    for _ in range(ROUNDS):
        begin = perf_counter()
        place = follow(places, place, STEPS)
        best = min(best, perf_counter() - begin)
    return best / STEPS * 1e9


def main() -> None:
    """A line for each size, with the smallest cache that holds it by its reported size."""
    described = machine.describe()
    caches = described["cache_bytes"]
    sys.stdout.write(f"{described['cpu']}, one thread\n\n   bytes  fits    ns a load\n")
    for size in SIZES:
        level = next((name for name, holds in caches.items() if size <= holds), "DRAM")
        sys.stdout.write(f"{size:9,}  {level:4}  {nanoseconds(size):9.1f}\n")


if __name__ == "__main__":
    main()
