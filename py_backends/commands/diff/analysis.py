"""Compares two runs row by row: what became faster or slower, what came and went, which settings differ.

Machines drift between two runs, so times of different runs say little. Drift cancels in the ratios to the baseline,
which each run takes round by round. So the change of a row is the quotient of the two runs' ratios.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from statistics import NormalDist, median
from typing import Any, NamedTuple

import numpy as np

from py_backends.errors import WrongRequest
from py_backends.results.ratios import speedups
from py_backends.results.report import FAILURES, Report, Row
from py_backends.results.spec import Spec, told_apart
from py_backends.results.verdicts import LEAST_ROUNDS, SLOWER, UNCLEAR, Ratio, ratio, verdicts

BETWEEN_RUNS = 0.05
"""The difference that two runs of the same program may show, beyond their intervals.

A process keeps the places of its code for its whole life, and some kernels are a few per cent faster on some of them. A
machine may also run at another clock than an hour ago, which affects kernels with wide vectors more. The rounds of one
run share all of this, so they cannot show it.
"""
_DEVIATIONS_FOR_95, _MEDIAN_OF_DEVIATIONS = 1.96, 0.6745
"""Of normal samples, in standard deviations: how far 95% of them lie, and the median distance from their centre."""
_SETTINGS_ASIDE = frozenset({"budget_seconds", "command", "request", "resumed"})
"""Settings that do not change what is measured, only for how long, or how it was requested."""
_MACHINE = ("cpu", "isa", "logical_cpus", "os", "python", "packages", "versions")
"""The machine's entries that describe its set-up. The others, such as its load, differ between any two runs."""
_STATE = ("governor", "pinned_to", "thread_settings")
"""Entries of the machine's state at the beginning of a run that a user sets."""
_BASELINE_ITSELF = "the baseline itself"
"""The reason why the row that all others are compared with is not judged."""
_USUAL_ROUNDS = 30
"""The number of rounds that stand in for those of a file without rounds."""
_OF_REQUESTED_BACKENDS = frozenset({"versions"})
"""Entries that have parts for the requested backends only. Rows show which backends came and went."""


class Setting(NamedTuple):
    """A setting that differs between the two runs. `part` is empty if the setting has no parts."""

    name: str
    part: str
    old: str | None
    new: str | None


@dataclass
class Pair:
    """A row that is in both runs.

    change: the new speed over the old one; None if there is nothing to compare.
    kind: what was compared: `speedup` over the baseline, or `time` of the kernel. `rate` is a speed-up of rates, for
        different shapes.
    margin: how far apart two equal rows may lie.
    moved: how far the row's ceiling moved from run to run, beside the baseline.
    verdict: one of those of `verdicts`; None if the row is not `ok` in both runs.
    reason: why it could not be judged; None if it was.
    """

    old: Row
    new: Row
    change: Ratio | None = None
    kind: str | None = None
    margin: float = BETWEEN_RUNS
    moved: float = 0.0
    verdict: str | None = None
    reason: str | None = None

    @property
    def lost(self) -> bool:
        """Whether it was `ok` and no longer is, or was `emulated` and now fails."""
        was_timed = self.old.status == "ok" and self.new.status != "ok"
        return was_timed or (self.old.status == "emulated" and self.new.status in FAILURES)


