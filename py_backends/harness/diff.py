"""Two comparisons, row by row: what became faster or slower, what came and went, which settings differ.

Machines drift between two runs, so times of different runs say little. In the ratios to the baseline, which each run
took round by round, drift cancels: the change of a row is how far these lie apart in the rounds of the two runs.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from statistics import NormalDist, median
from typing import Any, NamedTuple

from py_backends.errors import WrongRequest
from py_backends.harness.results import FAILURES, Report, Row
from py_backends.harness.spec import Spec, told_apart
from py_backends.harness.verdicts import LEAST_ROUNDS, SLOWER, UNCLEAR, Ratio, band, ratio, verdicts

BETWEEN_RUNS = 0.05
"""How far apart two runs of the same thing may lie, beyond their intervals.

A process keeps for its whole life the pages and addresses that its memory and its code happened to get, and some
kernels are a few per cent faster on some than on others. A machine may also run at other clocks than an hour ago,
which kernels with wide vectors feel more than those with narrow ones. Rounds inside one run cannot see that: they
all share it. So the band of a change, from 1 / (1 + band) to 1 + band, is never narrower than this.
"""
_SETTINGS_ASIDE = frozenset({"budget_seconds", "command", "request", "resumed"})
"""Settings that decide how long was measured and how it was asked for, and not what."""
_MACHINE = ("cpu", "isa", "logical_cpus", "os", "python", "packages", "versions")
"""What of the machine belongs to its set-up. The rest, its load for instance, is another at every run."""
_STATE = ("governor", "pinned_to", "thread_settings")
"""What of the machine's state when the run began somebody has set."""
_USUAL_ROUNDS = 30
"""How many rounds stand for those of a file that does not hold them."""
_OF_WHAT_WAS_ASKED_FOR = frozenset({"versions"})
"""What has parts for the backends alone that were asked for: those that came or went are seen by their rows."""


class Setting(NamedTuple):
    """Something that was not the same in both runs; `part` is empty where `name` says it all."""

    name: str
    part: str
    old: str | None
    new: str | None


@dataclass
class Pair:
    """A row that is in both runs.

    change: how many times as fast as before; None where there is nothing to compare.
    kind: what was compared: `speedup` over the baseline, `rate` where shapes differ (a speed-up too, of rates), `time`
        of the kernel.
    band: how far from 1 the change of two equal things may lie; None where it was not judged.
    verdict: as `verdicts` gives them; None where the row is not `ok` in both runs.
    reason: why it could not be judged; None where it was.
    """

    old: Row
    new: Row
    change: Ratio | None = None
    kind: str | None = None
    band: float | None = None
    verdict: str | None = None
    reason: str | None = None

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

        def on_any_target(row: Row) -> Spec:
            return replace(row.spec.on_any_threads, target="")

        came = {on_any_target(row) for row in self.came if row.status in {"emulated", "unavailable"}}
        return [row for row in self.went if row.status == "ok" and on_any_target(row) in came]

    def is_worse(self) -> bool:
        """Whether a row is slower, or was timed and is not any more, for whatever reason.

        A row that was not asked for in the new run does not count.
        """
        return bool(self.vanished) or any(pair.verdict == SLOWER or pair.lost for pair in self.pairs)


def diff(old: Report, new: Report) -> Difference:
    """Compare two runs row by row; WrongRequest where they have no row in common."""
    partners = list(_matched(old.rows, new.rows))
    both = [(before, after) for before, after in partners if before and after]
    if not both:
        raise WrongRequest("the two files have no row in common: compare runs of the same kernels, dtypes and shapes")
    pairs = [_pair(_Measured(before, old), _Measured(after, new)) for before, after in both]
    judged = [(pair, pair.change) for pair in pairs if pair.change and pair.band]
    said = verdicts([change for _, change in judged], [pair.band for pair, _ in judged])
    for (pair, _), verdict in zip(judged, said, strict=True):
        pair.verdict = verdict
    return Difference(
        old,
        new,
        settings=list(_settings(old, new)),
        pairs=pairs,
        came=[after for before, after in partners if after and not before],
        went=[before for before, after in partners if before and not after],
    )


def _matched(old: Sequence[Row], new: Sequence[Row]) -> Iterator[tuple[Row | None, Row | None]]:
    """The pairs of rows of both runs with the same request. Several of one request are matched by their order."""
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
        """The row that it was compared with: the baseline's on the most threads; None where there is none."""
        versus, workload = self.row.versus, self.row.spec.on_any_threads.workload
        same = (row for row in self.run.rows if versus and row.backend == versus.baseline)
        found = (row for row in same if row.spec.on_any_threads.workload == workload)
        return max(found, key=lambda row: row.threads or 0, default=None)

    @property
    def baseline_shape(self) -> dict[str, int] | None:
        """The shape at which its baseline ran; None if the file does not say."""
        if self.row.versus and self.row.versus.same_shape:
            return self.row.shape
        return self.baseline.shape if self.baseline else None

    def by_round(self, kind: str) -> list[float]:
        """How fast it was in each round; where no rounds are stored that can be paired, what is stored of them all.

        In a file of several runs (`--resume`) samples of one number may be of different rounds.
        """
        row, versus = self.row, self.row.versus
        if kind == "time" or versus is None:
            told = row.seconds and row.seconds.kernel
            summary = _as_told(told.median, told.low, told.high) if told else []
            return _sound(1 / each for each in _sound(row.kernel_seconds) or summary)
        baseline = None if self.run.settings.get("resumed") else self.baseline
        paired = zip(baseline.kernel_seconds, row.kernel_seconds, strict=False) if baseline else ()
        ratios = _sound(theirs / own for theirs, own in paired if theirs and own)
        if ratios and not versus.same_shape:  # how much more work one has than the other is in the speed-up alone
            ratios = _sound(each / median(ratios) * versus.speedup for each in ratios)
        return ratios or _as_told(versus.speedup, versus.low, versus.high)

    def control_band(self) -> float:
        """The widest that a control of its run set for it; 0 where there was none."""
        row, shapes = self.row, (self.row.asked, self.row.shape, self.baseline_shape)
        same = (each for each in self.run.control if (each.kernel, each.dtype) == (row.kernel, row.dtype))
        return max((control.band or 0.0 for control in same if control.shape in shapes), default=0.0)


