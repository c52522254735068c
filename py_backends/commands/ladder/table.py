"""Prints ladders: what each idea gains here, beside the published gain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console

from py_backends.commands.ladder.analysis import Climb, Step, climbs
from py_backends.contract import Ladder, Rung
from py_backends.display import console, layout, remarks, units
from py_backends.display.layout import Column, Remark, Section
from py_backends.results.grouping import grouped
from py_backends.results.ratios import rate
from py_backends.results.report import FAILURES, Report, Row, Speedup


def print_report(report: Report, out: Console) -> None:
    """A table for each ladder. Below it, the source of its published figures, and what was not run."""
    said = {"Went wrong": _wrong(report.rows), "Not run": remarks.not_run(report)}
    console.print_view(report, map(_section, climbs(report)), said, out)


def _section(climb: Climb) -> Section:
    kind = "rung by rung" if climb.ladder.source else "step by step"
    return Section(title(climb), kind, _columns(climb), footnotes=list(footnotes(climb)))


def title(climb: Climb) -> str:
    """Kernel, dtype and shape, and which of the kernel's ladders this is."""
    said = f"{climb.kernel}  {climb.dtype}  {units.shape(climb.shape.values())}"
    return f"{said}  {climb.ladder.name}" if climb.ladder.name else said


def _columns(climb: Climb) -> list[Column]:
    steps = [*climb.steps, *climb.baselines]
    rows = [step.row for step in steps]
    percents = [step.percent_of_peak for step in steps]
    with_published = [Column("published", list(map(published, steps)), 6)] if climb.ladder.source else []
    return [
        Column("rung", [idea(step.rung) if step.rung else "to compare with" for step in steps], right=False),
        Column("backend", [f"{row.backend} {row.target}" for row in rows], 7, right=False),
        Column("variant", [row.variant for row in rows], 2, right=False),
        Column("at", [units.short_shape(row.shape) for row in rows], 1),
        Column(layout.unit(*rows), [units.figure(rate(row)) for row in rows], 5),
        Column(
            f"of {share_of(rows[0])}", ["" if percent is None else units.percent(percent) for percent in percents], 3
        ),
        Column(_over_first(climb), list(map(_times_the_first, steps))),
        Column(
            "over the rung below",
            [over_below(step.over_below) if step.over_below else "" for step in steps],
            right=False,
        ),
        *with_published,
    ]


def _over_first(climb: Climb) -> str:
    """Over what the speed-ups are, and at which shape that was measured."""
    rung, row = climb.ladder.rungs[0], climb.steps[0].row
    is_first = (row.backend, row.variant) == (rung.backend, rung.variant)
    smaller = f" at {units.short_shape(row.shape)}" if is_first and row.shape != climb.shape else ""
    return f"over {first(climb.ladder)}{smaller}"


def _times_the_first(step: Step) -> str:
    return _speedup(step.over_first) if step.over_first else ("1" if step.rung else "")


def share_of(row: Row) -> str:
    """What a share refers to: the peak, or the ceiling at the kernel's arithmetic intensity."""
    return "peak" if layout.unit(row) == "GFLOP/s" else "ceiling"


def first(ladder: Ladder) -> str:
    """The name of the first rung: its backend, and its variant if the backend has more rungs."""
    rung, *others = ladder.rungs
    return f"{rung.backend} {rung.variant}" if rung.backend in {each.backend for each in others} else rung.backend


def idea(rung: Rung) -> str:
    """What it adds, and its number format if that is another one."""
    return f"{rung.idea}, {rung.dtype}" if rung.dtype else rung.idea


def published(step: Step) -> str:
    """The published figures: how many times as fast as the first rung, and per cent of the peak."""
    rung = step.rung
    if rung is None or rung.published is None:
        return ""
    return (
        f"{rung.published:,.0f} ({rung.published_percent:g}%)" if rung.published_percent else f"{rung.published:,.0f}"
    )


def footnotes(climb: Climb) -> Iterator[str]:
    """The source of the published figures, who ran at another shape, and which rungs are missing and why."""
    if climb.ladder.source:
        yield f"published, in times the speed of the first rung and per cent of the peak: {climb.ladder.source}"
    last = climb.steps[-1].over_first
    if not climb.ladder.source and last and climb.together:
        yield f"the steps multiplied: {units.figure(climb.together)}; the last over the first: {_speedup(last)}"
    rows = [step.row for step in (*climb.steps, *climb.baselines) if step.row.shape != climb.shape]
    for at, names in grouped((units.short_shape(row.shape), f"{row.backend} {row.variant}") for row in rows).items():
        yield f"at {at}, since larger ones take too long; compared by rate: {', '.join(names)}"
    for rung, reason in climb.missing:
        yield f"no rung {rung.backend} {rung.variant} ({idea(rung)}): {reason}"


def _speedup(over: Speedup) -> str:
    return units.with_spread(units.figure(over.speedup), over.speedup, over.low, over.high)


def over_below(over: Speedup) -> str:
    """A speed-up over the step before, and its verdict."""
    words = units.ratio(over.speedup, over.verdict, over.low, over.high)
    return words if "[" in words else units.with_spread(words, over.speedup, over.low, over.high)


def _wrong(rows: Sequence[Row]) -> Iterator[Remark]:
    for row in rows:
        if row.status in FAILURES:
            said = f"{row.status}: {row.reason}" if row.reason else row.status
            yield Remark(f"{row.backend} {row.target} {row.variant}", said, row.fix)