@dataclass(frozen=True)
class Difference:
    """The differences between two runs.

    settings: differences of settings and machine that can affect times.
    pairs: the rows in both runs, in the order of the new one.
    came, went: the rows in the new run only, and in the old run only.
    one_run: whether both are the same run, to the last digit.
    """

    old: Report
    new: Report
    settings: list[Setting]
    pairs: list[Pair]
    came: list[Row]
    went: list[Row]

    @property
    def one_run(self) -> bool:
        return self.old == self.new

    @property
    def other_cpu(self) -> bool:
        """Whether the runs used different CPUs. If so, a change is no regression."""
        return any(setting.name in {"cpu", "logical_cpus"} for setting in self.settings)

    @property
    def vanished(self) -> list[Row]:
        """Rows that were timed, and whose device is gone although their backend was requested again.

        The new run has an emulated or unavailable row for another target instead, which gives the reason. Or it has
        rows for the other devices of the backend alone. A new device in place of it is no loss.
        """

        def on_any_target(row: Row) -> Spec:
            return replace(row.spec.on_any_threads, target="")

        missing = {on_any_target(row) for row in self.came if row.status in {"emulated", "unavailable"}}
        others = {on_any_target(pair.new) for pair in self.pairs} - {on_any_target(row) for row in self.came}

        def is_gone(row: Row) -> bool:
            return on_any_target(row) in missing or (on_any_target(row) in others and self._asked_for(row))

        return [row for row in self.went if row.status == "ok" and is_gone(row)]

    def _asked_for(self, row: Row) -> bool:
        """Whether the new run was asked for the target of a row. Files of scripts may not say it."""
        request = self.new.settings.get("request")
        targets = request.get("targets", ()) if isinstance(request, Mapping) else ()
        return targets is None or (isinstance(targets, Sequence) and row.target in targets)

    def is_worse(self) -> bool:
        """Whether a row is slower, or was timed and no longer is, for any reason.

        Rows that the new run did not request do not count.
        """
        return bool(self.vanished) or any(pair.verdict == SLOWER or pair.lost for pair in self.pairs)

    def judged_nothing(self) -> bool:
        """Whether no row is certainly faster, slower or the same."""
        return all(pair.verdict in {None, UNCLEAR} for pair in self.pairs)

    def is_unclear(self) -> bool:
        """Whether a row that was timed in both runs is `unclear`, or nothing was judged at all.

        The baseline itself does not count, since the others are judged by it.
        """
        unclear = (pair for pair in self.pairs if pair.verdict == UNCLEAR and pair.reason != _BASELINE_ITSELF)
        return any(unclear) or self.judged_nothing()


def diff(old: Report, new: Report) -> Difference:
    """Compare two runs row by row. Raises WrongRequest if they have no row in common."""
    partners = list(_matched(old.rows, new.rows))
    both = [(before, after) for before, after in partners if before and after]
    if not both:
        raise WrongRequest("the two files have no row in common: compare runs of the same kernels, dtypes and shapes")
    pairs = [_pair(_Measured(before, old), _Measured(after, new)) for before, after in both]
    judged = [(pair, pair.change) for pair in pairs if pair.change and not pair.reason]
    said = verdicts([change for _, change in judged], [pair.margin for pair, _ in judged])
    for (pair, change), verdict in zip(judged, said, strict=True):
        pair.verdict = verdict
        if verdict == UNCLEAR and pair.moved > BETWEEN_RUNS and not change.lies_within(BETWEEN_RUNS):
            pair.reason = "the machine changed: its ceiling moved too"
    return Difference(
        old,
        new,
        settings=list(_settings(old, new)),
        pairs=pairs,
        came=[after for before, after in partners if after and not before],
        went=[before for before, after in partners if before and not after],
    )


