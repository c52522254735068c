"""Speed-ups over threads: points with their intervals, the law that was fitted to them, and where it leads.

Beyond the measured threads, Amdahl's law is extrapolated, but not far, and not with a parallel part above 1. For ranks,
a smaller panel below shows which part of their kernels is communication.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from py_backends.commands.scaling.analysis import STRONG, WEAK, Curve, Point, curves
from py_backends.commands.scaling.table import communicating, efficiency, groups, limit, name, over_bound, part, title
from py_backends.display import style, units
from py_backends.results.report import Report
from py_backends.results.spec import Workload

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Draw = Callable[[Axes, Sequence[Curve], dict[str, style.Mark]], None]

TITLE = "Threads"
_MOST = 4
"""The most shapes in one picture. Of more, it shows the last of each kernel and dtype."""
_BEYOND = 4
"""Amdahl's law is extrapolated to so many times the measured threads."""
_NOT_EXTRAPOLATED = "p above 1: not extrapolated"
_MOST_APART, _MOST_OF_A_GAP = {STRONG: 0.06, WEAK: 0.02}, 0.7
"""Points of the same number of threads stand side by side, so that all can be seen. They are at most the first part of
a doubling apart. Together they take at most the second part of the gap to the next number."""
_STEPS = 200
_WIDTH, _HEIGHT, _HEIGHT_OF_A_LINE, _HEIGHT_OF_RANKS = 12.4, 4.2, 0.2, 1.9
_LETTERS = 7.5
"""The size of letters in legends, whose lines are long."""
_LEAST_PERCENT, _ROOM_FOR_NAMES = 5.0, 1.6
"""The least per cent that the scale of communication reaches, since less is little, and how far it goes beyond the
data."""
_LABELS = {STRONG: "speed-up over one thread", WEAK: "scaled speed-up over one thread"}


@style.settings()
def draw(report: Report) -> Figure:
    """Two panels for each kernel, dtype and shape, strong and weak scaling. For ranks there are two more below.

    Raises NothingToDraw if no row was timed on one thread and on more.
    """
    found = _chosen(report)
    marks = style.marks(name(curve) for pair in found for group in pair for curve in group)
    drawn = [(how, pair, height) for pair in found for how, height in _parts(pair)]
    heights = [height for *_, height in drawn]
    figure, panels = style.grid(_WIDTH, sum(heights), len(drawn), 2, height_ratios=heights)
    for (how, pair, _), row in zip(drawn, panels, strict=True):
        for axes, group in zip(row, pair, strict=True):
            if group:
                how(axes, group, marks)
            else:
                axes.set_axis_off()
    return figure


def describe(report: Report) -> str:
    """What the picture shows, in words. Raises NothingToDraw as `draw` does."""
    sentences = ["Speed-up over one thread against the number of threads, with the law fitted to it."]
    for group in (group for pair in _chosen(report) for group in pair if group):
        said = [
            ", ".join(filter(None, (f"{name(curve)} {_fastest(curve)}", f"p = {part(curve)}", _beyond(curve))))
            for curve in group
        ]
        said += [f"communication of {name(curve)} takes {_told(curve)}" for curve in _of_ranks(group)]
        sentences.append(f"{title(group)}: {'; '.join(said)}.")
    return " ".join(sentences)


def _chosen(report: Report) -> list[tuple[list[Curve], list[Curve]]]:
    """Strong and weak scaling of each kernel, dtype and shape; either may be empty."""
    pairs: dict[Workload, dict[str, list[Curve]]] = {}
    for group in groups(curves(report)):
        pairs.setdefault(group[0].row.spec.workload, {})[group[0].kind] = group
    if not pairs:
        raise style.NothingToDraw(
            "no row was timed on one thread and on more: run py-backends scaling with a longer --budget"
        )
    if len(pairs) > _MOST:
        pairs = dict(list({(key.kernel, key.dtype): (key, pair) for key, pair in pairs.items()}.values())[:_MOST])
    return [(pair.get(STRONG, []), pair.get(WEAK, [])) for pair in pairs.values()]


def _parts(pair: tuple[list[Curve], list[Curve]]) -> Iterator[tuple[Draw, float]]:
    """What is drawn of strong and weak scaling, one below the other, and how high each is."""
    yield _draw, _HEIGHT + _HEIGHT_OF_A_LINE * max(map(len, pair))
    if any(map(_of_ranks, pair)):
        yield _draw_communication, _HEIGHT_OF_RANKS


