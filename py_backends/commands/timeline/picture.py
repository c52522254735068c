"""Where the time of one call goes, as bars on one scale. Beside them, on another scale, is what happens once.

A bar has the phases of a call, and the rest if the call took longer than all of them. A black line marks the end of the
measured call. For ranks, each has a lane below, which begins with the kernel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from statistics import median
from typing import TYPE_CHECKING, Any

from py_backends.commands.timeline.table import communicating
from py_backends.display import style, units
from py_backends.results.report import Report
from py_backends.results.timeline import (
    FIRST_LAUNCH,
    KERNEL,
    ONCE,
    PHASES,
    PREPARE,
    REST,
    Call,
    Timeline,
    timelines,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Where the time of a call goes"
_MOST = 6
"""The most timelines in one picture. Of more, it shows the largest shapes of each kernel and dtype."""
_MOST_ABOVE_MEDIAN = 6.0
"""A call so many times as long as the median one is drawn shorter. Otherwise the others would be too short to read."""
_WIDTH, _HEIGHT_OF_A_BAR, _HEIGHT_OF_A_FRAME, _HEIGHT_OF_THE_LEGEND = 9.0, 0.28, 1.05, 0.7
_THICKNESS = 0.72
"""The height of a bar, in rows."""
_LANE = 0.55
"""The part of a row that a lane takes."""
_ROOM_FOR_FIGURES = 1.14
_BREAK, _SLANT = (0.93, 0.945), 0.006
"""The places of the two strokes across a shortened bar, and how far each leans, as parts of the bar's length."""
_COMMUNICATION = "communication"
_COLOURS = style.marks((KERNEL, "upload", "download", "launch", "release", _COMMUNICATION))
_REST_COLOUR = "#bbbbbb"
_WORDS = {"launch": "launch and wait", REST: "rest of the call", _COMMUNICATION: "communication of a rank"}
_MEASURED = "call as measured"
_ONCE_MARKS: Any = {
    PREPARE: {"marker": "o", "markersize": 8, "fillstyle": "none"},  # a ring, visible around the other mark
    FIRST_LAUNCH: {"marker": "D", "markersize": 3.5},
}


