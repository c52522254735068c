"""Where the time of one call goes, as bars on one scale; beside them, on a scale of its own, what comes once."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from py_backends.harness.results import Report
from py_backends.harness.timeline import FIRST_LAUNCH, ONCE, PHASES, PREPARE, Call, Timeline, timelines
from py_backends.report import units
from py_backends.report.pictures import style
from py_backends.report.timeline import title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST = 6
"""Timelines in one picture; of more, the largest shapes of each kernel and dtype."""
_MOST_ABOVE_MEDIAN = 6.0
"""A bar so many times as long as the median one is cut: it would leave the others too short to be read."""
_WIDTH, _HEIGHT_OF_A_BAR, _HEIGHT_OF_A_FRAME = 9.0, 0.28, 1.05
_ROOM_FOR_FIGURES = 1.14
_ON_A_BAR = {"kernel": "#fafafa"}
"""Letters on a bar, by what the bar shows at its end. No pure white or black: a page takes them for its own colours."""
_ON_OTHER_BARS = "#111111"
_COLOURS = style.marks(("kernel", "upload", "download", "launch", "release"))
_WORDS = {"launch": "launch and wait"}
_ONCE_MARKS: Any = {
    PREPARE: {"marker": "o", "markersize": 8, "fillstyle": "none"},  # a ring, seen around the other where they agree
    FIRST_LAUNCH: {"marker": "D", "markersize": 3.5},
}


def draw(report: Report) -> Figure:
    """A pair of panels for each kernel, dtype and shape: the phases of a call, and what comes once before all calls.

    Raises NothingToDraw where no row was timed.
    """
    chosen = _chosen(report)
    heights = [_HEIGHT_OF_A_FRAME + _HEIGHT_OF_A_BAR * len(each.calls) for each in chosen]
    figure, panels = style.grid(
        _WIDTH, 0.5 + sum(heights), len(chosen), 2, width_ratios=(3, 1), height_ratios=heights, sharey="row"
    )
    for timeline, (bars, dots) in zip(chosen, panels, strict=True):
        _draw_calls(bars, timeline)
        _draw_once(dots, timeline.calls)
    drawn = {
        label: mark
        for row in panels
        for axes in row
        for mark, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    labels = [_WORDS.get(phase, phase) for phase in PHASES] + [f"{name} (once)" for name in ONCE]
    shown = [label for label in labels if label in drawn]
    figure.legend(
        [drawn[label] for label in shown],
        shown,
        loc="outside upper center",
        ncols=len(shown),
        frameon=False,
        fontsize=9,
        handlelength=1.2,
        columnspacing=1.2,
    )
    return figure


def describe(report: Report) -> str:
    """What the picture shows, in words. Raises NothingToDraw where no row was timed."""
    sentences = ["Where the time of one call goes: its phases as bars on one scale of seconds."]
    for timeline in _chosen(report):
        said = [_in_words(call) for call in timeline.calls]
        sentences.append(f"{title(timeline)}: {'; '.join(said)}.")
    return " ".join(sentences)


def _chosen(report: Report) -> list[Timeline]:
    found = timelines(report)
    if not found:
        raise style.NothingToDraw("no row was timed, so there are no phases to show")
    if len(found) > _MOST:
        largest: dict[tuple[str, str], Timeline] = {}
        for each in found:
            name = each.asked.kernel, each.asked.dtype
            largest[name] = max(largest.get(name, each), each, key=lambda each: sum(each.asked.sizes))
        found = list(largest.values())[:_MOST]
    return found


def _draw_calls(axes: Axes, timeline: Timeline) -> None:
    calls = timeline.calls
    totals = [call.total for call in calls]
    in_full = max(_MOST_ABOVE_MEDIAN * median(totals), min(totals))
    longest = max(total for total in totals if total <= in_full)
    size, unit = units.time_unit(longest)
    end = longest * _ROOM_FOR_FIGURES / size or 1.0  # kernels of a size of 0 may take no time that a clock sees
    for at, call in enumerate(calls):
        begin, ends_with = 0.0, ""
        for phase, seconds in call.phases.items():
            if begin < end:
                ends_with = phase
            width = min(seconds / size, end - begin)
            axes.barh(at, width, left=begin, height=0.72, color=_COLOURS[phase].colour, label=_WORDS.get(phase, phase))
            begin += width
        cut = call.total > in_full
        axes.annotate(
            f"goes on to {units.duration(call.total)} →" if cut else units.duration(call.total),
            (begin, at),
            (-6, 0) if cut else (3, 0),
            textcoords="offset points",
            va="center",
            ha="right" if cut else "left",
            fontsize=8,
            color=_ON_A_BAR.get(ends_with, _ON_OTHER_BARS) if cut else "black",
        )
    axes.set_xlim(0, end)
    axes.set_xlabel(f"time of one call in {unit}")
    axes.set_title(title(timeline), loc="left", fontsize=10)
    axes.set_yticks(range(len(calls)), [_name(call, calls) for call in calls], fontsize=8.5, linespacing=1.0)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_axisbelow(True)


def _draw_once(axes: Axes, calls: Sequence[Call]) -> None:
    from matplotlib.ticker import EngFormatter, LogLocator, NullLocator

    for name in ONCE:
        points = [(call.once[name], at) for at, call in enumerate(calls) if call.once.get(name, 0) > 0]
        if points:
            seconds, places = zip(*points, strict=True)
            axes.plot(seconds, places, **_ONCE_MARKS[name], color="black", linestyle="", label=f"{name} (once)")
    axes.set_xscale("log")
    axes.margins(x=0.12)
    axes.xaxis.set_major_locator(LogLocator(base=1000))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(EngFormatter(unit="s"))
    axes.set_xlabel("once, before all calls")
    axes.tick_params(axis="y", labelleft=False)


def _name(call: Call, calls: Sequence[Call]) -> str:
    row = call.row
    parts = [row.backend, row.target]
    others = [each.row.variant for each in calls if (each.row.backend, each.row.target) == (row.backend, row.target)]
    if len(others) > 1:
        parts.append(row.variant)
    name = " ".join(parts)
    return f"{name}\nat {units.shape(row.shape.values())}" if call.shortened else name


def _in_words(call: Call) -> str:
    at = f" at {units.shape(call.row.shape.values())}" if call.shortened else ""
    return (
        f"{call.row.backend} {call.row.target} {call.row.variant}{at} takes {units.duration(call.total)}, "
        f"{100 * call.outside:.0f}% of it outside the kernel"
    )