def _draw(axes: Axes, group: Sequence[Curve], marks: dict[str, style.Mark]) -> None:
    counts = sorted({point.threads for curve in group for point in curve.points})
    strong = group[0].kind == STRONG
    last = counts[-1] * (_BEYOND if strong else 1)
    axes.plot(
        [1, last], [1, last], color="black", linewidth=1, linestyle=":", label="n times as fast on n threads (100%)"
    )
    apart = _apart(counts, len(group), group[0].kind)
    for at, curve in enumerate(sorted(group, key=lambda curve: -curve.points[-1].speedup)):
        _draw_law(axes, curve, counts[-1], last, marks[name(curve)].colour)
        _draw_points(axes, curve, 2 ** (apart * (at - (len(group) - 1) / 2)), marks[name(curve)])
    _scale_threads(axes)
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_ylim(top=1.15 * max(last, *(point.speedup + _above(point) for curve in group for point in curve.points)))
    axes.set_ylabel(_LABELS[group[0].kind])
    axes.set_title(title(group).replace("  weak", "\nweak").replace("  strong", "\nstrong"), loc="left", fontsize=10)
    if strong:
        begin = counts[-1] * 2**0.5
        axes.axvspan(begin, last, color="black", alpha=0.05, linewidth=0)
        # At the top left, above all curves: no extrapolated one has more than n times the speed on n threads.
        axes.text(
            begin, 0.98, " extrapolated, not measured", transform=axes.get_xaxis_transform(), va="top", fontsize=8
        )
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), fontsize=_LETTERS, frameon=False)


def _draw_communication(axes: Axes, group: Sequence[Curve], marks: dict[str, style.Mark]) -> None:
    """The part of the kernel in which ranks communicate, by the number of threads."""
    curves = _of_ranks(group)
    if not curves:
        axes.set_axis_off()
        return
    highest = _LEAST_PERCENT
    for curve in curves:
        rows = [curve.row, *(point.row for point in curve.points)]
        shares = [(row.threads, 100 * row.communicating) for row in rows if row.communicating is not None]
        threads, percent = zip(*shares, strict=True)
        highest, mark = max(highest, *percent), marks[name(curve)]
        label = f"{name(curve)}: {_told(curve)}"
        axes.plot(threads, percent, color=mark.colour, marker=mark.marker, markersize=4.5, linewidth=1, label=label)
    _scale_threads(axes)
    axes.set_ylim(bottom=0, top=_ROOM_FOR_NAMES * highest)
    axes.set_ylabel("communication,\n% of the kernel")
    axes.legend(loc="upper left", fontsize=_LETTERS, frameon=False)


def _of_ranks(group: Sequence[Curve]) -> list[Curve]:
    """The curves whose row with most threads has several ranks. A single rank does not communicate."""
    told = [(curve, curve.points[-1].row.communication) for curve in group]
    return [curve for curve, communication in told if communication and len(communication.bytes_sent) > 1]


def _told(curve: Curve) -> str:
    """What part of the kernel communication takes with most ranks, and its bytes over the bound."""
    point = curve.points[-1]
    said, sent = f"{communicating(point.row)} on {point.threads}", over_bound(point.row)
    return said if sent == "-" else f"{said}, a rank sends {sent} the bound"


def _scale_threads(axes: Axes) -> None:
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("threads")


def _apart(counts: Sequence[int], curves: int, kind: str) -> float:
    """The distance between points of the same number of threads, as a part of a doubling."""
    gap = min(math.log2(more / fewer) for fewer, more in pairwise([1, *counts]))
    return min(_MOST_APART[kind], _MOST_OF_A_GAP * gap / curves)


def _draw_law(axes: Axes, curve: Curve, measured: int, last: int, colour: str) -> None:
    """The fitted law: a full line as far as was measured, and dashed beyond, as far as it says anything there."""
    parts = [(1, measured, "-")]
    if curve.extrapolates and last > measured:
        parts.append((measured, last, "--"))
    for begin, end, line in parts:
        threads = [begin * (end / begin) ** (step / _STEPS) for step in range(_STEPS + 1)]
        known = [(count, law) for count in threads if (law := curve.predicted(count)) is not None and law > 0]
        # With p well above 1, Amdahl's law has no values from some number of threads on.
        known = [(count, law) for count, law in known if law <= 2 * count]
        if known:
            axes.plot(*zip(*known, strict=True), color=colour, linestyle=line, linewidth=1)


def _draw_points(axes: Axes, curve: Curve, aside: float, mark: style.Mark) -> None:
    points = curve.points
    axes.errorbar(
        [point.threads * aside for point in points],
        [point.speedup for point in points],
        yerr=[[_below(point) for point in points], [_above(point) for point in points]],
        color=mark.colour,
        marker=mark.marker,
        markersize=4.5,
        linestyle="",
        capsize=2,
        label=_label(curve),
    )


def _below(point: Point) -> float:
    return 0.0 if point.low is None else max(0.0, point.speedup - point.low)


def _above(point: Point) -> float:
    return 0.0 if point.high is None else max(0.0, point.high - point.speedup)


def _label(curve: Curve) -> str:
    at = f" at {units.short_shape(curve.row.shape)}" if curve.row.requested else ""
    said = f"{name(curve)}{at}: {_fastest(curve)}, p = {part(curve)}"
    return f"{said}, {beyond}" if (beyond := _beyond(curve)) else said


def _beyond(curve: Curve) -> str:
    """What Amdahl's law predicts for more threads than were measured."""
    if curve.kind != STRONG or not math.isfinite(curve.fit.p) or curve.one_thread_only:
        return ""
    if not curve.extrapolates:
        return _NOT_EXTRAPOLATED
    return f"limit {limit(curve)}" if curve.fit.p < 1 else ""


def _fastest(curve: Curve) -> str:
    point = curve.points[-1]
    return f"{units.figure(point.speedup)}x on {point.threads} ({efficiency(curve)})"