@style.settings()
def draw(report: Report) -> Figure:
    """Two panels for each kernel, dtype and shape: the phases of a call, and what happens once before all calls.

    Raises NothingToDraw if no row was timed.
    """
    chosen = _chosen(report)
    heights = [_HEIGHT_OF_A_FRAME + _HEIGHT_OF_A_BAR * sum(map(_rows, each.calls)) for each in chosen]
    figure, panels = style.grid(
        _WIDTH,
        _HEIGHT_OF_THE_LEGEND + sum(heights),
        len(chosen),
        2,
        width_ratios=(3, 1),
        height_ratios=heights,
        sharey="row",
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
    parts = [_WORDS.get(part, part) for part in (*PHASES, _COMMUNICATION, REST)]
    labels = [*parts, _MEASURED, *(f"{name} (once)" for name in ONCE)]
    shown = [label for label in labels if label in drawn]
    figure.legend(
        [drawn[label] for label in shown],
        shown,
        loc="outside upper center",
        ncols=math.ceil(len(shown) / 2),
        frameon=False,
        fontsize=9,
        handlelength=1.2,
        columnspacing=1.2,
    )
    return figure


def describe(report: Report) -> str:
    """What the picture shows, in words. Raises NothingToDraw if no row was timed."""
    sentences = ["Where the time of one call goes: its phases as bars on one scale of seconds."]
    for timeline in _chosen(report):
        said = [_in_words(call) for call in timeline.calls]
        sentences.append(f"{timeline.asked.title}: {'; '.join(said)}.")
    return " ".join(sentences)


def _chosen(report: Report) -> list[Timeline]:
    found = timelines(report)
    if not found:
        raise style.NothingToDraw("no row was timed, so there are no phases to show")
    if len(found) > _MOST:
        largest: dict[tuple[str, str], Timeline] = {}
        for each in found:
            name = each.asked.kernel, each.asked.dtype
            largest[name] = max(largest.get(name, each), each, key=_elements)
        found = list(largest.values())[:_MOST]
    return found


def _elements(timeline: Timeline) -> int:
    return sum(size for size in timeline.asked.sizes if isinstance(size, int))


def _draw_calls(axes: Axes, timeline: Timeline) -> None:
    calls = timeline.calls
    totals = [call.total for call in calls]
    in_full = max(_MOST_ABOVE_MEDIAN * median(totals), min(totals))
    longest = max(total for total in totals if total <= in_full)
    size, unit = units.time_unit(longest)
    names: dict[float, str] = {}
    for at, call in zip(_places(calls), calls, strict=True):
        shorter = longest / call.total if call.total > in_full else 1.0
        _draw_call(axes, at, call, shorter / size)
        if shorter < 1:
            _draw_break(axes, at, longest / size)
        names[at] = _name(call, calls, in_scale=shorter == 1)
        names |= _draw_lanes(axes, at, call, shorter / size)
    axes.set_xlim(0, longest * _ROOM_FOR_FIGURES / size or 1.0)  # kernels of a size of 0 may take no time at all
    axes.set_xlabel(f"time of one call in {unit}")
    axes.set_title(timeline.asked.title, loc="left", fontsize=10)
    axes.set_yticks(list(names), list(names.values()), fontsize=8.5, linespacing=1.0)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_axisbelow(True)


def _rows(call: Call) -> float:
    """How many rows of the panel a call takes."""
    return 1 + _LANE * len(call.some_lanes)


def _places(calls: Sequence[Call]) -> list[float]:
    """The row of each call's bar."""
    return list(accumulate(map(_rows, calls[:-1]), initial=0.0))


def _draw_call(axes: Axes, at: float, call: Call, scale: float) -> None:
    """The phases one after the other, the rest, and a line where the measured call ends.

    `scale` is how many units of the axis a second has.
    """
    begin = 0.0
    parts = {**call.phases, REST: call.rest} if call.rest else call.phases
    for part, seconds in parts.items():
        colour = _REST_COLOUR if part == REST else _COLOURS[part].colour
        label = _WORDS.get(part, part)
        axes.barh(at, seconds * scale, left=begin, height=_THICKNESS, color=colour, label=label)
        begin += seconds * scale
    end = call.total * scale
    if call.end_to_end is not None:
        axes.plot(end, at, color="black", marker="|", markersize=15, linestyle="", clip_on=False, label=_MEASURED)
    axes.annotate(
        units.duration(call.total), (max(begin, end), at), (4, 0), textcoords="offset points", va="center", fontsize=8
    )


def _draw_lanes(axes: Axes, at: float, call: Call, scale: float) -> dict[float, str]:
    """A lane for each rank, below its call: first the computing in the kernel, then the communication.

    Returns the ranks' names by the rows of their lanes.
    """
    begin = sum(seconds for part, seconds in call.phases.items() if PHASES.index(part) < PHASES.index(KERNEL)) * scale
    names = {}
    for number, lane in enumerate(call.some_lanes):
        row = at + _THICKNESS / 2 + _LANE * (number + 0.5)
        names[row] = f"rank {lane.rank}"
        height, middle, end = _LANE * _THICKNESS, begin + lane.computing * scale, begin + lane.kernel * scale
        axes.barh(row, middle - begin, left=begin, height=height, color=_COLOURS[KERNEL].colour)
        colour, label = _COLOURS[_COMMUNICATION].colour, _WORDS[_COMMUNICATION]
        axes.barh(row, end - middle, left=middle, height=height, color=colour, label=label)
        axes.annotate(communicating(lane), (end, row), (3, 0), textcoords="offset points", va="center", fontsize=6.5)
    return names


def _draw_break(axes: Axes, at: float, length: float) -> None:
    """Two slanting strokes across a bar that is drawn shorter than it is."""
    for part in _BREAK:
        ends = [(part - _SLANT) * length, (part + _SLANT) * length]
        axes.plot(ends, [at + 0.5, at - 0.5], color="white", linewidth=2.5)


def _draw_once(axes: Axes, calls: Sequence[Call]) -> None:
    from matplotlib.ticker import EngFormatter, LogLocator, NullLocator

    for name in ONCE:
        places = zip(_places(calls), calls, strict=True)
        points = [(call.once[name], at) for at, call in places if call.once.get(name, 0) > 0]
        if points:
            seconds, rows = zip(*points, strict=True)
            axes.plot(seconds, rows, **_ONCE_MARKS[name], color="black", linestyle="", label=f"{name} (once)")
    axes.set_xscale("log")
    axes.margins(x=0.12)
    axes.xaxis.set_major_locator(LogLocator(base=1000))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(EngFormatter(unit="s"))
    axes.set_xlabel("once, before all calls")
    axes.tick_params(axis="y", labelleft=False)


def _name(call: Call, calls: Sequence[Call], *, in_scale: bool) -> str:
    row = call.row
    parts = [row.backend, row.target]
    others = [each.row.variant for each in calls if (each.row.backend, each.row.target) == (row.backend, row.target)]
    if len(others) > 1:
        parts.append(row.variant)
    below = [f"at {units.shape(row.shape.values())}"] if call.shortened else []
    below += [] if in_scale else ["not to scale"]
    return "\n".join([" ".join(parts), ", ".join(below)]) if below else " ".join(parts)


def _in_words(call: Call) -> str:
    at = f" at {units.shape(call.row.shape.values())}" if call.shortened else ""
    lanes = ", ".join(f"{communicating(lane)} of rank {lane.rank}" for lane in call.some_lanes)
    return (
        f"{call.row.backend} {call.row.target} {call.row.variant}{at} takes {units.duration(call.total)}, "
        f"{100 * call.outside:.0f}% of it outside the kernel"
        + (f"; of the kernel of each rank communication is {lanes}" if lanes else "")
    )
