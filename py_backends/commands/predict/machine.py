"""What predictions rest on: the times of calls, of memory and of messages, measured here or read from results."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from statistics import median
from typing import Any

import numpy as np

from py_backends import registry
from py_backends.errors import WrongRequest
from py_backends.harness.sizing import growing
from py_backends.ranks.costs import Machine
from py_backends.ranks.device import Device
from py_backends.ranks.networks import HERE, BySize, Network
from py_backends.ranks.world import World
from py_backends.results.report import Estimate, Report, Row
from py_backends.results.spec import Sizes
from py_backends.system import machine

MPI = "mpi"
_BOUTS = 15
"""Everything is measured so many times, in turn. How far these medians lie apart says how far another one would."""
_FEWEST_SAMPLES, _MOST_SAMPLES, _OF_A_BOUT = 3, 21, 0.03
"""The least and the most samples of something in a bout, and the seconds that they should take. After more of the same,
caches and branches are so well prepared as in no program."""
_SHORT = 5e-3
"""Seconds of a call that say nothing of one with several times its work."""
_SURELY_UNSURE = 0.02
"""The least relative uncertainty of what was measured: a machine is never twice the same."""
_MESSAGES = (8, 1 << 10, 1 << 13, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24)
_PIECES = (1 << 13, 1 << 16, 1 << 20, 1 << 24)
_PART_OF_FREE_MEMORY = 4
_OF_NORMAL = 1.4826
"""The standard deviation of a normal distribution over its median distance from the median."""
_OVERHEAD_OF_LATENCY = 0.5
"""The overhead of a message between ranks of this machine, as a part of its latency: no way lies between its ends."""

Ask = Callable[..., list[float]]
"""Takes samples of something, in seconds: `what` it is, how many `samples`, and the numbers that tell it."""


@dataclass
class _Quantity:
    """Something to measure.

    ask: takes so many samples. medians: of the bouts so far. taken: seconds of a sample, roughly. samples: of a bout.
    """

    ask: Callable[[int], list[float]]
    medians: list[float] = field(default_factory=list)
    taken: float = field(init=False)
    samples: int = field(init=False)

    def __post_init__(self) -> None:
        self.taken = min(self.ask(2))
        self.samples = round(min(max(_OF_A_BOUT / self.taken, _FEWEST_SAMPLES), _MOST_SAMPLES))

    def bout(self) -> None:
        """Measure it once more."""
        self.medians.append(median(self.ask(self.samples)))

    def estimate(self) -> Estimate:
        """What another bout would say, at least so unsure as a machine is. Times are compared by their logarithms."""
        middle, half = _of_another([math.log(each) for each in self.medians])
        half = max(half, _SURELY_UNSURE)
        return Estimate(math.exp(middle), math.exp(middle - half), math.exp(middle + half))

    def beyond(self, other: _Quantity) -> Estimate:
        """What it takes more than another one: bout by bout, since what disturbs one bout disturbs both."""
        middle, half = _of_another([own - of_other for own, of_other in zip(self.medians, other.medians, strict=True)])
        return Estimate(max(0.0, middle), max(0.0, middle - half), max(0.0, middle + half))


def _of_another(values: Sequence[float]) -> tuple[float, float]:
    """The middle and the half-width of the interval in which another value lies in 95% of all cases.

    It is Student's (Hahn and Meeker, Statistical intervals, 1991, section 4.7). The median and the median distance from
    it stand for mean and standard deviation, since other processes disturb some bouts.
    """
    from scipy.stats import t

    count, middle = len(values), median(values)
    deviation = _OF_NORMAL * median(abs(each - middle) for each in values)
    return middle, float(t.ppf(0.975, count - 1)) * deviation * math.sqrt(1 + 1 / count)


def measured(
    kernel: Sequence[str], wanted: Sequence[Sizes], ranks: int, threads: int, seconds: float
) -> tuple[Machine, Network | None]:
    """What the calls and the memory of ranks cost that work here at the same time; of several ranks also messages.

    kernel: its name, variant and dtype. wanted: sizes of calls. seconds: for all calls. Raises BackendUnavailable if no
    ranks start.
    """
    name, variant, dtype = kernel
    device = Device(ranks, threads, ranks * threads)
    world = device.world
    try:
        world.ask("prepare", backend=MPI, kernel=name, variant=variant, dtype=dtype)
        ask = partial(_ask, world)
        calls = _calls(partial(ask, "call", kernel=list(kernel)), kernel, wanted, ranks, seconds)
        memory = {what: _sized(partial(ask, what), _PIECES) for what in ("copies", "rows", "sums")}
        messages = _sized(partial(ask, "messages"), _MESSAGES) if ranks > 1 else {}
        world.ask("prepare", backend=MPI, kernel="vecadd", variant="lecture", dtype="float32")
        nothing, alone, with_exchange = _next_to_nothing(device, ask, ranks)
        pieces = [messages, *memory.values()]
        for _ in range(_BOUTS):
            for each in chain((nothing, alone, with_exchange), calls.values(), *(some.values() for some in pieces)):
                each.bout()
    finally:
        world.close()
    of_calls = {sizes: each.estimate() for sizes, each in calls.items()}
    network = _network(messages) if messages else None
    a_byte = {what: _a_byte(some) for what, some in memory.items()}
    if network:  # only what rows take more than bytes in one piece
        whole = _a_byte({size: each for size, each in messages.items() if size in _PIECES})
        a_byte["rows"] = tuple(
            (size, more.less(one)) for (size, more), (_, one) in zip(a_byte["rows"], whole, strict=True)
        )
    exchange = with_exchange.beyond(alone)
    exchange = exchange.less(network.latency) if network else exchange
    return Machine(threads, of_calls, a_byte, alone.beyond(nothing), exchange), network


def _ask(world: World, what: str, samples: int, **numbers: Any) -> list[float]:
    seconds: list[float] = world.ask("measure", what=what, samples=samples, **numbers)["seconds"]
    return seconds


def _next_to_nothing(device: Device, ask: Ask, ranks: int) -> tuple[_Quantity, _Quantity, _Quantity]:
    """A call that computes next to nothing, a launch that has such a call alone, and one with an exchange too."""
    alone, with_exchange = (_launch(device, ranks, each) for each in ("vecadd", "dot"))
    call = partial(ask, "call", kernel=["vecadd", "lecture", "float32"], sizes=[1])
    return _Quantity(partial(_one_by_one, call)), alone, with_exchange


def _launch(device: Device, ranks: int, kernel: str) -> _Quantity:
    """A launch for one element a rank, as programs launch."""
    launch = device.prepare(registry.kernel_texts(kernel, MPI)["lecture"], np.dtype(np.float32))
    array, sizes = np.ones(ranks, np.float32), (ranks,)
    buffers = device.place(launch, sizes, [array, array, array])

    def once() -> float:
        launch(buffers, sizes)
        device.wait()
        seconds = device.event_seconds()
        assert seconds is not None, "ranks have clocks"
        return seconds

    return _Quantity(lambda samples: [once() for _ in range(samples)])


def _one_by_one(ask: Ask, samples: int) -> list[float]:
    """Samples as launches come: each by a request of its own, for which the ranks have waited."""
    return [seconds for _ in range(samples) for seconds in ask(samples=1)]


def _sized(ask: Ask, sizes: Sequence[int]) -> dict[int, _Quantity]:
    return {size: _Quantity(partial(ask, size=size)) for size in sizes}


def _calls(
    ask: Ask, kernel: Sequence[str], wanted: Sequence[Sizes], ranks: int, seconds: float
) -> dict[Sizes, _Quantity]:
    """The wanted calls that can be measured in so many seconds, from small to large; if none can, smaller ones."""
    problem, element = registry.problem(kernel[0]), np.dtype(kernel[2])
    wanted = sorted(set(wanted), key=problem.work)
    chosen: dict[Sizes, _Quantity] = {}
    pace = taken = 0.0  # seconds of one sample for a unit of work; of the last sample
    free = machine.free_memory() / _PART_OF_FREE_MEMORY / ranks
    for sizes in sorted({each for size in wanted for each in growing(problem, size)}, key=problem.work):
        expected = pace * problem.work(sizes) * _FEWEST_SAMPLES * _BOUTS
        free -= problem.bytes(sizes, element)
        # What takes no time may be all overhead, so that the next one does not take longer for its work.
        if (expected > seconds and taken > _SHORT) or free < 0:
            break
        quantity = _Quantity(partial(_one_by_one, partial(ask, sizes=list(sizes))))
        taken = quantity.taken
        pace = taken / problem.work(sizes)
        if sizes in wanted:
            seconds -= _BOUTS * quantity.samples * taken
        chosen[sizes] = quantity
    exactly = {sizes: each for sizes, each in chosen.items() if sizes in wanted}
    return exactly or dict(list(chosen.items())[-2:])


def _a_byte(quantities: dict[int, _Quantity]) -> BySize:
    return tuple((size, each.estimate().times(1 / size)) for size, each in quantities.items())


def _network(messages: dict[int, _Quantity]) -> Network:
    """The network between ranks of this machine.

    The shortest message takes its latency. What longer ones take more is for their bytes.
    """
    (_, shortest), *longer = messages.items()
    latency = shortest.estimate()
    bytes_of = []
    for size, each in longer:
        found = each.estimate()
        more = max(found.value - latency.value, 0.05 * found.value)
        bytes_of.append((float(size), found.times(more / found.value / size)))
    return Network(HERE, latency, latency.times(_OVERHEAD_OF_LATENCY), tuple(bytes_of), "measured on this machine")


_ASSUMED_LAUNCH, _ASSUMED_EXCHANGE = Estimate(50e-6, 20e-6, 100e-6), Estimate(20e-6, 5e-6, 50e-6)
_ASSUMED = {"copies": (10e9, 4e9, 20e9), "rows": (2.5e9, 1e9, 6e9), "sums": (6e9, 2e9, 10e9)}
"""Bytes a second of one core, roughly, where results hold none: what is likely, the least and the most."""


def of_results(report: Report, name: str, kernel: Sequence[str]) -> Machine:
    """The machine of results, by its rows of a kernel.

    kernel: its name, variant and dtype. Raises WrongRequest, in one line, if it has none that ranks would compute by.
    """
    rows = [row for row in report.rows if row.timed and (row.kernel, row.dtype) == (kernel[0], kernel[2])]
    if not rows:
        has = ", ".join(dict.fromkeys(f"{row.kernel} {row.dtype}" for row in report.rows if row.timed)) or "none"
        raise WrongRequest(f"{name} has no time of {kernel[0]} in {kernel[2]}, only of: {has}")
    known = [*registry.preferred_on_host(), MPI]
    rows = [row for row in rows if row.backend in known and row.statement is None and _of_one_rank(row)]
    if not rows:
        raise WrongRequest(
            f"{name} has no row of {kernel[0]} that a rank could compute by: they compute on the CPU, by "
            f"{', '.join(known)}"
        )
    threads = max(row.threads or 1 for row in rows)
    calls: dict[Sizes, Row] = {}
    for row in rows:
        best = calls.get(tuple(row.shape.values()))
        if (row.threads or 1) == threads and (best is None or _seconds(row) < _seconds(best)):
            calls[tuple(row.shape.values())] = row
    assumed: dict[str, BySize] = {
        what: ((1.0, Estimate(1 / likely, 1 / most, 1 / least)),) for what, (likely, least, most) in _ASSUMED.items()
    }
    return Machine(
        threads, {sizes: _estimate(row) for sizes, row in calls.items()}, assumed, _ASSUMED_LAUNCH, _ASSUMED_EXCHANGE
    )


def _of_one_rank(row: Row) -> bool:
    return row.communication is None or len(row.communication.bytes_sent) == 1


def _seconds(row: Row) -> float:
    return row.timed.median if row.timed else math.inf


def _estimate(row: Row) -> Estimate:
    assert row.timed, "it was chosen for its time"
    value, least = row.timed.median, row.timed.median * _SURELY_UNSURE
    low, high = (row.timed.low or row.timed.minimum), row.timed.high or 2 * value
    return Estimate(value, min(low, value - least), max(high, value + least))
