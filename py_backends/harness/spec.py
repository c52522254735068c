"""What is run: the one identity of a row, in plans, in results, and between files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

Sizes = tuple[int, ...]


class Workload(NamedTuple):
    """What is computed. Implementations of one workload are compared with one another.

    sizes: in the order of the kernel's dimensions, as they were asked for.
    threads: on how many; None where nothing tells.
    """

    kernel: str
    dtype: str
    sizes: Sizes
    threads: int | None

    @property
    def title(self) -> str:
        """As people write it: "matmul  float32  1000 x 777 x 513  2 threads"."""
        threads = [] if self.threads is None else [f"{self.threads} thread{'s' if self.threads != 1 else ''}"]
        return "  ".join(filter(None, (self.kernel, self.dtype, " x ".join(map(str, self.sizes)), *threads)))


class Implementation(NamedTuple):
    """Who computes it."""

    backend: str
    target: str
    variant: str


@dataclass(frozen=True)
class Spec:
    """One implementation of one workload.

    threads: in a plan, the number that it has to run on, where None stands for that of the run, which it need not obey.
    statement: what is timed: a statement of Python over `a`, `b` and `c`, as users write it for arrays of their own;
        the kernel, in the steps of its device, where None.
    stands_for: targets that are this one on so many threads, whose curve it belongs to; none where that is its own.
        Two that differ in it alone are one row.
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
        """Who computes it."""
        return Implementation(self.backend, self.target, self.variant)

    @property
    def on_any_threads(self) -> Spec:
        """The same, whatever the number of threads."""
        return replace(self, threads=None)


def told_apart(*runs: Iterable[Spec]) -> Callable[[Spec], Spec]:
    """How specs of several runs are matched.

    By threads only for an implementation that some run has on several numbers of them: a machine's own number, which
    is that of all its rows, is none of a row's.
    """
    several: set[Implementation] = set()
    for run in runs:
        numbers = Counter(spec.on_any_threads for spec in set(run))
        several |= {spec.implementation for spec, count in numbers.items() if count > 1}
    return lambda spec: spec if spec.implementation in several else spec.on_any_threads
