"""Where the rows of a report stand under the roofline: arithmetic intensity, rate, and what binds them.

A row's roof is the lower one of two: the peak of multiply-adds, and its arithmetic intensity times the bandwidth that
was measured for its own working set (`harness.roofline` says which is whose).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from py_backends import registry
from py_backends.contract import Problem
from py_backends.harness.ceilings import READS, STORED, STREAMED
from py_backends.harness.results import Ceiling, Report, Row
from py_backends.harness.roofline import bandwidth_kinds
from py_backends.harness.timed_ceilings import MULTIPLY_ADDS

ARITHMETIC, MEMORY = "arithmetic", "memory"
"""What binds a row: the roof that is the lower one at its intensity."""
PAST_THE_CACHES_PAYS = 1.15
"""From memory, additions gain up to a third by stores past the caches: no line is read that is to be overwritten. In a
cache they lose by them. So from half of that gain on, the data are taken to come from memory."""
SURE = 0.25
"""A time is unreliable if its 95% interval reaches further than this part of it to either side."""


@dataclass(frozen=True)
class Point:
    """A row under the roofline.

    intensity: operations for each byte that has to be moved, in FLOP/byte.
    gflops: its rate, in GFLOP/s.
    percent: of the roof, from ratios taken inside rounds.
    bound: `arithmetic` or `memory`.
    unsure: whether its rate and per cent may be far off, mostly too low. Then other processes used the CPUs in most
        rounds, or the interval of its time is too wide.
    """

    row: Row
    intensity: float
    gflops: float
    percent: float
    bound: str
    unsure: bool = False

    @property
    def attainable(self) -> float:
        """The height of its roof, in GFLOP/s."""
        return 100 * self.gflops / self.percent


@dataclass(frozen=True)
class Roofline:
    """The ceilings of one dtype, and the points below them.

    peaks: of multiply-adds, one for each instruction set, in GFLOP/s; the highest first.
    bandwidths: for each working set the better one of additions, and that of reads where rows are held to it, in
        GB/s; the highest first.
    points: in the order of the rows.
    from_memory: the working sets, in bytes, of which additions are faster with stores past the caches: they come from
        memory, whatever sizes the system reports of its caches.
    """

    dtype: str
    peaks: list[Ceiling]
    bandwidths: list[Ceiling]
    points: list[Point]
    from_memory: frozenset[int]

    def ridge(self, bandwidth: Ceiling) -> float:
        """The intensity, in FLOP/byte, from which on arithmetic binds and no more this bandwidth."""
        return self.peaks[0].rate / bandwidth.rate


def rooflines(report: Report) -> list[Roofline]:
    """A roofline for each dtype that has a row under it."""
    found: dict[str, list[Point]] = {}
    disturbed = mostly_disturbed(report)
    for row in report.rows:
        if at := point(row, report.ceilings):
            unsure = disturbed or not _time_is_sure(row)
            found.setdefault(row.dtype, []).append(replace(at, unsure=unsure))
    return [_roofline(dtype, points, report.ceilings) for dtype, points in found.items()]


def mostly_disturbed(report: Report) -> bool:
    """Whether other processes used the CPUs in most rounds: they all count where too few others were left."""
    rounds = report.rounds
    if rounds is None or not rounds.disturbed:
        return False
    return rounds.kept == rounds.taken or rounds.kept < rounds.taken / 2


def _time_is_sure(row: Row) -> bool:
    time = row.seconds.kernel if row.seconds else None
    if time is None or time.low is None or time.high is None:
        return True
    return time.high <= time.median * (1 + SURE) and time.low >= time.median * (1 - SURE)


def point(row: Row, ceilings: Sequence[Ceiling]) -> Point | None:
    """Where a row stands; None where it was not timed, or has no roof."""
    problem = _problem(row)
    if row.status != "ok" or row.rate is None or not row.percent_of_ceiling or problem is None:
        return None
    sizes, dtype = tuple(row.shape.values()), np.dtype(row.dtype)
    moved = problem.bytes(sizes, dtype)
    kinds = bandwidth_kinds(problem, sizes, dtype)
    bandwidth = max((each.rate for each in _nearest(moved, _of(ceilings, row.dtype, kinds))), default=None)
    peak = max((each.rate for each in _of(ceilings, row.dtype, (MULTIPLY_ADDS,))), default=None)
    if bandwidth is None or peak is None or moved == 0:
        return None
    intensity = problem.flops(sizes) / moved
    bound = MEMORY if intensity * bandwidth < peak else ARITHMETIC
    return Point(row, intensity, row.rate.gflops, row.percent_of_ceiling, bound)


def percent_of_peak(row: Row, ceilings: Sequence[Ceiling]) -> float | None:
    """A row's rate in per cent of the peak of multiply-adds; None where it has no roof."""
    at = point(row, ceilings)
    if at is None:
        return None
    if at.bound == ARITHMETIC:
        return at.percent
    return 100 * at.gflops / max(each.rate for each in _of(ceilings, row.dtype, (MULTIPLY_ADDS,)))


