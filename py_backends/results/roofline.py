"""Places the rows of a report under the roofline: arithmetic intensity, rate, and the bottleneck.

A row's roof is the lower of two rates: the peak of multiply-adds, and arithmetic intensity times bandwidth. The
bandwidth was measured for the row's own working set, see `harness.roofs`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from py_backends.results.grouping import grouped
from py_backends.results.report import (
    MULTIPLY_ADDS,
    READS,
    STORED,
    STORED_COPIES,
    STREAMED,
    STREAMED_COPIES,
    Ceiling,
    Report,
    Row,
    Work,
)

UNCERTAIN = "it seems to exceed its ceiling, but the samples are too few or too noisy to tell"
ABOVE_ALL = "it seems to exceed even the best sample of its ceiling, but the samples are too few or too noisy to tell"
"""The notes of a row that has no per cent, since it would be above 100 without being certain.

The second is that of a time for which no sample of the ceilings accounts."""
_ADDITIONS_WRITE, _COPIES_WRITE = 0.3, 0.45
"""The parts of their bytes that are written: a third and a half, but for what is small, such as the weights of a
filter. A row that writes a smaller part may be faster: writing costs the most."""
WHAT_MOVES = {
    STREAMED: "additions",
    STORED: "additions",
    STREAMED_COPIES: "copies",
    STORED_COPIES: "copies",
    READS: "reads",
}
"""What moves bytes at each kind of bandwidth, whatever its stores."""
ARITHMETIC, MEMORY = "arithmetic", "memory"
"""The bottleneck of a row: the lower roof at its intensity."""
_CPU = "cpu"
"""The device of the CPU's ceilings. Others are a GPU's own, by its name."""
PAST_THE_CACHES_PAYS = 1.15
"""If data come from memory, non-temporal stores speed up additions by up to a third: no line is read before it is
overwritten. If they come from a cache, such stores are slower. At half of this gain, they are taken to come from
memory."""


@dataclass(frozen=True)
class Point:
    """A row under the roofline.

    intensity: operations for each byte that has to be moved, in FLOP/byte; 0 for a kernel that only moves.
    rate: in GFLOP/s; of a kernel that only moves, in GB/s.
    percent: of the roof, from ratios taken inside rounds.
    bound: `arithmetic` or `memory`.
    unsure: whether its rate and per cent may be far off, mostly too low. This is so if other processes used the CPUs in
        most rounds, or if the interval of its time is too wide.
    roof: the height of its roof by the medians of its ceilings; `attainable` is by ratios within rounds.
    bandwidth: that of its own working set.
    """

    row: Row
    intensity: float
    rate: float
    percent: float
    bound: str
    roof: float
    bandwidth: Ceiling
    unsure: bool = False

    @property
    def attainable(self) -> float:
        """The height of its roof, as `rate`."""
        return 100 * self.rate / self.percent


@dataclass(frozen=True)
class Roofline:
    """The ceilings of one dtype, and the points below them.

    peaks: of multiply-adds in GFLOP/s, one for each instruction set, the highest first.
    bandwidths: in GB/s, the highest first. For each working set the better kind of additions, of copies and of reads,
        as far as they were measured.
    points: in the order of the rows.
    from_memory: the working sets, in bytes, for which non-temporal stores are faster. Their data come from memory,
        whatever cache sizes the system reports. Empty of a disturbed run, whose bandwidths do not tell.
    """

    dtype: str
    peaks: list[Ceiling]
    bandwidths: list[Ceiling]
    points: list[Point]
    from_memory: frozenset[int]

    def ridge(self, bandwidth: Ceiling) -> float:
        """The intensity, in FLOP/byte, above which arithmetic is the bottleneck and no longer this bandwidth."""
        return self.peaks[0].rate / bandwidth.rate


def rooflines(report: Report) -> list[Roofline]:
    """A roofline for each dtype with a row under it."""
    points = (
        replace(at, unsure=report.is_unsure_of(row)) for row in report.rows if (at := point(row, report.ceilings))
    )
    found = grouped((point.row.dtype, point) for point in points)
    return [_roofline(dtype, points, report) for dtype, points in found.items()]


def bandwidth_kinds(work: Work) -> tuple[str, ...]:
    """The kinds of bandwidth for a kernel. The best of them is its ceiling."""
    if work.written >= _COPIES_WRITE * work.bytes:
        return STREAMED_COPIES, STORED_COPIES
    if work.written >= _ADDITIONS_WRITE * work.bytes:
        return STREAMED, STORED
    return STREAMED, STORED, READS


def point(row: Row, ceilings: Sequence[Ceiling]) -> Point | None:
    """The point of a row below the CPU's ceilings; None if it was not timed, or has no roof there."""
    if _measured_on(row, ceilings) != _CPU:
        return None
    if row.status != "ok" or row.rate is None or not row.percent_of_ceiling or row.work is None:
        return None
    measured = _of(ceilings, row.dtype, bandwidth_kinds(row.work))
    bandwidths = measured or _of(ceilings, row.dtype, (STREAMED, STORED))  # where no copies were measured
    nearest = max(_nearest(row.work.bytes, bandwidths), key=lambda each: each.rate, default=None)
    peak = max((each.rate for each in _of(ceilings, row.dtype, (MULTIPLY_ADDS,))), default=None)
    if nearest is None or peak is None or row.work.bytes == 0:
        return None
    intensity, bandwidth = row.work.flops / row.work.bytes, nearest.rate
    bound = MEMORY if intensity * bandwidth < peak else ARITHMETIC
    rate = row.rate.gflops if intensity else row.rate.gbytes_per_second
    roof = min(peak, intensity * bandwidth) if intensity else bandwidth
    return Point(row, intensity, rate, row.percent_of_ceiling, bound, roof, nearest)


