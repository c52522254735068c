"""Scaling: the speed-ups of backends with more threads, and the parallel part of their work.

*Strong*: the same work on n threads. The n threads share a part p of the run time on one thread, but not the rest:

    speed-up = 1 / ((1 - p) + p / n)        never more than 1 / (1 - p)

This is Amdahl's law (G. M. Amdahl, Validity of the single processor approach to achieving large scale computing
capabilities, AFIPS Spring Joint Computer Conference 1967, 483-485).

*Weak*: the work grows with the threads. A part p of the run time on n threads is parallel:

    scaled speed-up = (1 - p) + p n

This is Gustafson's law (J. L. Gustafson, Reevaluating Amdahl's law, Communications of the ACM 31(5), 1988, 532-533).

Both laws are linear in p, if Amdahl's is written for the time: 1 / speed-up = 1 - p (1 - 1 / n). So linear least
squares of relative errors give p. The data are the medians of the ratios of all rounds. Resampled rounds give the
interval. p is not forced between 0 and 1: outside, the law does not describe the measurements.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from py_backends import registry
from py_backends.harness.sizing import grown
from py_backends.results.ratios import in_common
from py_backends.results.report import Report, Row
from py_backends.results.spec import Spec
from py_backends.results.verdicts import LEAST_ROUNDS, MARGIN, ratio

STRONG, WEAK = KINDS = ("strong", "weak")
_RESAMPLES = 2999
_SIMILAR_WORK = 0.1
"""The work of each thread may differ from that of one thread alone by this part."""
_NO_PART, _SURELY_NO_PART = 0.02, 0.1
"""More threads change nothing if the parallel part is below the first, and its interval ends below the second. Two
equal rows may differ by as much."""


class Fit(NamedTuple):
    """The parallel part, with its 95% interval; None with fewer than `LEAST_ROUNDS` rounds."""

    p: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Point:
    """A speed-up over one thread.

    row: the row on this number of threads.
    speedup: the median of the ratios of all rounds; of rates, if the work differs.
    low, high: its 95% interval; None with fewer than `LEAST_ROUNDS` rounds.
    predicted: by the law that was fitted to all points.
    """

    row: Row
    threads: int
    speedup: float
    low: float | None
    high: float | None
    predicted: float

    @property
    def efficiency(self) -> float:
        """The speed-up per thread. With 1, each thread is as fast as one thread alone."""
        return self.speedup / self.threads

    @property
    def hit(self) -> bool:
        """Whether the law's prediction lies in the interval or very near it."""
        if self.low is None or self.high is None:
            return True
        return self.low / (1 + MARGIN) <= self.predicted <= self.high * (1 + MARGIN)


@dataclass(frozen=True)
class Curve:
    """The speed-ups of one backend at one shape, and the law fitted to them.

    row: the row on one thread.
    kind: `strong` or `weak`.
    points: by increasing number of threads. The point of one thread is left out: it is 1 by definition.
    """

    row: Row
    kind: str
    points: tuple[Point, ...]
    fit: Fit

    @property
    def target(self) -> str:
        """The target of all rows. If each row has its own, the first and the last: "1x1 to 4x1"."""
        first, last = self.row.target, self.points[-1].row.target
        return first if first == last else f"{first} to {last}"

    def predicted(self, threads: float) -> float | None:
        """The speed-up by the law; None if it gives none (p above 1)."""
        return _law(self.kind, self.fit.p, threads)

    @property
    def limit(self) -> tuple[float | None, float | None, float | None]:
        """The limit of the speed-up for any number of threads by Amdahl's law, with its interval; None without one."""
        low, high = (math.nan if each is None else each for each in self.fit[1:])
        value, least, most = (1 / (1 - p) if p < 1 else None for p in (self.fit.p, low, high))
        return value, least, most

    @property
    def extrapolates(self) -> bool:
        """Whether the law holds for more threads than were measured.

        A parallel part above 1 has no meaning. It does not say that more threads keep gaining.
        """
        return self.fit.p <= 1

    @property
    def missed(self) -> list[Point]:
        """The points that the law misses. A single point determines the law, so it is never missed."""
        return [] if len(self.points) < 2 else [point for point in self.points if not point.hit]

    @property
    def one_thread_only(self) -> bool:
        """Whether more threads certainly change nothing. With a wide interval this is not certain."""
        return self.fit.p < _NO_PART and (self.fit.high is None or self.fit.high < _SURELY_NO_PART)


