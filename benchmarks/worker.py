"""A contender's process: `python -m benchmarks.worker DESCRIPTOR`, started and asked by `benchmarks.process`."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import ways
from benchmarks.ways import Way
from py_backends import _discovery
from py_backends._contract import Array
from py_backends.harness.memory import SharedMemory
from py_backends.harness.worker import serve


class Session:
    """What the process holds: the contender, and a way to time it at each case that was loaded."""

    def __init__(self) -> None:
        self._contender: dict[str, Any] = {}
        self._ways: dict[int, tuple[Way, list[Array], Array]] = {}

    def become(self, descriptors: list[int], **contender: Any) -> dict[str, Any]:
        """Say who this process is.

        way, backend: as in `benchmarks.goals.Contender`.
        named, target: the target that calls name, which may be None, and the one that this is.
        threads, all_threads: what calls ask for, which may be None, and how many there are.
        """
        self._contender = contender
        return {}

    def load(
        self,
        descriptors: list[int],
        case: int,
        kernel: str,
        sizes: list[int],
        capacities: list[int],
        spans: list[list[int]],
        dtype: str,
    ) -> dict[str, Any]:
        """Make ready to time a case, on copies of its inputs in memory as NumPy's users have it."""
        memory = [
            SharedMemory.attach(descriptor, count, writable=index == len(capacities) - 1)
            for index, (descriptor, count) in enumerate(zip(descriptors, capacities, strict=True))
        ]
        flat = [
            each.bytes[first : first + size].view(dtype) for each, (first, size, _) in zip(memory, spans, strict=True)
        ]
        shapes = _discovery.problem(kernel).shapes(sizes)
        sources = [array.reshape(shape) for array, shape in zip(flat, shapes, strict=True)]
        # A ceiling brings what it needs, and computes no result.
        arrays = [] if _is_ceiling(self._contender["way"]) else [np.array(source) for source in sources]
        way = _way(self._contender, kernel, sizes, np.dtype(dtype), arrays)
        self._ways[case] = way, arrays, flat[-1]
        for each in memory:
            each.close()
        return {}

    def unload(self, descriptors: list[int], case: int) -> dict[str, Any]:
        """Let a case's memory go."""
        self._ways.pop(case)
        return {}

    def check(self, descriptors: list[int], case: int) -> dict[str, Any]:
        """One call, its result left in the case's shared output; whether there is a result to check."""
        way, arrays, output = self._ways[case]
        if arrays:
            arrays[-1].fill(np.nan)
        way.seconds(1)
        way.finish()
        if arrays:
            output[...] = arrays[-1].reshape(-1)
        return {"computes": bool(arrays)}

    def sample(self, descriptors: list[int], case: int, warm_up: int, repetitions: int) -> dict[str, Any]:
        """Seconds of one call, the mean over `repetitions`, after `warm_up` calls that do not count."""
        way, *_ = self._ways[case]
        if warm_up:
            way.seconds(warm_up)
        return {"seconds": way.seconds(repetitions)}


def _is_ceiling(way: str) -> bool:
    return way in {"arithmetic", "memory", "device copy"}


def _way(contender: dict[str, Any], kernel: str, sizes: list[int], dtype: np.dtype[Any], arrays: list[Array]) -> Way:
    problem = _discovery.problem(kernel)
    backend, target, threads = contender["backend"], contender["target"], contender["threads"]
    all_threads = contender["all_threads"] if threads is None else threads
    match contender["way"]:
        case "library":
            return ways.Library(problem, arrays)
        case "call":
            return ways.Call(problem, arrays, backend=backend, target=contender["named"], threads=threads)
        case "kernel":
            return ways.Kernel(problem, arrays, sizes, backend, target, all_threads)
        case "arithmetic":
            return ways.Arithmetic(problem, sizes, dtype, all_threads, target)
        case "memory":
            return ways.Memory(problem, sizes, dtype, all_threads)
        case "device copy":
            return ways.DeviceCopy(problem, sizes, dtype)
        case unknown:
            raise ValueError(f"there is no way {unknown!r} to time anything")


if __name__ == "__main__":
    serve(Session())
