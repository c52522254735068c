"""What the samples say of each goal: ratios within a round, their geometric means, and intervals over the rounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from benchmarks.contenders import Comparison, Conditions, Contender, Entry, Goal
from benchmarks.measure import Reports, sizes
from py_backends import registry
from py_backends.display import units
from py_backends.results.report import MULTIPLY_ADDS, Row
from py_backends.results.statistics import Median, median

Series = Mapping[int, float]
"""A rate, or a ratio of two, by the number of its round."""


class Reason(NamedTuple):
    """Why something was not measured, as a sentence without full stop, and what would change that."""

    text: str
    fix: str | None = None


_NO_ROUND = Reason("its ratios have no round in common")


class NotMeasured(Exception):
    """Something was not measured."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.text)
        self.reason = reason


@dataclass(frozen=True)
class Figure:
    """A goal and what was reached: the figure with its 95% interval, or the reason why there is none.

    reached: whether the figure is what was asked for; None where it was not measured or nothing was asked for.
    """

    goal: Goal
    value: Median | None
    reached: bool | None
    reason: Reason | None = None
    note: str | None = None


def figure(goal: Goal, reports: Reports) -> Figure:
    """What was reached of one goal."""
    try:
        found = Rates(goal.conditions, reports)
        series = [found.ratios(comparison) for comparison in goal.comparisons]
        value, at = worst(series) if goal.summary == "worst" else (mean(series), None)
    except NotMeasured as missing:
        return Figure(goal, None, None, missing.reason)
    notes = [found.absent(goal)]
    if at is not None:
        notes.append(f"at n = {goal.comparisons[at].subject.size}")
    if goal.at_most:
        value = _inverse(value)
    if goal.at_most and goal.summary == "mean":
        notes.append(found.times(goal.comparisons[0]))
    note = "; ".join(filter(None, notes)) or None
    reached = None if goal.asked is None else value.value <= goal.asked if goal.at_most else value.value >= goal.asked
    return Figure(goal, value, reached, note=note)


class Rates:
    """Rates by round, from the report of one set of conditions; NotMeasured for what it has not."""

    def __init__(self, conditions: Conditions, reports: Reports) -> None:
        if conditions not in reports:
            raise NotMeasured(Reason("interrupted before it ran"))
        self._conditions, self._report = conditions, reports[conditions]
        self._problem = registry.problem(conditions.kernel)

    def of(self, entry: Entry) -> Series:
        """Work (`Problem.work`) a second."""
        if entry.contender.is_ceiling:
            return self._of_ceiling(entry)
        row = self._row(entry)
        samples = enumerate(row.kernel_seconds)
        return {number: self._work(entry) / seconds for number, seconds in samples if seconds is not None}

    def median(self, entry: Entry) -> float:
        """In the kernel's own unit: 10^9 operations or bytes a second."""
        shape, dtype = sizes(self._conditions, entry), np.dtype(entry.dtype(self._conditions))
        of_one = self._problem.flops(shape) if self._problem.rate == "gflops" else self._problem.bytes(shape, dtype)
        return median(list(self.of(entry).values())).value * of_one / self._work(entry) / 1e9

    def ratios(self, comparison: Comparison) -> Series:
        """The rate of the subject over that of the fastest of the others."""
        subject, against = self.of(comparison.subject), self.of(self.fastest(comparison.against))
        return {number: subject[number] / against[number] for number in subject.keys() & against.keys()}

    def fastest(self, entries: Sequence[Entry]) -> Entry:
        """The entry with the highest median rate, of those that were measured."""
        measured = [entry for entry in entries if self.why_not(entry) is None]
        if not measured:
            self.of(entries[0])
        return max(measured, key=self.median)

    def why_not(self, entry: Entry) -> Reason | None:
        """Why an entry was not measured; None where it was."""
        try:
            self.of(entry)
        except NotMeasured as missing:
            return missing.reason
        return None

    def times(self, comparison: Comparison) -> str:
        """What a call takes, of both."""
        both = comparison.subject, self.fastest(comparison.against)
        subject, other = (
            units.duration(1 / median([rate / self._work(entry) for rate in self.of(entry).values()]).value)
            for entry in both
        )
        return f"{subject} against {other}"

    def absent(self, goal: Goal) -> str | None:
        """Which of those that a figure is to be compared with were not there."""
        others = {other for each in goal.comparisons for other in each.against}
        absent = sorted({f"{other.contender.label} ({why.text})" for other in others if (why := self.why_not(other))})
        return f"without {', '.join(absent)}" if absent else None

    def _row(self, entry: Entry) -> Row:
        who, statement = entry.contender, entry.statement(self._conditions)
        wanted = who.backend, entry.dtype(self._conditions), statement, sizes(self._conditions, entry)
        rows = [row for row in self._report.rows if (row.backend, row.dtype, row.statement, row.spec.sizes) == wanted]
        row = next((row for row in rows if who.target in (None, row.target)), None)
        if row is None:
            raise NotMeasured(Reason(self._why_no_row(who, entry.dtype(self._conditions))))
        if not row.kernel_seconds or row.status != "ok":
            raise NotMeasured(Reason(row.reason or "interrupted before it ran", row.fix))
        return row

    def _why_no_row(self, who: Contender, dtype: str) -> str:
        if who.backend not in registry.backend_names():
            return f"there is no backend {who.backend}"
        if who.target and not any((row.backend, row.target) == (who.backend, who.target) for row in self._report.rows):
            return f"{who.backend} has no target {who.target} here"
        return f"{who.backend} has no {self._problem.name} in {dtype} here"

    def _of_ceiling(self, entry: Entry) -> Series:
        """What the case's operations or bytes would take at a ceiling, of a working set as near as there is."""
        shape, dtype = sizes(self._conditions, entry), np.dtype(entry.dtype(self._conditions))
        moved = self._problem.bytes(shape, dtype)
        amount = self._problem.flops(shape) if entry.contender.timed == MULTIPLY_ADDS else moved
        found = [
            each
            for each in self._report.ceilings
            if (each.kind, each.dtype) == (entry.contender.timed, dtype.name) and each.by_round
        ]
        if not found:
            raise NotMeasured(Reason(self._report.without_ceilings or "no row of this run has such a ceiling"))
        nearest = min(found, key=lambda each: abs((each.working_set_bytes or moved) - moved))
        rates = {number: rate for number, rate in enumerate(nearest.by_round) if rate is not None}
        return {number: self._work(entry) * rate * 1e9 / amount for number, rate in rates.items()}

    def _work(self, entry: Entry) -> float:
        return float(self._problem.work(sizes(self._conditions, entry)))


def mean(series: Sequence[Series]) -> Median:
    """The geometric mean of several ratios: taken within each round that has all of them, then the median."""
    rounds = set.intersection(*(set(each) for each in series))
    if not rounds:
        raise NotMeasured(_NO_ROUND)
    return median([math.exp(math.fsum(math.log(each[n]) for each in series) / len(series)) for n in rounds])


def worst(series: Sequence[Series]) -> tuple[Median, int]:
    """The ratio with the lowest median, and which one it is."""
    if not all(series):
        raise NotMeasured(_NO_ROUND)
    medians = [median(list(each.values())) for each in series]
    at = min(range(len(medians)), key=lambda index: medians[index].value)
    return medians[at], at


def _inverse(value: Median) -> Median:
    """Of times, where `value` is of rates."""
    low, high = (None if bound is None else 1 / bound for bound in (value.high, value.low))
    return Median(1 / value.value, low, high)