def _matched(old: Sequence[Row], new: Sequence[Row]) -> Iterator[tuple[Row | None, Row | None]]:
    """Pairs of rows of both runs with the same spec. Several rows of one spec are matched by their order."""
    key = told_apart((row.spec for row in old), (row.spec for row in new))
    groups: dict[Spec, tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
    for row in new:
        groups[key(row.spec)][1].append(row)
    for row in old:
        groups[key(row.spec)][0].append(row)
    for before, after in groups.values():
        yield from zip_longest(before, after)


@dataclass(frozen=True)
class _Measured:
    """A row among the others of its run."""

    row: Row
    run: Report

    @property
    def baseline(self) -> Row | None:
        """The row that it was compared with: the baseline on the most threads; None without a baseline."""
        versus, workload = self.row.versus, self.row.spec.on_any_threads.workload
        same = (row for row in self.run.rows if versus and row.backend == versus.baseline)
        found = (row for row in same if row.spec.on_any_threads.workload == workload)
        return max(found, key=lambda row: row.threads or 0, default=None)

    @property
    def baseline_shape(self) -> dict[str, int | float] | None:
        """The shape at which its baseline ran; None if the file does not say it."""
        if self.row.versus and self.row.versus.same_shape:
            return self.row.shape
        return self.baseline.shape if self.baseline else None

    @property
    def baselines_time_at_the_ceiling(self) -> float | None:
        """The baseline's time in times of what the row would take at its ceiling; None where the file lacks a part."""
        percent, times = self.row.percent_of_ceiling, [self.row.timed, self.baseline and self.baseline.timed]
        medians = _plausible(each.median for each in times if each)
        return medians[1] / medians[0] * 100 / percent if percent and len(medians) == len(times) else None

    def by_round(self, kind: str) -> list[float]:
        """Its speed in each round. Without stored rounds, from the stored summary."""
        row, versus = self.row, self.row.versus
        if kind == "time" or versus is None:
            told = row.seconds and row.seconds.kernel
            summary = _stand_ins(told.median, told.low, told.high) if told else []
            return _plausible(1 / each for each in _plausible(row.kernel_seconds) or summary)
        in_rounds = speedups(row.kernel_seconds, self.baseline.kernel_seconds) if self.baseline else {}
        ratios = _plausible(in_rounds.values())
        if ratios and not versus.same_shape:  # only the speed-up accounts for the different work
            ratios = _plausible(each / median(ratios) * versus.speedup for each in ratios)
        return ratios or _stand_ins(versus.speedup, versus.low, versus.high)


def _plausible(figures: Iterable[float | None]) -> list[float]:
    """The figures that are possible seconds or ratios of them: a file from elsewhere may hold anything."""
    return [each for each in figures if each is not None and 1e-30 < each < 1e30]


def _stand_ins(middle: float, low: float | None, high: float | None) -> list[float]:
    """Stand-ins for the rounds that a file does not store: log-normally distributed, with that median and interval.

    The median of n such rounds deviates by sqrt(pi / 2n) times the deviation of one round. The source is M. G. Kendall
    and A. Stuart, The Advanced Theory of Statistics, volume 1, chapter 10. Without an interval the result is a single
    round, and without a median it is empty.
    """
    told, quantile = _plausible((middle, low, high)), NormalDist().inv_cdf
    if len(told) < 3:
        return _plausible([middle])
    of_the_median = abs(math.log(told[2] / told[1])) / 2 / quantile(0.975)
    deviation = of_the_median / math.sqrt(math.pi / 2 / _USUAL_ROUNDS)
    shares = ((number + 0.5) / _USUAL_ROUNDS for number in range(_USUAL_ROUNDS))
    return _plausible(middle * math.exp(deviation * quantile(share)) for share in shares)


def _pair(old: _Measured, new: _Measured) -> Pair:
    """The pair with its change, and why it cannot be judged. It is `unclear` until all are judged together."""
    pair = Pair(old.row, new.row)
    if {old.row.status, new.row.status} != {"ok"}:
        return pair
    pair.verdict, pair.kind, pair.reason = UNCLEAR, _kind(pair), _why_not_judged(old, new)
    before, after = (side.by_round(pair.kind) if pair.kind else [] for side in (old, new))
    if not before or not after:
        pair.reason = pair.reason or "there is no time to compare"
        return pair
    pair.change = ratio(after, before=before)
    if pair.change.low is None:
        few = _run_name(len(before) < LEAST_ROUNDS, len(after) < LEAST_ROUNDS)
        pair.reason = pair.reason or f"too few rounds for an interval in {few}"
    pair.moved = _moved(old, new)
    pair.margin = max(BETWEEN_RUNS, _spread(before, after), pair.moved)
    return pair


def _moved(old: _Measured, new: _Measured) -> float:
    """How far what the machine can do for a row lies apart in two runs, beside the baseline; 0 where nothing tells.

    A virtual machine may have twice the bandwidth of an hour ago, as soon as its neighbours rest. Rows that use all of
    it gain by that, and a baseline on one thread does not. Ceilings are measured in the same rounds as the rows.
    """
    before, after = old.baselines_time_at_the_ceiling, new.baselines_time_at_the_ceiling
    return 0.0 if before is None or after is None else math.expm1(abs(math.log(after / before)))


def _spread(*runs: Sequence[float]) -> float:
    """How far two runs of a row may lie apart by how its rounds vary, each run taken relative to its median.

    A kernel whose time varies between rounds also varies more between runs. This was measured in 19 runs of one commit
    with 22 rows. The deviations between runs were 0.25 to 0.9 times those of single rounds within a run. So it is what
    about 95% of the rounds lie within, by their median distance as for a normal distribution: a few outliers do not
    move a median. Two runs deviate independently, so their logarithms are added in quadrature.
    """
    distances = (np.median(np.abs(np.log(rounds) - np.median(np.log(rounds)))) for rounds in runs)
    return math.expm1(math.hypot(*(_DEVIATIONS_FOR_95 / _MEDIAN_OF_DEVIATIONS * float(each) for each in distances)))


def _kind(pair: Pair) -> str | None:
    """By speed-ups if both runs have them over the same baseline; else by times if the shape is the same."""
    old, new = pair.old, pair.new
    if new.versus and old.versus and new.backend != new.versus.baseline == old.versus.baseline:
        return "speedup" if old.shape == new.shape else "rate"
    return "time" if old.shape == new.shape else None


def _why_not_judged(old: _Measured, new: _Measured) -> str | None:
    """Why a change cannot be told from the drift of the machine, or from another cause; None if it can."""
    before, after = old.row.versus, new.row.versus
    if before is None or after is None:
        return f"no baseline ran in {_run_name(before is None, after is None)}"
    if before.baseline != after.baseline:
        return f"the baseline was {before.baseline} and is {after.baseline}"
    if new.row.backend == after.baseline:
        return _BASELINE_ITSELF
    if old.row.shape != new.row.shape:
        return f"at {_sizes(new.row)}, before at {_sizes(old.row)}"
    return "its baseline ran at another shape" if old.baseline_shape != new.baseline_shape else None


def _run_name(old: bool, new: bool) -> str:
    """The name of the run that lacks something."""
    return "either run" if old and new else "the old run" if old else "the new run"


def _sizes(row: Row) -> str:
    return " x ".join(map(str, row.shape.values()))


def _settings(old: Report, new: Report) -> Iterator[Setting]:
    """The differences that can affect times, in the order of the new run."""
    before, after = _set_up(old), _set_up(new)
    for name, part in after | before:
        values = before.get((name, part)), after.get((name, part))
        not_requested = name in _OF_REQUESTED_BACKENDS and None in values
        if values[0] != values[1] and not not_requested:
            yield Setting(name, part, *values)


def _set_up(report: Report) -> dict[tuple[str, str], str]:
    """Settings and machine, by name and part. Only lists and mappings have parts."""
    state = report.machine.get("state")  # other programs may write anything, or nothing
    begin = state.get("begin") if isinstance(state, Mapping) else None
    settings = {name: value for name, value in report.settings.items() if name not in _SETTINGS_ASIDE}
    machine = {name: report.machine.get(name) for name in _MACHINE}
    set_by_somebody = {name: begin.get(name) for name in _STATE} if isinstance(begin, Mapping) else {}
    return dict(_flat({**settings, **machine, **set_by_somebody, "py-backends": report.package_version}))


def _flat(values: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], str]]:
    for name, value in values.items():
        parts = dict.fromkeys(map(str, value), "there") if isinstance(value, list) else value
        for part, of_part in parts.items() if isinstance(parts, Mapping) else [("", parts)]:
            if of_part is not None:
                yield (name, str(part)), str(of_part)
