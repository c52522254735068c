"""Two comparisons, row by row: what became faster or slower, what came and went, which settings differ.

Machines drift between two runs, so times of different runs say little. Each run has measured its speed-ups in
rounds, where drift cancels: the change of a row is the ratio of its two speed-ups over the baseline.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from statistics import NormalDist, median
from typing import Any, NamedTuple

from py_backends.errors import WrongRequest
from py_backends.harness import verdicts
from py_backends.harness.results import FAILURES, Duration, Report, Row, Speedup
from py_backends.harness.spec import Spec, told_apart
from py_backends.harness.statistics import holm

BETWEEN_RUNS = 0.05
"""How far apart two runs of one and the same thing may lie, beyond what their intervals tell.

A process keeps for its whole life the pages and addresses that its memory and its code happened to get, and some
kernels are a few per cent faster on some than on others. A machine may also run at other clocks than an hour ago,
which kernels with wide vectors feel more than those with narrow ones. Rounds inside one run cannot see that: they
all share it. So the band of a change, from 1 / (1 + band) to 1 + band, is never narrower than this.
"""
LEVEL = 0.05
"""The chance that any verdict `same`, `faster` or `slower` in the whole is false."""
_DEVIATIONS = NormalDist().inv_cdf(1 - LEVEL / 2)
"""How many standard errors half a 95% interval is: 1.96."""

_SETTINGS_ASIDE = frozenset({"budget_seconds", "command", "request", "resumed"})
"""Settings that decide how long was measured and how it was asked for, and not what."""
_MACHINE = ("cpu", "isa", "logical_cpus", "os", "python", "packages", "versions")
"""What of the machine belongs to its set-up. The rest, its load for instance, is another at every run."""
_STATE = ("governor", "pinned_to", "thread_settings")
"""What of the machine's state when the run began somebody has set."""
_OF_WHAT_WAS_ASKED_FOR = frozenset({"versions"})
"""What has parts for the backends alone that were asked for: those that came or went are seen by their rows."""


class Setting(NamedTuple):
    """Something that was not the same in both runs; `part` is empty where `name` says it all."""

    name: str
    part: str
    old: str | None
    new: str | None


@dataclass(frozen=True)
class Change:
    """How many times as fast as before; above 1 is faster.

    low, high: a 95% interval, of this row alone; None where one run has too few rounds.
    kind: what was compared: `speedup` over the baseline, `rate` where shapes differ (a speed-up too, of rates),
        `time` of the kernel.
    """

    ratio: float
    low: float | None
    high: float | None
    kind: str


@dataclass(frozen=True)
class Pair:
    """A row that is in both runs.

    change: None where there is nothing to compare.
    band: how far from 1 the change of two equal things may lie; None where it was not judged.
    p_value: of the verdict, corrected for the number of rows that were judged; None where it was not judged.
    verdict: `same`, `faster`, `slower` or `unclear`; None where the row is not `ok` in both runs.
    reason: why it could not be judged; None where it was.
    """

    old: Row
    new: Row
    change: Change | None = None
    band: float | None = None
    p_value: float | None = None
    verdict: str | None = None
    reason: str | None = None

    @property
    def status_changed(self) -> bool:
        return self.old.status != self.new.status

    @property
    def lost(self) -> bool:
        """Whether it was right and timed, and is not any more; or was right without a time, and is wrong."""
        was_timed = self.old.status == "ok" and self.new.status != "ok"
        return was_timed or (self.old.status == "emulated" and self.new.status in FAILURES)


