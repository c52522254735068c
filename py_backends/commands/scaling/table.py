"""Prints how backends gain from threads, on a terminal or as plain text into a pipe."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.console import Console

from py_backends.commands.scaling.analysis import STRONG, Curve, Point, curves
from py_backends.display import console, remarks, units
from py_backends.display.layout import Column, Section
from py_backends.results.grouping import grouped
from py_backends.results.report import Report, Row

_TITLES = {STRONG: "strong: the same work on more threads", "weak": "weak: work that grows with the threads"}
_LAWS = {
    STRONG: "Amdahl: speed-up = 1 / ((1 - p) + p / n), at most 1 / (1 - p)",
    "weak": "Gustafson: scaled speed-up = (1 - p) + p n",
}
_TWO_POINTS = {
    STRONG: "two points, one thread and {}, determine p: they cannot test Amdahl's law",
    "weak": "two points, one thread and {}, determine p: they cannot test Gustafson's law",
}


def print_report(report: Report, out: Console) -> None:
    """A table for each kernel, dtype and shape, first strong, then weak.

    Below them, what was not run, and the verdict.
    """
    # The tables have the communication of ranks, since a line for each number of ranks would be too much.
    quiet = replace(report, rows=[replace(row, communication=None) for row in report.rows])
    said = {"Not run": remarks.not_run(report), "Notes": remarks.notes(quiet)}
    console.print_view(report, map(_section, groups(curves(report))), said, out)


def groups(found: Sequence[Curve]) -> list[list[Curve]]:
    """Curves that belong together: of one kind, kernel, dtype, and requested shape on one thread."""
    return list(grouped(((curve.row.spec.workload, curve.kind), curve) for curve in found).values())


def title(group: Sequence[Curve]) -> str:
    """Kernel, dtype and the shape on one thread, and which kind of scaling."""
    return f"{group[0].row.spec.on_any_threads.workload.title}  {_TITLES[group[0].kind]}"


def part(curve: Curve) -> str:
    """The parallel part with its interval: "0.975 (0.971 to 0.979)"."""
    p, low, high = curve.fit
    return f"{p:.3f}" if low is None or high is None else f"{p:.3f} ({low:.3f} to {high:.3f})"


def limit(curve: Curve) -> str:
    """The speed-up that no number of threads exceeds, with its interval: "40.0x (34.1x to 48.2x)"."""
    if curve.one_thread_only:
        return "1x: no gain"
    value, low, high = curve.limit
    if value is None:
        return "none (p above 1)" if low is None else f"none, {units.figure(low)}x at least"
    if curve.fit.low is None:
        return f"{units.figure(value)}x"
    least = "no limit" if low is None else f"{units.figure(low)}x"
    return f"{units.figure(value)}x ({least} to {'no limit' if high is None else f'{units.figure(high)}x'})"


def notes(group: Sequence[Curve]) -> Iterator[str]:
    """What the figures do not say: whether they test the law, where it fails, and which rows ran at another shape."""
    kind = group[0].kind
    counts = sorted({point.threads for curve in group for point in curve.points})
    if len(counts) == 1:
        yield _TWO_POINTS[kind].format(counts[0])
    elif not any(curve.missed for curve in group):
        yield "every point lies where the law says, within its 95% interval or 1%"
    for curve in group:
        if curve.missed:
            yield f"{name(curve)}: the law misses {', '.join(map(_missed, curve.missed))}"
    if above := [name(curve) for curve in group if curve.fit.low is not None and curve.fit.low > 1]:
        yield (
            "p above 1: more than n times as fast on n threads (more caches, or a slow run on one thread); "
            f"the law does not describe {', '.join(above)}"
        )
    if alone := [name(curve) for curve in group if curve.one_thread_only]:
        yield f"no part of it is measurably parallel: {', '.join(alone)}"
    yield from remarks.at_smaller_shapes(((curve.row, name(curve)) for curve in group), ", for the budget")
    if few := [name(curve) for curve in group if curve.fit.low is None]:
        yield f"too few rounds for intervals (give a longer --budget): {', '.join(few)}"


def name(curve: Curve) -> str:
    """Its name, in a few words."""
    return f"{curve.row.backend} {curve.target}"


def efficiency(curve: Curve) -> str:
    """With most threads, in per cent: "95%"."""
    return f"{100 * curve.points[-1].efficiency:.0f}%"


def communicating(row: Row) -> str:
    """The part of a kernel in which ranks communicate: "5.2%". Empty without ranks."""
    return "" if row.communicating is None else f"{100 * row.communicating:.1f}%"


def over_bound(row: Row) -> str:
    """The most that a rank sends, over the least that some rank has to: "1.28x". Empty without ranks."""
    if row.communication is None:
        return ""
    return "-" if row.communication.over_bound is None else f"{row.communication.over_bound:.2f}x"


def _missed(point: Point) -> str:
    if not math.isfinite(point.predicted):
        return f"{units.figure(point.speedup)}x on {point.threads} threads (no prediction)"
    percent = 100 * (point.speedup / point.predicted - 1)
    return f"{units.figure(point.speedup)}x on {point.threads} threads by {percent:+.1f}%"


def _section(group: Sequence[Curve]) -> Section:
    columns = _columns(sorted(group, key=_by_speed))
    return Section(title(group), _LAWS[group[0].kind], columns, footnotes=list(notes(group)))


def _columns(group: Sequence[Curve]) -> list[Column]:
    """A narrow terminal keeps the backend, the speed-up with most threads and p.

    Of the others, it keeps longest what tells the curves of a backend apart, and what cannot be computed from the rest.
    """
    *fewer, most = counts = sorted({point.threads for curve in group for point in curve.points})
    by_count = {
        count: [next((point for point in curve.points if point.threads == count), None) for curve in group]
        for count in counts
    }
    last_rows = [curve.points[-1].row for curve in group]
    of_ranks = [
        Column("communication", list(map(communicating, last_rows)), 7),
        Column("sent / bound", list(map(over_bound, last_rows)), 8),
    ]
    return [
        Column("backend", [curve.row.backend for curve in group], right=False),
        Column("target", [curve.target for curve in group], 6, right=False),
        Column("variant", [curve.row.variant for curve in group], 1, right=False),
        Column("1 thread", list(map(_alone, group)), 2),
        *(Column(f"n = {count}", list(map(_speedup, by_count[count])), 3) for count in fewer),
        Column(f"n = {most}", list(map(_speedup, by_count[most]))),
        Column("efficiency", list(map(efficiency, group)), 5),
        *(of_ranks if any(row.communication for row in last_rows) else []),
        Column("p (95% interval)", list(map(part, group))),
        *([Column("predicted limit", list(map(limit, group)), 4)] if group[0].kind == STRONG else []),
    ]


def _by_speed(curve: Curve) -> float:
    return -curve.points[-1].speedup


def _alone(curve: Curve) -> str:
    """The time of one thread."""
    kernel = curve.row.timed
    return f"{'*' if curve.row.requested else ''}{units.duration(kernel.median)}" if kernel else ""


def _speedup(point: Point | None) -> str:
    if point is None:
        return ""
    return units.with_spread(f"{units.figure(point.speedup)}x", point.speedup, point.low, point.high)
