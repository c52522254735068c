"""What the samples say of each goal: ratios within a round, their geometric means, and intervals over the rounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.goals import Comparison, Entry, Goal
from benchmarks.measure import Measurement, NotMeasured, Reason, rates
from py_backends.harness.statistics import Median, median
from py_backends.report import units

Series = Mapping[int, float]
"""A ratio by the number of its round."""


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


def figure(goal: Goal, measurement: Measurement) -> Figure:
    """What was reached of one goal."""
    try:
        series = [ratios(comparison, measurement) for comparison in goal.comparisons]
    except NotMeasured as missing:
        return Figure(goal, None, None, missing.reason)
    notes = [_absent(goal, measurement)]
    if goal.summary == "worst":
        value, at = worst(series)
        notes.append(f"at n = {goal.comparisons[at].subject.size}")
    else:
        value = mean(series)
    if goal.at_most:
        value = _inverse(value)
    if goal.at_most and goal.summary == "mean":
        notes.append(_times(goal.comparisons[0], measurement))
    note = "; ".join(filter(None, notes)) or None
    reached = None if goal.asked is None else value.value <= goal.asked if goal.at_most else value.value >= goal.asked
    return Figure(goal, value, reached, note=note)


def ratios(comparison: Comparison, measurement: Measurement) -> Series:
    """The rate of the subject over that of the fastest of the others, by round; NotMeasured where one is missing."""
    subject = rates(measurement, comparison.subject)
    if not subject:
        raise NotMeasured(measurement.reason(comparison.subject))
    against = rates(measurement, fastest(comparison.against, measurement))
    return {number: subject[number] / against[number] for number in subject.keys() & against.keys()}


def fastest(entries: Sequence[Entry], measurement: Measurement) -> Entry:
    """The entry with the highest median rate, of those that were measured; NotMeasured where none was."""
    measured = [entry for entry in entries if measurement.samples.get(entry)]
    if not measured:
        raise NotMeasured(measurement.reason(entries[0]))
    return max(measured, key=lambda entry: median(list(rates(measurement, entry).values())).value)


def mean(series: Sequence[Series]) -> Median:
    """The geometric mean of several ratios: taken within each round that has all of them, then the median."""
    rounds = set.intersection(*(set(each) for each in series))
    if not rounds:
        raise ValueError("the ratios have no round in common")
    return median([math.exp(math.fsum(math.log(each[n]) for each in series) / len(series)) for n in rounds])


def worst(series: Sequence[Series]) -> tuple[Median, int]:
    """The ratio with the lowest median, and which one it is."""
    medians = [median(list(each.values())) for each in series]
    at = min(range(len(medians)), key=lambda index: medians[index].value)
    return medians[at], at


def _inverse(value: Median) -> Median:
    """Of times, where `value` is of rates."""
    low, high = (None if bound is None else 1 / bound for bound in (value.high, value.low))
    return Median(1 / value.value, low, high)


def _times(comparison: Comparison, measurement: Measurement) -> str:
    """What a call takes, of both."""
    subject, other = (
        units.duration(median(list(measurement.samples[entry].values())).value)
        for entry in (comparison.subject, fastest(comparison.against, measurement))
    )
    return f"{subject} against {other}"


def _absent(goal: Goal, measurement: Measurement) -> str | None:
    """Which of those that a figure is to be compared with were not there."""
    others = {other for each in goal.comparisons for other in each.against if not measurement.samples.get(other)}
    absent = sorted({f"{other.contender.label} ({measurement.reason(other).text})" for other in others})
    return f"without {', '.join(absent)}" if absent else None
