"""What the parts of a launch cost on a machine: its calls, and what ranks copy, spread and add for their exchanges."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from py_backends.contract import Problem
from py_backends.ranks.networks import BySize, Network, at
from py_backends.ranks.outline import Call, Event
from py_backends.results.report import Estimate

COMPUTING = "computing"
LAUNCH = "launch"
MEMORY = "memory"
_NO_TIME = Estimate.exactly(0.0)
_SURELY_UNSURE = 0.05
"""The least relative uncertainty of a call that was not measured at its own sizes."""


@dataclass(frozen=True)
class Machine:
    """What a rank's work costs on a machine where other ranks work as much.

    threads: of each rank.
    calls: seconds of calls of the kernel, by their sizes.
    memory: seconds a byte that a rank copies (`copies`), gathers from rows or spreads over them (`rows`), and adds to
        others (`sums`), by the size of the piece.
    launch, exchange: seconds of each launch and of each exchange, whatever they do.
    """

    threads: int
    calls: Mapping[tuple[int, ...], Estimate]
    memory: Mapping[str, BySize]
    launch: Estimate = _NO_TIME
    exchange: Estimate = _NO_TIME
    _extrapolated: dict[tuple[int, ...], Estimate] = field(default_factory=dict, compare=False)

    def call(self, problem: Problem, sizes: tuple[int, ...]) -> Estimate:
        """Seconds of a call. One that was not measured takes as long for its work as those that are nearest."""
        if sizes in self.calls:
            return self.calls[sizes]
        if 0 in sizes[: len(problem.dimensions)]:
            return _NO_TIME
        if sizes not in self._extrapolated:
            self._extrapolated[sizes] = self._by_work(problem, problem.work(sizes))
        return self._extrapolated[sizes]

    def _by_work(self, problem: Problem, work: float) -> Estimate:
        """By the time for a unit of work, which changes least. It is as unsure as it changes from call to call."""
        by_work = {problem.work(sizes): seconds for sizes, seconds in self.calls.items()}
        known = tuple((each, seconds.times(1 / each)) for each, seconds in sorted(by_work.items()))
        found = at(known, work)
        nearest = sorted((abs(math.log(each / work)), seconds.value) for each, seconds in known)[:2]
        apart = abs(math.log(nearest[0][1] / nearest[-1][1]))
        factor = math.exp(max(_SURELY_UNSURE, apart))
        return Estimate(found.value, found.low / factor, found.high * factor).times(work)


def parts(event: Event, problem: Problem, machine: Machine, network: Network) -> dict[str, Estimate]:
    """The seconds of what a rank does, by what they depend on."""
    if isinstance(event, Call):
        return {COMPUTING: machine.call(problem, event.sizes)}
    costs = [network.parts(each) for each in event.rounds]
    moved = {"copies": event.copied, "rows": event.strided, "sums": event.added}
    if event.rounds:
        costs.append({LAUNCH: machine.exchange})
    costs += [{MEMORY: at(machine.memory[what], size).times(size)} for what, size in moved.items() if size]
    return total(costs)


def total(several: list[dict[str, Estimate]]) -> dict[str, Estimate]:
    """The sums, part by part. A part depends on one figure, so that its errors add up."""
    sums: dict[str, Estimate] = {}
    for each in several:
        for name, seconds in each.items():
            sums[name] = sums[name].plus(seconds) if name in sums else seconds
    return sums


def whole(parts: Mapping[str, Estimate]) -> Estimate:
    """The sum of all parts. They depend on figures of their own, so that their errors add up by their squares."""
    value = sum(each.value for each in parts.values())
    below = math.sqrt(sum((each.value - each.low) ** 2 for each in parts.values()))
    above = math.sqrt(sum((each.high - each.value) ** 2 for each in parts.values()))
    return Estimate(value, max(0.0, value - below), value + above)
