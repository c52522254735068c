"""Scaling: the speed-ups of backends with threads, and the part of the work that threads share.

*Strong*: the same work on n threads. Of the run time on one thread a part p is shared among n, the rest is not:

    speed-up = 1 / ((1 - p) + p / n)        never more than 1 / (1 - p)

That is Amdahl's law (G. M. Amdahl, Validity of the single processor approach to achieving large scale computing
capabilities, AFIPS Spring Joint Computer Conference 1967, 483-485).

*Weak*: work that grows with the threads. Of the run time on n threads a part p is spent on what they share:

    scaled speed-up = (1 - p) + p n

That is Gustafson's (J. L. Gustafson, Reevaluating Amdahl's law, Communications of the ACM 31(5), 1988, 532-533).

Both are straight lines in p, once Amdahl's is written for the time, 1 / speed-up = 1 - p (1 - 1 / n). So p is found
by linear least squares of relative errors: over the medians of the ratios of all rounds, and for its interval over
those of resampled rounds. It is not forced between 0 and 1: outside, the law does not describe what was measured.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from py_backends import registry
from py_backends.contract import Problem
from py_backends.errors import WrongRequest
from py_backends.harness.doctor import BackendTarget
from py_backends.harness.plan import Plan, Request
from py_backends.harness.results import Report, Row
from py_backends.harness.spec import Sizes, Spec
from py_backends.harness.verdicts import LEAST_ROUNDS, NARROWEST_BAND, RESAMPLES_TO_STOP, ratio

STRONG, WEAK = KINDS = ("strong", "weak")
_EVERY_COUNT_UP_TO = 8
_RESAMPLES = 2999
_SHORTEST = 1e-9
"""Seconds in place of a time of 0, which a device's events may give for a short kernel."""
_SIMILAR_WORK = 0.1
"""How far the work of a thread may be from that of one thread alone, as a part of it."""
_NO_PART, _SURELY_NO_PART = 0.02, 0.1
"""A parallel part up to the first is none, as its interval must not reach beyond the second: what speeds up by less is
also seen between two equal things."""


class Fit(NamedTuple):
    """The parallel part, with its 95% interval; None with fewer than `LEAST_ROUNDS` rounds."""

    p: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Point:
    """A speed-up over one thread.

    row: of so many threads.
    speedup, low, high: the median of the ratios of all rounds, of rates where the work is another, and its 95%
        interval, None with fewer than `LEAST_ROUNDS` rounds.
    predicted: by the law that was fitted to all the points.
    """

    row: Row
    threads: int
    speedup: float
    low: float | None
    high: float | None
    predicted: float

    @property
    def efficiency(self) -> float:
        """The part of each thread's time, 1 for all of it, that is as well spent as that of one thread alone."""
        return self.speedup / self.threads

    @property
    def hit(self) -> bool:
        """Whether the law's prediction lies in the interval, or next to it."""
        if self.low is None or self.high is None:
            return True
        return self.low / (1 + NARROWEST_BAND) <= self.predicted <= self.high * (1 + NARROWEST_BAND)


@dataclass(frozen=True)
class Curve:
    """The speed-ups of one backend at one shape, and the law fitted to them.

    row: that of one thread.
    kind: `strong` or `weak`.
    points: by rising number of threads, without that of one thread, which is 1 by definition.
    """

    row: Row
    kind: str
    points: tuple[Point, ...]
    fit: Fit

    @property
    def target(self) -> str:
        """That of all rows; where each has its own, the first and the last: "1x1 to 4x1"."""
        first, last = self.row.target, self.points[-1].row.target
        return first if first == last else f"{first} to {last}"

    def predicted(self, threads: float) -> float | None:
        """The speed-up by the law; None where it knows none (p above 1)."""
        return _law(self.kind, self.fit.p, threads)

    @property
    def limit(self) -> tuple[float | None, float | None, float | None]:
        """By Amdahl's law, the speed-up with however many threads, and its interval; None where there is no limit."""
        low, high = (math.nan if each is None else each for each in self.fit[1:])
        value, least, most = (1 / (1 - p) if p < 1 else None for p in (self.fit.p, low, high))
        return value, least, most

    @property
    def extrapolates(self) -> bool:
        """Whether the law says anything of more threads than were measured.

        A parallel part above 1 is no part of anything: that more threads gain ever more, it cannot say.
        """
        return self.fit.p <= 1

    @property
    def missed(self) -> list[Point]:
        """The points that the law misses; a single one determines it and is never missed."""
        return [] if len(self.points) < 2 else [point for point in self.points if not point.hit]

    @property
    def one_thread_only(self) -> bool:
        """Whether more threads change nothing, and that is sure: an interval of everything says nothing."""
        return self.fit.p < _NO_PART and (self.fit.high is None or self.fit.high < _SURELY_NO_PART)


def thread_counts(most: int) -> list[int]:
    """1, 2, 3 and so on; above 8 the powers of two, and `most` itself.

    WrongRequest where there is one only.
    """
    if most < 2:
        raise WrongRequest("scaling compares one thread with more of them: give --threads 2 or more")
    if most <= _EVERY_COUNT_UP_TO:
        return list(range(1, most + 1))
    return sorted({*(2**power for power in range(most.bit_length())), most})


def grown(problem: Problem, sizes: Sizes, times: int) -> Sizes:
    """The shape, in about the same proportions, whose work is nearest to so many times that of `sizes`."""
    growth = times ** (1 / len(sizes))
    choices = [sorted({math.floor(size * growth), math.ceil(size * growth)}) for size in sizes]
    wanted = times * problem.work(sizes)
    return min(itertools.product(*choices), key=lambda shape: abs(problem.work(shape) - wanted))