def _sound(figures: Iterable[float | None]) -> list[float]:
    """Those that can be seconds or ratios of them, and be reckoned with; a file that others wrote may hold anything."""
    return [each for each in figures if each is not None and 1e-30 < each < 1e30]


def _as_told(middle: float, low: float | None, high: float | None) -> list[float]:
    """For files that store no rounds: some that are spread as a normal distribution with that median and interval.

    The median of n such rounds deviates by sqrt(pi / 2n) of what one does (M. G. Kendall, A. Stuart, The Advanced
    Theory of Statistics, volume 1, chapter 10). Without an interval a single round, and without a figure none.
    """
    told, quantile = _sound((middle, low, high)), NormalDist().inv_cdf
    if len(told) < 3:
        return _sound([middle])
    of_the_median = abs(math.log(told[2] / told[1])) / 2 / quantile(0.975)
    deviation = of_the_median / math.sqrt(math.pi / 2 / _USUAL_ROUNDS)
    shares = ((number + 0.5) / _USUAL_ROUNDS for number in range(_USUAL_ROUNDS))
    return _sound(middle * math.exp(deviation * quantile(share)) for share in shares)


def _pair(old: _Measured, new: _Measured) -> Pair:
    """The pair with its change and, where it can be judged, its band: `unclear` until all are judged together."""
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
        few = _which(len(before) < LEAST_ROUNDS, len(after) < LEAST_ROUNDS)
        pair.reason = pair.reason or f"too few rounds for an interval in {few}"
    if not pair.reason:
        pair.band = max(BETWEEN_RUNS, old.control_band(), new.control_band(), _band_of_rounds(before, after))
    return pair


def _band_of_rounds(*runs: Sequence[float]) -> float:
    """That which the rounds of a row set, about the middle of each run.

    Kernels whose time varies from round to round vary more between two runs as well: in 19 runs of one commit the
    deviations of the 22 rows were between a quarter and nine tenths of those of single rounds within a run. Two runs
    deviate independently of one another, so that their bands, in logarithms, are added in quadrature.
    """
    of_each = (band([each / median(rounds) for each in rounds]) or 0.0 for rounds in runs)
    return math.expm1(math.hypot(*map(math.log1p, of_each)))


def _kind(pair: Pair) -> str | None:
    """By speed-ups where both runs have them over one baseline, else by times, where the shape is the same."""
    old, new = pair.old, pair.new
    if new.versus and old.versus and new.backend != new.versus.baseline == old.versus.baseline:
        return "speedup" if old.shape == new.shape else "rate"
    return "time" if old.shape == new.shape else None


def _why_not_judged(old: _Measured, new: _Measured) -> str | None:
    """Why the drift of the machine, or something else, cannot be told from a change; None where it can."""
    before, after = old.row.versus, new.row.versus
    if before is None or after is None:
        return f"no baseline ran in {_which(before is None, after is None)}"
    if before.baseline != after.baseline:
        return f"the baseline was {before.baseline} and is {after.baseline}"
    if new.row.backend == after.baseline:
        return "the baseline itself"
    if old.row.shape != new.row.shape:
        return f"at {_sizes(new.row)}, before at {_sizes(old.row)}"
    return "its baseline ran at another shape" if old.baseline_shape != new.baseline_shape else None


def _which(old: bool, new: bool) -> str:
    """Which of the runs lacks something."""
    return "either run" if old and new else "the old run" if old else "the new run"


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
    state = report.machine.get("state")  # earlier versions wrote none, and others may write anything
    begin = state.get("begin") if isinstance(state, Mapping) else None
    settings = {name: value for name, value in report.settings.items() if name not in _SETTINGS_ASIDE}
    machine = {name: report.machine.get(name) for name in _MACHINE}
    set_by_somebody = {name: begin.get(name) for name in _STATE} if isinstance(begin, Mapping) else {}
    return dict(_flat({**settings, **machine, **set_by_somebody, "py-backends": report.package_version}))


def _flat(values: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], str]]:
    for name, value in values.items():
        parts = dict.fromkeys(value, "there") if isinstance(value, list) else value
        for part, of_part in parts.items() if isinstance(parts, Mapping) else [("", parts)]:
            if of_part is not None:
                yield (name, str(part)), str(of_part)