@dataclass(frozen=True)
class Difference:
    """What distinguishes two runs.

    settings: what of settings and machine is not the same, and can matter for times.
    pairs: the rows in both, in the order of the new run.
    came, went: the rows in the new run alone, and in the old one alone.
    one_run: both are the same run, to the last digit.
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
        """Whether the runs were on different CPUs: then a change is no regression."""
        return any(setting.name in {"cpu", "logical_cpus"} for setting in self.settings)

    @property
    def vanished(self) -> list[Row]:
        """Rows that were timed, and whose backend was asked for again and did not find their device.

        In their place came one that says why, for another target: emulated or unavailable.
        """
        came = {_on_any_target(row) for row in self.came if row.status in {"emulated", "unavailable"}}
        return [row for row in self.went if row.status == "ok" and _on_any_target(row) in came]

    def is_worse(self) -> bool:
        """Whether a row is slower, or was timed and is not any more, for whatever reason.

        A row that was not asked for in the new run does not count.
        """
        return bool(self.vanished) or any(pair.verdict == "slower" or pair.lost for pair in self.pairs)


def diff(old: Report, new: Report) -> Difference:
    """Compare two runs row by row; WrongRequest where they have no row in common."""
    partners = list(_matched(old.rows, new.rows))
    both = [(before, after) for before, after in partners if before and after]
    if not both:
        raise WrongRequest("the two files have no row in common: compare runs of the same kernels, dtypes and shapes")
    return Difference(
        old,
        new,
        settings=list(_settings(old, new)),
        pairs=_corrected([_pair(before, after, old, new) for before, after in both]),
        came=[after for before, after in partners if after and not before],
        went=[before for before, after in partners if before and not after],
    )


def _matched(old: Sequence[Row], new: Sequence[Row]) -> Iterator[tuple[Row | None, Row | None]]:
    """Rows of both runs that were asked for the same; several that were are matched by their order."""
    key = told_apart((row.spec for row in old), (row.spec for row in new))
    groups: dict[Spec, tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
    for row in new:
        groups[key(row.spec)][1].append(row)
    for row in old:
        groups[key(row.spec)][0].append(row)
    for before, after in groups.values():
        yield from zip_longest(before, after)


def _on_any_target(row: Row) -> Spec:
    """Whatever a machine has in the place of a device that is gone, and on however many threads."""
    return replace(row.spec.on_any_threads, target="")


def _pair(old: Row, new: Row, before: Report, after: Report) -> Pair:
    """The pair with its change and, where it can be judged, its own p-value: not yet corrected for the others."""
    pair = Pair(old, new)
    if {old.status, new.status} != {"ok"}:
        return pair
    pair = replace(pair, verdict="unclear", change=_change(old, new))
    reason = _why_not_judged(pair, before, after)
    if reason or pair.change is None:
        return replace(pair, reason=reason or "there is no time to compare")
    band = max(
        BETWEEN_RUNS,
        *(each for row, run in ((old, before), (new, after)) for each in (_band(row, run), _scatter(row, run))),
    )
    return replace(pair, band=band, p_value=_p_value(pair.change, band))


def _corrected(pairs: Sequence[Pair]) -> list[Pair]:
    """The verdicts, at a level that holds for all rows together."""
    p_values = iter(holm([pair.p_value for pair in pairs if pair.p_value is not None]))
    return [pair if pair.p_value is None else _judged(pair, next(p_values)) for pair in pairs]


def _judged(pair: Pair, p_value: float) -> Pair:
    assert pair.change is not None  # a p-value was computed from both
    assert pair.band is not None
    if p_value >= LEVEL:
        verdict = "unclear"
    elif abs(math.log(pair.change.ratio)) <= math.log1p(pair.band):
        verdict = "same"
    else:
        verdict = "faster" if pair.change.ratio > 1 else "slower"
    return replace(pair, p_value=p_value, verdict=verdict)


def _p_value(change: Change, band: float) -> float:
    """The smallest level at which the interval of that level lies wholly inside or wholly outside the band.

    However wide the band, what may differ by more than `WIDEST_SAME` is not called the same.

    Inside, outside above and outside below exclude one another, so that one p-value serves all three (J. J. Goeman,
    A. Solari, T. Stijnen, Three-sided hypothesis testing, Statistics in Medicine 29 (2010), 2117-2125).
    """
    assert change.low is not None  # what has no interval is not judged
    assert change.high is not None
    distance, same = abs(math.log(change.ratio)), math.log1p(min(band, verdicts.WIDEST_SAME))
    to_the_edge = same - distance if distance <= same else distance - math.log1p(band)
    if to_the_edge < 0:  # beyond what may be called the same, and within the band
        return 1.0
    error = (math.log(change.high) - math.log(change.low)) / 2 / _DEVIATIONS
    if error == 0:
        return float(to_the_edge == 0)
    return math.erfc(to_the_edge / error / math.sqrt(2))


def _why_not_judged(pair: Pair, before: Report, after: Report) -> str | None:
    """Why the drift of the machine, or something else, cannot be told from a change; None where it can."""
    old, new = pair.old, pair.new
    if old.versus is None or new.versus is None:
        return f"no baseline ran in {_which(old.versus, new.versus)}"
    if old.versus.baseline != new.versus.baseline:
        return f"the baseline was {old.versus.baseline} and is {new.versus.baseline}"
    if new.backend == new.versus.baseline:
        return "the baseline itself"
    if old.shape != new.shape:
        return f"at {_sizes(new)}, before at {_sizes(old)}"
    if pair.change is not None and pair.change.low is None:
        return f"too few rounds for an interval in {_which(old.versus.low, new.versus.low)}"
    other_shape = _baseline_shape(old, before) != _baseline_shape(new, after)
    return "its baseline ran at another shape" if other_shape else None


def _which(old: object, new: object) -> str:
    """Which of the runs lacks something."""
    if old is None and new is None:
        return "either run"
    return "the old run" if old is None else "the new run"


def _change(old: Row, new: Row) -> Change | None:
    """By speed-ups where both runs have them, else by times, where the shape is the same."""
    if new.versus and old.versus and new.versus.baseline == old.versus.baseline and new.backend != new.versus.baseline:
        ratio = _ratio(_of_speedup(old.versus), _of_speedup(new.versus))
        return ratio and Change(*ratio, "speedup" if old.shape == new.shape else "rate")
    if old.seconds and new.seconds and old.seconds.kernel and new.seconds.kernel and old.shape == new.shape:
        ratio = _ratio(_of_time(new.seconds.kernel), _of_time(old.seconds.kernel))  # less time is faster
        return ratio and Change(*ratio, "time")
    return None


class _Estimate(NamedTuple):
    """A figure with its 95% interval, where it has one."""

    value: float
    low: float | None
    high: float | None


def _of_speedup(speedup: Speedup) -> _Estimate:
    return _Estimate(speedup.speedup, speedup.low, speedup.high)


def _of_time(duration: Duration) -> _Estimate:
    return _Estimate(duration.median, duration.low, duration.high)


def _ratio(old: _Estimate, new: _Estimate) -> _Estimate | None:
    """The ratio of two independent estimates, new / old, with its 95% interval; None where it is no number.

    In logarithms a standard error is half an interval by 1.96, and those of independent estimates add in
    quadrature (D. G. Altman, J. M. Bland, Interaction revisited: the difference between two estimates,
    BMJ 326 (2003), 219).
    """
    if not (_positive(old.value) and _positive(new.value)):
        return None
    ratio = new.value / old.value
    of_old, of_new = _half_width(old), _half_width(new)
    if of_old is None or of_new is None:
        return _Estimate(ratio, None, None)
    factor = math.exp(math.hypot(of_old, of_new))
    return _Estimate(ratio, ratio / factor, ratio * factor)


def _half_width(estimate: _Estimate) -> float | None:
    """Half the interval, in logarithms."""
    low, high = estimate.low, estimate.high
    if low is None or high is None or not (_positive(low) and _positive(high)):
        return None
    return abs(math.log(high) - math.log(low)) / 2


def _positive(figure: float) -> bool:
    """Whether it has a logarithm; a file that others wrote may hold anything."""
    return 0 < figure < math.inf


def _band(row: Row, report: Report) -> float:
    """The band of the control that a run had for this row's kernel, dtype and shape; 0 where it had none."""
    shapes = (row.asked, row.shape, _baseline_shape(row, report))
    bands = [
        control.band or 0.0
        for control in report.control
        if (control.kernel, control.dtype) == (row.kernel, row.dtype) and control.shape in shapes
    ]
    return max(bands, default=0.0)


