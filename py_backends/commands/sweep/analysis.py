"""Finds the size from which each backend beats the baseline: its kernel alone, and whole calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from py_backends import registry
from py_backends.commands.sweep.search import KERNEL, MEASURES, WHOLE
from py_backends.harness.sizing import size_of
from py_backends.results.grouping import grouped
from py_backends.results.ratios import by_round, rate_of
from py_backends.results.report import Duration, Report, Row
from py_backends.results.spec import Workload
from py_backends.results.verdicts import FASTER, UNCLEAR, ratio, verdicts

SMALLEST = 2**6
_LEAST_SIZES = 3
"""Fewer sizes make no curve."""


class Crossover(NamedTuple):
    """The size from which a backend is faster than the baseline, at all larger measured sizes too.

    size: the smallest one from which this is certain; None if there is none.
    before: the largest size at which it is not faster; None if there is none.
    last: the largest size at which both were measured.
    unclear: the smallest size from which it may be faster, though this run cannot tell; None if all is clear.
    """

    size: int | None
    before: int | None
    last: int
    unclear: int | None = None


@dataclass(frozen=True)
class Point:
    """A row at its size.

    answers: by measure, its verdict over the baseline at this size. None if there is nothing to compare.
    """

    size: int
    row: Row
    answers: Mapping[str, str | None]

    def duration(self, measure: str) -> Duration | None:
        """The seconds of the kernel or of the whole call."""
        seconds = self.row.seconds
        return None if seconds is None else seconds.kernel if measure == KERNEL else seconds.end_to_end

    def rate(self, measure: str) -> float | None:
        """The rate in the kernel's own unit: GFLOP/s or GB/s."""
        work, seconds = self.row.work, self.duration(measure)
        if work is None or seconds is None or not seconds.median > 0:
            return None
        return (work.flops if work.rate == "gflops" else work.bytes) / seconds.median / 1e9


@dataclass(frozen=True, eq=False)
class Line:
    """One backend, target and variant over increasing sizes.

    is_baseline: whether the others are compared with it.
    """

    backend: str
    target: str
    variant: str
    points: tuple[Point, ...]
    is_baseline: bool

    def crossover(self, measure: str) -> Crossover | None:
        """Its crossover with the baseline; None if nothing was compared, and for the baseline itself."""
        judged = [(point.size, point.answers[measure]) for point in self.points if point.answers[measure]]
        if self.is_baseline or not judged:
            return None
        sizes = [size for size, _ in judged]
        lost = [at for at, (_, answer) in enumerate(judged) if answer not in {FASTER, UNCLEAR}]
        open_from = lost[-1] + 1 if lost else 0
        unclear = [at for at, (_, answer) in enumerate(judged) if answer == UNCLEAR and at >= open_from]
        begin = unclear[-1] + 1 if unclear else open_from
        return Crossover(
            sizes[begin] if begin < len(sizes) else None,
            sizes[lost[-1]] if lost else None,
            sizes[-1],
            sizes[open_from] if unclear else None,
        )


@dataclass(frozen=True)
class Sweep:
    """Lines over the same sizes.

    asked: the workload without its sizes.
    caches: by the name of a cache, the size at which all arrays together fill it.
    """

    asked: Workload
    baseline: str | None
    lines: tuple[Line, ...]
    caches: Mapping[str, float]

    @property
    def sizes(self) -> list[int]:
        """All measured sizes in increasing order."""
        return sorted({point.size for line in self.lines for point in line.points})

    @property
    def unit(self) -> str:
        """The name of the rate in the results."""
        return rate_of(point.row for line in self.lines for point in line.points)


def sweeps(report: Report) -> list[Sweep]:
    """The sweeps over at least 3 sizes in a report, in the order of its rows."""
    found = grouped((replace(point.row.spec, sizes=()).workload, point) for point in _points(report))
    made = [_sweep(asked, points, report) for asked, points in found.items()]
    return [sweep for sweep in made if any(len(line.points) >= _LEAST_SIZES for line in sweep.lines)]


def _sweep(asked: Workload, points: Sequence[Point], report: Report) -> Sweep:
    baseline = next((point.row.versus.baseline for point in points if point.row.versus), None)
    lines = grouped((point.row.spec.implementation, point) for point in points)
    problem = registry.problem(asked.kernel)
    caches = report.machine.get("cache_bytes") or {}  # some machines do not tell
    return Sweep(
        asked,
        baseline,
        tuple(
            Line(*who, tuple(sorted(line, key=lambda point: point.size)), who.backend == baseline)
            for who, line in lines.items()
        ),
        {name: size_of(problem, asked.dtype, count) for name, count in caches.items()},
    )


def _points(report: Report) -> Iterator[Point]:
    here = [row for row in report.rows if registry.has_kernel(row.kernel, [*row.shape])]
    timed = [row for row in here if row.timed and not row.requested and _has_one_size(row)]
    answers = {measure: _answers(timed, measure) for measure in MEASURES}
    for row in timed:
        yield Point(int(next(iter(row.shape.values()))), row, {each: answers[each].get(id(row)) for each in MEASURES})


def _has_one_size(row: Row) -> bool:
    """Whether all arrays have it. Another shape has no size."""
    sizes = tuple(row.shape.values())
    return sizes == registry.problem(row.kernel).equal_sizes(int(sizes[0]))


def _answers(rows: Sequence[Row], measure: str) -> dict[int, str]:
    """By the `id` of a row, its verdict over the baseline of its workload."""
    baselines = {row.spec.workload: row for row in rows if row.versus and row.backend == row.versus.baseline}
    compared = [(baselines[row.spec.workload], row) for row in rows if row.spec.workload in baselines]
    speedups = ((row, by_round(row, old, whole_calls=measure == WHOLE)) for old, row in compared if row is not old)
    found = [(row, ratio(ratios)) for row, ratios in speedups if ratios]
    said = verdicts([each for _, each in found])
    return {id(row): answer for (row, _), answer in zip(found, said, strict=True)}
