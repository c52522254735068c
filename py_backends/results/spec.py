"""The identity of a row in plans, in results, and between files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

Sizes = tuple[Any, ...]
"""Of a kernel's arrays, whole numbers; and behind them its numbers, some of which may be real."""


class Workload(NamedTuple):
    """What is computed. Implementations of one workload are compared with one another.

    sizes: the requested ones, in the order of the kernel's parameters.
    threads: their number; None if it is not specified.
    """

    kernel: str
    dtype: str
    sizes: Sizes
    threads: int | None

    @property
    def title(self) -> str:
        """The workload for readers: "matmul  float32  1000 x 777 x 513  2 threads"."""
        threads = [] if self.threads is None else [f"{self.threads} thread{'s' if self.threads != 1 else ''}"]
        return "  ".join(filter(None, (self.kernel, self.dtype, " x ".join(map(str, self.sizes)), *threads)))


class Implementation(NamedTuple):
    """What computes a workload."""

    backend: str
    target: str
    variant: str


@dataclass(frozen=True)
class Spec:
    """One implementation of one workload.

    threads: in a plan, the number on which it has to run. None: that of the run, which it need not obey.
    statement: the Python statement to time, over arrays `a`, `b` and `c`, as users write it. None: the kernel is timed,
        in the steps of its device.
    stands_for: names of targets that are this one on so many threads. It belongs to their scaling curves; if empty, to
        that of its own target. Two specs that differ only in this are equal.
    """

    kernel: str
    backend: str
    target: str
    variant: str
    dtype: str
    sizes: Sizes
    threads: int | None = None
    statement: str | None = None
    stands_for: tuple[str, ...] = field(default=(), compare=False)

    @property
    def workload(self) -> Workload:
        """What is computed."""
        return Workload(self.kernel, self.dtype, self.sizes, self.threads)

    @property
    def implementation(self) -> Implementation:
        """What computes it."""
        return Implementation(self.backend, self.target, self.variant)

    @property
    def on_any_threads(self) -> Spec:
        """The same spec without a number of threads."""
        return replace(self, threads=None)


def told_apart(*runs: Iterable[Spec]) -> Callable[[Spec], Spec]:
    """A function that gives the key by which specs of several runs are matched.

    The number of threads is part of the key only if some run has the implementation on several numbers. If not, it
    belongs to the machine and not to the row.
    """
    several: set[Implementation] = set()
    for run in runs:
        numbers = Counter(spec.on_any_threads for spec in set(run))
        several |= {spec.implementation for spec, count in numbers.items() if count > 1}
    return lambda spec: spec if spec.implementation in several else spec.on_any_threads
