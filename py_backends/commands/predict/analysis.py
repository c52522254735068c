"""How a kernel would scale, by what its source says that ranks do.

A launch is followed in outline (`ranks.outline`): the calls of a rank and its exchanges, in their order. Each call has
its time on the machine. Each exchange has that of its messages in the network, by the algorithm that MPICH takes. Ranks
wait for each other in exchanges, so the slowest rank counts at every step. Ranks that hold blocks of the same extents
do the same. So one of them speaks for all, and those at both ends of their range, which may have fewer neighbours.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import zip_longest
from typing import Any

import numpy as np

from py_backends import registry
from py_backends.harness.sizing import grown
from py_backends.ranks.blocks import extent
from py_backends.ranks.costs import COMPUTING, LAUNCH, Machine, parts, total, whole
from py_backends.ranks.layout import Distributed
from py_backends.ranks.networks import HERE, Network
from py_backends.ranks.outline import Call, Outline, outline
from py_backends.results.report import Estimate, Prediction
from py_backends.results.spec import Sizes

STRONG, WEAK = SCALINGS = ("strong", "weak")
HALF = 0.5
MOST_RANKS = 1 << 14
"""The most ranks that are tried for an efficiency below one half."""
HALF_LATENCY, DOUBLE_BANDWIDTH, OVERLAP, LARGER = (
    "half the latency",
    "twice the bandwidth",
    "full overlap",
    "twice the work",
)
_FROM_RUN_TO_RUN = 0.17
"""The least relative uncertainty of a launch in another run. Kept runs differ by as much."""
_NOT_MEASURED = "calls were not measured at their own sizes: they have the time of others, for their work"


@dataclass(frozen=True)
class Launch:
    """What a launch costs.

    parts: seconds by what they depend on.
    nbytes: of the arrays of the rank that has most.
    """

    parts: Mapping[str, Estimate]
    nbytes: int

    @property
    def seconds(self) -> Estimate:
        found = whole(self.parts)
        return Estimate(
            found.value,
            min(found.low, found.value * (1 - _FROM_RUN_TO_RUN)),
            max(found.high, found.value * (1 + _FROM_RUN_TO_RUN)),
        )

    @property
    def communication(self) -> float:
        """Seconds of all parts that exchanges need."""
        return sum(each.value for name, each in self.parts.items() if name not in {COMPUTING, LAUNCH})


@dataclass(frozen=True)
class Model:
    """A kernel on the ranks of a network. machine: by the number of ranks, since ranks of one machine share it."""

    backend: str
    kernel: str
    variant: str
    dtype: str
    network: Network
    machine: Callable[[int], Machine]

    def launch(self, ranks: int, sizes: Sizes, network: Network | None = None) -> Launch:
        """What a launch on so many ranks costs."""
        outlines = classes(self.backend, self.kernel, self.variant, self.dtype, ranks, sizes)
        problem, machine = registry.problem(self.kernel), self.machine(ranks)
        steps = Counter(map(frozenset, zip_longest(*(each.events for each in outlines))))
        costs = [{LAUNCH: machine.launch}]
        for events, times in steps.items():
            of_classes = [parts(event, problem, machine, network or self.network) for event in events if event]
            slowest = max(of_classes, key=lambda cost: sum(each.value for each in cost.values()))
            costs.append({name: seconds.times(times) for name, seconds in slowest.items()})
        return Launch(total(costs), max(each.nbytes for each in outlines))

    def sizes(self, ranks: int, sizes: Sizes, scaling: str) -> Sizes:
        """The sizes for so many ranks."""
        return sizes if scaling == STRONG else grown(registry.problem(self.kernel), sizes, ranks)

    def efficiency(self, ranks: int, sizes: Sizes, scaling: str, network: Network | None = None) -> Estimate:
        """The time of one rank for the work of all ranks, over the time of all together."""
        there = self.launch(ranks, self.sizes(ranks, sizes, scaling), network)
        one = self._one(ranks, sizes, scaling)
        value = one.value / (ranks * there.seconds.value)
        off = [one.high / one.value - 1, *(_off(part, there.seconds) for part in there.parts.values())]
        if not self._measured(1, sizes) and not self._measured(ranks, self.sizes(ranks, sizes, scaling)):
            # Both times are those of the same calls, and too high or too low together.
            off = [_off(part, there.seconds) for name, part in there.parts.items() if name != COMPUTING]
        apart = 0.0 if ranks == 1 else math.hypot(*off)
        return Estimate(value, value / (1 + apart), value * (1 + apart))

    def _one(self, ranks: int, sizes: Sizes, scaling: str) -> Estimate:
        problem, of_all = registry.problem(self.kernel), self.sizes(ranks, sizes, scaling)
        return self.launch(1, sizes).seconds.times(problem.work(of_all) / problem.work(sizes))

    def prediction(self, ranks: int, sizes: Sizes, scaling: str) -> Prediction:
        """All that is said of so many ranks."""
        problem, of_all = registry.problem(self.kernel), self.sizes(ranks, sizes, scaling)
        found, machine = self.launch(ranks, of_all), self.machine(ranks)
        seconds, efficiency = found.seconds, self.efficiency(ranks, sizes, scaling)
        return Prediction(
            kernel=self.kernel,
            backend=self.backend,
            variant=self.variant,
            dtype=self.dtype,
            shape=dict(zip(problem.parameters, of_all, strict=True)),
            scaling=scaling,
            network=self.network.name,
            ranks=ranks,
            threads=machine.threads,
            seconds=seconds,
            parts={name: each.value for name, each in found.parts.items()},
            efficiency=efficiency,
            with_help=self._with_help(ranks, sizes, scaling) if ranks > 1 else {},
            communicating=found.communication / seconds.value if seconds.value else 0.0,
            bytes_a_rank=found.nbytes,
            note=None if self._measured(ranks, of_all) else _NOT_MEASURED,
        )

    def _with_help(self, ranks: int, sizes: Sizes, scaling: str) -> dict[str, float]:
        """The efficiency if one thing were better."""
        problem = registry.problem(self.kernel)
        there = self.launch(ranks, self.sizes(ranks, sizes, scaling))
        hidden = max(there.communication, there.seconds.value - there.communication)
        overlapped = self._one(ranks, sizes, scaling).value / (ranks * hidden) if hidden else 1.0
        better = {
            HALF_LATENCY: self.network.with_half_latency(),
            DOUBLE_BANDWIDTH: self.network.with_double_bandwidth(),
        }
        found = {name: self.efficiency(ranks, sizes, scaling, each).value for name, each in better.items()}
        larger = self.efficiency(ranks, grown(problem, sizes, 2), scaling).value
        return found | {OVERLAP: overlapped, LARGER: larger}

    def _measured(self, ranks: int, sizes: Sizes) -> bool:
        """Whether all calls of a launch were measured at their own sizes."""
        wanted = calls(self.backend, (self.kernel, self.variant, self.dtype), ranks, sizes)
        return wanted <= set(self.machine(ranks).calls)

    def half_from(self, sizes: Sizes, scaling: str) -> int | None:
        """About the least number of ranks whose efficiency is below one half; None if `MOST_RANKS` have more.

        Between a power of two and the next one, it is where a line of the logarithms crosses one half.
        """
        fewer, before = 1, 1.0
        while fewer < MOST_RANKS:
            ranks = 2 * fewer
            efficiency = self.efficiency(ranks, sizes, scaling).value
            if efficiency < HALF:
                part = math.log(before / HALF) / math.log(before / efficiency) if before > HALF else 0.0
                return math.ceil(fewer * 2**part)
            fewer, before = ranks, efficiency
        return None


def _off(part: Estimate, seconds: Estimate) -> float:
    """How far a time may be off by one of its parts, relatively."""
    return (part.high - part.value) / seconds.value if seconds.value else 0.0


def predictions(model: Model, sizes: Sizes, ranks: Sequence[int], scalings: Sequence[str]) -> list[Prediction]:
    """What is said of each number of ranks, first for the same work and then for work that grows with them."""
    found = []
    for scaling in scalings:
        half = None if model.network.name == HERE else model.half_from(sizes, scaling)
        found += [replace(model.prediction(count, sizes, scaling), half_from=half) for count in ranks]
    return found


def calls(backend: str, kernel: Sequence[str], ranks: int, sizes: Sizes) -> set[Sizes]:
    """The sizes of all calls in a launch. kernel: its name, variant and dtype."""
    name, variant, dtype = kernel
    return {
        event.sizes
        for each in classes(backend, name, variant, dtype, ranks, sizes)
        for event in each.events
        if isinstance(event, Call) and 0 not in event.sizes[: len(registry.problem(name).dimensions)]
    }


@cache
def classes(backend: str, kernel: str, variant: str, dtype: str, ranks: int, sizes: Sizes) -> tuple[Outline, ...]:
    """A launch in outline, for some rank of each class: the first, the middle and the last that have equal blocks."""
    text = registry.kernel_texts(kernel, backend)[variant]
    distributed = Distributed(text.problem, text.load(), np.dtype(dtype))
    alike: dict[Any, list[int]] = {}
    needs = getattr(distributed.text, "needs", distributed.text.blocks)
    for rank in range(ranks):
        boxes = needs(rank, ranks, distributed.widths, *sizes)
        alike.setdefault(tuple(map(extent, boxes)), []).append(rank)
    chosen = dict.fromkeys(some[at] for some in alike.values() for at in (0, len(some) // 2, -1))
    return tuple({outline(distributed, rank, ranks, sizes): None for rank in chosen})