def _scatter(row: Row, report: Report) -> float:
    """The band that a row's own rounds set, about their middle; 0 where there are too few.

    Kernels whose time varies from round to round vary more between two runs as well: in 19 runs of one commit the
    deviations of the 22 rows were between a quarter and nine tenths of those of single rounds within a run.
    """
    baseline = _baseline(row, report)
    times = zip(baseline.kernel_seconds, row.kernel_seconds, strict=False) if baseline else ()
    ratios = [theirs / own for theirs, own in times if theirs and own]
    return verdicts.band([each / median(ratios) for each in ratios]) or 0.0


def _baseline(row: Row, report: Report) -> Row | None:
    """The row of a row's baseline; None where it is not there."""
    for other in report.rows:
        same_workload = other.spec.on_any_threads.workload == row.spec.on_any_threads.workload
        if same_workload and row.versus and other.backend == row.versus.baseline:
            return other
    return None


def _baseline_shape(row: Row, report: Report) -> dict[str, int] | None:
    """The shape at which the baseline of a row ran; None where its row is not there."""
    if row.versus is None or row.versus.same_shape:
        return row.shape
    baseline = _baseline(row, report)
    return baseline.shape if baseline else None


def _sizes(row: Row) -> str:
    return " x ".join(map(str, row.shape.values()))


def _settings(old: Report, new: Report) -> Iterator[Setting]:
    """What differs of what can matter for times, in the order of the new run."""
    before, after = _set_up(old), _set_up(new)
    for name, part in after | before:
        values = before.get((name, part)), after.get((name, part))
        not_asked_for = name in _OF_WHAT_WAS_ASKED_FOR and None in values
        if values[0] != values[1] and not not_asked_for:
            yield Setting(name, part, *values)


def _set_up(report: Report) -> dict[tuple[str, str], str]:
    """Settings and machine as pairs of a name and, of lists and mappings, a part of it."""
    machine = {name: report.machine[name] for name in _MACHINE if name in report.machine}
    begin = _mapping(_mapping(report.machine.get("state")).get("begin"))
    state = {name: begin[name] for name in _STATE if name in begin}
    settings = {name: value for name, value in report.settings.items() if name not in _SETTINGS_ASIDE}
    return dict(_flat({**settings, **machine, **state, "py-backends": report.package_version}))


def _mapping(value: Any) -> Mapping[str, Any]:
    """It, or an empty one: earlier versions wrote no state, and others may write anything."""
    return value if isinstance(value, Mapping) else {}


def _flat(values: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], str]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from (((name, str(part)), str(of_part)) for part, of_part in value.items() if of_part is not None)
        elif isinstance(value, list):
            yield from (((name, str(part)), "there") for part in value)
        elif value is not None:
            yield (name, ""), str(value)