def plan(
    threads: Sequence[int],
    kernels: Sequence[str],
    shapes: Mapping[str, Sequence[Sizes]],
    *,
    every_target: bool = False,
    cpus: int | None = None,
    **names: Any,
) -> Plan:
    """What is to run: every shape on each number of threads, and grown ones on as many as they have grown by.

    every_target: else of several targets that a backend has for one device the first, and of each kind that is another
        target on another number of threads.
    cpus: of this machine, on which there are no more threads than that; but those of targets that are others on each
        number of threads may be elsewhere. None for no limit.
    names: backends, targets, variants and dtypes of the `Request`.
    """
    counts: dict[tuple[str, Sizes], set[int]] = {}
    for problem in map(registry.problem, kernels):
        for sizes in shapes.get(problem.name, [problem.default_sizes]):
            if problem.flops(sizes) == 0:
                raise WrongRequest(f"{problem.name} of a size 0 has no work that threads could share: give another")
            for count in threads:
                counts.setdefault((problem.name, sizes), set()).add(count)
                counts.setdefault((problem.name, grown(problem, sizes, count)), set()).add(count)
    grown_shapes = {kernel: sorted(sizes for name, sizes in counts if name == kernel) for kernel in kernels}
    request = Request(kernels, shapes=dict(shapes) | grown_shapes, **names)

    def specs(found: Sequence[BackendTarget]) -> list[Spec]:
        others = {(backend, target.name): target.on_threads for backend, target in found}
        kinds: dict[Spec, list[str]] = {}
        for spec in request.specs(found, every_target=every_target):
            for n in sorted(counts[spec.kernel, spec.sizes]):
                on_threads = others[spec.backend, spec.target]
                here = cpus is None or n <= cpus or on_threads
                if here and (target := on_threads.get(n, spec.target)):
                    kinds.setdefault(replace(spec, target=target, threads=n), []).append(spec.target)
        return [replace(spec, stands_for=tuple(of) if of != [spec.target] else ()) for spec, of in kinds.items()]

    return request.plan(specs, timed_only=True, threads=threads)


def curves(report: Report) -> list[Curve]:
    """What the rows say of scaling: strong and weak, in the order of the rows; none without several threads."""
    return [*_curves(report, STRONG), *_curves(report, WEAK)]


def _curves(report: Report, kind: str) -> Iterator[Curve]:
    found: dict[Spec, Row] = {}  # each row under the targets that it stands for, so that a curve is of one target
    for row in report.rows:
        whole = tuple(row.shape) == registry.problem(row.kernel).dimensions
        if row.status == "ok" and row.threads and row.kernel_seconds and whole:
            found |= {replace(row.spec, target=target): row for target in row.stands_for or [row.target]}
    counts = sorted({spec.threads for spec in found if spec.threads} - {1})
    for spec, one in found.items():
        if spec.threads != 1:
            continue
        problem = registry.problem(spec.kernel)
        growth = {count: 1 if kind == STRONG else count for count in counts}
        wanted = {n: replace(spec, threads=n, sizes=grown(problem, spec.sizes, times)) for n, times in growth.items()}
        several = [
            found[wanted[n]]
            for n in counts
            if wanted[n] in found and _work_fits(problem, one, found[wanted[n]], growth[n])
        ]
        if curve := _curve(kind, one, several):
            yield curve


def _work(problem: Problem, row: Row) -> int:
    return problem.work(tuple(row.shape[name] for name in problem.dimensions))


def _work_fits(problem: Problem, one: Row, row: Row, times: int) -> bool:
    """Whether a row did about so many times the work of another: the budget may have shortened either."""
    if times == 1:
        return row.shape == one.shape
    return abs(_work(problem, row) / (times * _work(problem, one)) - 1) <= _SIMILAR_WORK


def _curve(kind: str, one: Row, several: Sequence[Row]) -> Curve | None:
    """A law fitted to rows of several threads; None where they share no round with that of one thread."""
    by_round = [dict(enumerate(row.kernel_seconds)) for row in (one, *several)]
    rounds = [n for n in by_round[0] if all(samples.get(n) is not None for samples in by_round)]
    if not several or not rounds:
        return None
    problem = registry.problem(one.kernel)
    seconds = np.array([[samples[n] for n in rounds] for samples in by_round], dtype=np.float64)
    rates = np.array([_work(problem, row) for row in (one, *several)])[:, None] / np.maximum(seconds, _SHORTEST)
    speedups = rates[1:] / rates[0]
    threads = [row.threads or 1 for row in several]
    found = fit(kind, threads, speedups)
    return Curve(one, kind, tuple(_points(kind, several, speedups, found.p)), found)


def _points(kind: str, several: Sequence[Row], speedups: NDArray[np.float64], p: float) -> Iterator[Point]:
    for row, ratios in zip(several, speedups, strict=True):
        count, middle = row.threads or 1, ratio(list(ratios), RESAMPLES_TO_STOP)
        predicted = _law(kind, p, count)
        yield Point(row, count, middle.median, middle.low, middle.high, math.inf if predicted is None else predicted)


def _law(kind: str, p: float, threads: float) -> float | None:
    if kind == WEAK:
        return (1 - p) + p * threads
    time = (1 - p) + p / threads
    return 1 / time if time > 0 else None


def fit(kind: str, threads: Sequence[int], speedups: NDArray[np.float64]) -> Fit:
    """The parallel part, from a row of speed-ups (one a round) for each number of threads, which are 2 or more.

    Its interval is a percentile bootstrap over the rounds, all numbers of threads of a round together, so that what
    slowed the one thread of a round lies in all its ratios.
    """
    # Imported here: they take most of a second, which `--help` need not pay.
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