def without_roof(report: Report) -> Iterator[tuple[Row, str]]:
    """The rows that are right and were timed, and are under no roof; each with the reason."""
    for row in report.rows:
        if row.status == "ok" and row.rate and point(row, report.ceilings) is None:
            yield row, _why_none(row, report)


def _why_none(row: Row, report: Report) -> str:
    problem = _problem(row)
    if problem is None:
        return f"the kernel {row.kernel} is not known here, so neither are its operations and bytes"
    if row.rate and row.rate.gflops == 0:
        return "it computes nothing"
    if report.without_ceilings:
        return f"not all ceilings were measured: {report.without_ceilings}"
    return "no ceiling was measured of its device: only those of the CPU are"


def _problem(row: Row) -> Problem | None:
    """What a row computes; None for a kernel that is not here, or is another one here."""
    if row.kernel not in registry.kernel_names():
        return None
    problem = registry.problem(row.kernel)
    return problem if tuple(row.shape) == problem.dimensions else None


def _roofline(dtype: str, points: list[Point], ceilings: Sequence[Ceiling]) -> Roofline:
    additions = _of(ceilings, dtype, (STREAMED, STORED))
    return Roofline(
        dtype,
        peaks=_best_of_each(_of(ceilings, dtype, (MULTIPLY_ADDS,)), lambda each: each.instruction_set),
        bandwidths=_best_of_each(
            [*additions, *_of(ceilings, dtype, (READS,))], lambda each: (each.kind == READS, each.working_set_bytes)
        ),
        points=points,
        from_memory=frozenset(_from_memory(additions)),
    )


def _from_memory(additions: Sequence[Ceiling]) -> Iterator[int]:
    rates = {(each.kind, each.working_set_bytes or 0): each.rate for each in additions}
    for (kind, working_set), rate in rates.items():
        stored = rates.get((STORED, working_set))
        if kind == STREAMED and stored and rate >= PAST_THE_CACHES_PAYS * stored:
            yield working_set


def _best_of_each(ceilings: Iterable[Ceiling], key: Callable[[Ceiling], object]) -> list[Ceiling]:
    """The highest of those with one key, all of them the highest first."""
    best: dict[object, Ceiling] = {}
    for each in sorted(ceilings, key=lambda each: -each.rate):
        best.setdefault(key(each), each)
    return list(best.values())


def _of(ceilings: Iterable[Ceiling], dtype: str, kinds: Sequence[str]) -> list[Ceiling]:
    return [each for each in ceilings if each.dtype == dtype and each.kind in kinds and each.rate > 0]


def _nearest(moved: int, bandwidths: Sequence[Ceiling]) -> list[Ceiling]:
    """Those of the working set that was measured for so many bytes: their own, or the nearest where sizes end."""

    def distance(ceiling: Ceiling) -> float:
        return abs(math.log(max(1, ceiling.working_set_bytes or 1) / max(1, moved)))

    nearest = min(map(distance, bandwidths), default=None)
    return [each for each in bandwidths if distance(each) == nearest]