def percent_of_peak(row: Row, ceilings: Sequence[Ceiling]) -> float | None:
    """A row's rate in per cent of its device's peak of multiply-adds; None if it has no roof."""
    at, device = point(row, ceilings), _measured_on(row, ceilings)
    if at and at.bound == ARITHMETIC:
        return at.percent
    if row.rate is None or not row.percent_of_ceiling or (at is None and device == _CPU):
        return None
    peak = max((each.rate for each in _of(ceilings, row.dtype, (MULTIPLY_ADDS,), device)), default=None)
    return None if peak is None else 100 * row.rate.gflops / peak


def without_roof(report: Report) -> Iterator[tuple[Row, str]]:
    """The rows that are right and timed but have no roof, each with the reason."""
    for row in report.rows:
        if row.status == "ok" and row.rate and point(row, report.ceilings) is None:
            yield row, _why_none(row, report)


def _why_none(row: Row, report: Report) -> str:
    if any(size == 0 and isinstance(size, int) for size in row.shape.values()):  # a real number may be 0
        return "it computes nothing"
    if _measured_on(row, report.ceilings) != _CPU:
        return "these are the CPU's ceilings, and its device has others"
    if uncertain := next((note for note in (UNCERTAIN, ABOVE_ALL) if note in (row.note or "")), None):
        return uncertain
    if report.without_ceilings:
        return f"not all ceilings were measured: {report.without_ceilings}"
    return "no ceiling was measured for its device, only for the CPU"


def _measured_on(row: Row, ceilings: Iterable[Ceiling]) -> str:
    """The device whose ceilings are a row's: its own where these were measured, else the CPU."""
    own = row.device or row.target
    return own if any(each.device == own for each in ceilings) else _CPU


def _roofline(dtype: str, points: list[Point], report: Report) -> Roofline:
    ceilings = report.ceilings
    bandwidths = _of(ceilings, dtype, tuple(WHAT_MOVES))
    # In a disturbed run either kind of stores may be the faster one, wherever the data lie.
    from_memory = () if report.mostly_disturbed else _from_memory(bandwidths)
    return Roofline(
        dtype,
        peaks=_best_of_each(_of(ceilings, dtype, (MULTIPLY_ADDS,)), lambda each: each.instruction_set),
        bandwidths=_best_of_each(bandwidths, lambda each: (WHAT_MOVES[each.kind], each.working_set_bytes)),
        points=points,
        from_memory=frozenset(from_memory),
    )


def _from_memory(bandwidths: Sequence[Ceiling]) -> Iterator[int]:
    rates = {(each.kind, each.working_set_bytes or 0): each.rate for each in bandwidths}
    for past, stored in ((STREAMED, STORED), (STREAMED_COPIES, STORED_COPIES)):
        for (kind, working_set), rate in rates.items():
            ordinary = rates.get((stored, working_set))
            if kind == past and ordinary and rate >= PAST_THE_CACHES_PAYS * ordinary:
                yield working_set


def _best_of_each(ceilings: Iterable[Ceiling], key: Callable[[Ceiling], object]) -> list[Ceiling]:
    """The highest ceiling for each key, sorted from high to low."""
    best: dict[object, Ceiling] = {}
    for each in sorted(ceilings, key=lambda each: -each.rate):
        best.setdefault(key(each), each)
    return list(best.values())


def _of(ceilings: Iterable[Ceiling], dtype: str, kinds: Sequence[str], device: str = _CPU) -> list[Ceiling]:
    asked = [each for each in ceilings if each.device == device and each.dtype == dtype and each.kind in kinds]
    return [each for each in asked if each.rate > 0]


def _nearest(moved: int, bandwidths: Sequence[Ceiling]) -> list[Ceiling]:
    """The ceilings of the working set that is nearest to so many bytes."""

    def distance(ceiling: Ceiling) -> float:
        return abs(math.log(max(1, ceiling.working_set_bytes or 1) / max(1, moved)))

    nearest = min(map(distance, bandwidths), default=None)
    return [each for each in bandwidths if distance(each) == nearest]