def curves(report: Report) -> list[Curve]:
    """The curves of strong and then of weak scaling, each in the order of the rows."""
    return [*_curves(report, STRONG), *_curves(report, WEAK)]


def _curves(report: Report, kind: str) -> Iterator[Curve]:
    found: dict[Spec, Row] = {}  # a row counts for each target that it stands for
    for row in report.rows:
        if row.status == "ok" and row.threads and row.kernel_seconds and registry.has_kernel(row.kernel, [*row.shape]):
            found |= {replace(row.spec, target=target): row for target in row.stands_for or [row.target]}
    counts = sorted({spec.threads for spec in found if spec.threads} - {1})
    for spec, one in found.items():
        if spec.threads != 1:
            continue
        problem = registry.problem(spec.kernel)
        growth = {count: 1 if kind == STRONG else count for count in counts}
        wanted = {n: replace(spec, threads=n, sizes=grown(problem, spec.sizes, times)) for n, times in growth.items()}
        several = [
            found[wanted[n]] for n in counts if wanted[n] in found and _work_fits(one, found[wanted[n]], growth[n])
        ]
        if curve := _curve(kind, one, several):
            yield curve


def _amount(row: Row) -> int:
    assert row.work, "it has samples, so it ran"
    return row.work.amount


def _work_fits(one: Row, row: Row, times: int) -> bool:
    """Whether a row did about `times` the work of the row on one thread. The budget may have shortened either."""
    if times == 1:
        return row.shape == one.shape
    return abs(_amount(row) / (times * _amount(one)) - 1) <= _SIMILAR_WORK


def _curve(kind: str, one: Row, several: Sequence[Row]) -> Curve | None:
    """A law fitted to rows on several threads; None if they share no round with the row on one thread."""
    rounds = in_common(*(row.kernel_seconds for row in (one, *several)))
    if not several or not rounds:
        return None
    rates = np.array([_amount(row) for row in (one, *several)])[:, None] / np.array(rounds).T
    speedups = rates[1:] / rates[0]
    threads = [row.threads or 1 for row in several]
    found = fit(kind, threads, speedups)
    return Curve(one, kind, tuple(_points(kind, several, speedups, found.p)), found)


def _points(kind: str, several: Sequence[Row], speedups: NDArray[np.float64], p: float) -> Iterator[Point]:
    for row, ratios in zip(several, speedups, strict=True):
        count, middle = row.threads or 1, ratio(list(ratios))
        predicted = _law(kind, p, count)
        yield Point(row, count, middle.median, middle.low, middle.high, math.inf if predicted is None else predicted)


def _law(kind: str, p: float, threads: float) -> float | None:
    if kind == WEAK:
        return (1 - p) + p * threads
    time = (1 - p) + p / threads
    return 1 / time if time > 0 else None


def fit(kind: str, threads: Sequence[int], speedups: NDArray[np.float64]) -> Fit:
    """Fit the parallel part.

    threads: numbers of threads from 2 on.
    speedups: for each of them a row with the speed-up in every round.

    The interval is a percentile bootstrap over rounds. All numbers of threads of a round stay together: if the run on
    one thread was slow in a round, all ratios of this round share it.
    """
    # Imported here: the import takes most of a second, which `--help` does not need.
    from scipy.linalg import lstsq
    from scipy.stats import bootstrap

    counts = np.array(threads, dtype=np.float64)
    # The law is observed = 1 + p * slopes.
    observed, slopes = (1 / speedups, 1 / counts - 1) if kind == STRONG else (speedups, counts - 1)
    sizes = np.median(observed, axis=1)[:, None]

    def parallel_part(*samples: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
        medians = np.stack([np.median(each, axis=axis) for each in samples])
        solved = lstsq(slopes[:, None] / sizes, (medians.reshape(len(samples), -1) - 1) / sizes)[0]
        part: NDArray[np.float64] = solved.reshape(medians.shape[1:])
        return part

    p = float(parallel_part(*observed, axis=-1))
    if speedups.shape[1] < LEAST_ROUNDS:
        return Fit(p, None, None)
    interval = bootstrap(
        tuple(observed),
        parallel_part,
        n_resamples=_RESAMPLES,
        paired=True,
        vectorized=True,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    return Fit(p, float(interval.low), float(interval.high))
