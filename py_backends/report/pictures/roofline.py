"""The roofline: how fast a kernel may be at its arithmetic intensity, and how fast each row is; on log scales."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from math import prod
from typing import TYPE_CHECKING, Any

from py_backends.harness.ceilings import READS
from py_backends.harness.results import Ceiling, Report
from py_backends.harness.roofline_points import Point, Roofline, rooflines
from py_backends.report import units
from py_backends.report.pictures import style
from py_backends.report.roofline import groups, percent, roof_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_WIDTH, _LEAST_HEIGHT, _HEIGHT_OF_A_LINE, _HEIGHT_OF_A_FRAME = 10.0, 4.5, 0.145, 0.9
_MOST_POINTS_NAMED = 45
"""More names than these beside one panel nobody reads: then only the best of each group are named."""
_MOST_GROUPS = 6
"""Kernels and shapes in one panel."""
_LEFT, _RIGHT = 4.0, 14.0
"""By which factors the axes go beyond the outermost points and edges; to the right there may be a row of marks."""
_TOUCHING = 0.03
"""Marks nearer to each other than this part of the height would cover one another."""
_ASIDE = 0.022
"""Part of the width by which a mark that would cover another is moved to the right."""
_ONE_LINE = 1.08
"""Bandwidths that differ by a smaller factor are drawn as one line."""
_DASHES: Any = ("-", "--", "-.", ":", (0, (9, 3)), (0, (5, 1, 1, 1, 1, 1)), (0, (1, 4)))
_GREY = "#808080"
_MARKS: Any = {"markersize": 6.5, "markeredgecolor": "white", "markeredgewidth": 0.5, "zorder": 3}


def draw(report: Report) -> Figure:
    """A panel for each dtype: the ceilings as lines, every row as a mark, and its per cent of its roof beside its name.

    Raises NothingToDraw where no row has a roof.
    """
    found = _found(report)
    heights = [_height(roofline) for roofline in found]
    figure, panels = style.grid(_WIDTH, sum(heights), len(found), 1, height_ratios=heights)
    for roofline, (axes,) in zip(found, panels, strict=True):
        _draw(axes, roofline, report)
    return figure


def describe(report: Report) -> str:
    """What the picture shows, in words. Raises NothingToDraw where no row has a roof."""
    sentences = ["A roofline: GFLOP/s over arithmetic intensity, on logarithmic scales."]
    for roofline in _found(report):
        peak, fastest, slowest = roofline.peaks[0], roofline.bandwidths[0], roofline.bandwidths[-1]
        sentences.append(
            f"In {roofline.dtype} the roof is {units.figure(peak.rate)} GFLOP/s of arithmetic, and from "
            f"{units.figure(slowest.rate)} to {units.figure(fastest.rate)} GB/s of memory and caches."
        )
        for title, points in groups(_chosen(roofline)):
            said = "; ".join(f"{_name(point)} reaches {percent(point.percent)}" for point in points)
            bound = " or ".join(dict.fromkeys(point.bound for point in points))
            at = units.figure(points[0].intensity)
            sentences.append(f"{' '.join(title.split())}, at {at} FLOP/byte, is bound by {bound}: {said}.")
    return " ".join(sentences)


def _found(report: Report) -> list[Roofline]:
    found = rooflines(report)
    if not found:
        why = report.without_ceilings or "no row was timed on a device whose ceilings were measured"
        raise style.NothingToDraw(f"there is no roofline: {why}")
    return found


def _name(point: Point) -> str:
    row = point.row
    return f"{row.backend} {row.target} {row.variant}"


def _chosen(roofline: Roofline) -> list[Point]:
    """The points that are drawn: all or, of many shapes, those of the largest shape of each kernel."""
    all_groups = [points for _, points in groups(roofline.points)]
    if len(all_groups) <= _MOST_GROUPS:
        return roofline.points
    largest: dict[str, list[Point]] = {}
    for points in all_groups:
        kernel = points[0].row.kernel
        largest[kernel] = max(largest.get(kernel, points), points, key=_asked_work)
    return [point for points in largest.values() for point in points]


def _asked_work(points: Sequence[Point]) -> int:
    row = points[0].row
    return prod((row.requested or row.shape).values())


def _height(roofline: Roofline) -> float:
    """Inches, so that the names beside the panel have room."""
    points = _chosen(roofline)
    named = min(len(points), _MOST_POINTS_NAMED) + 3 * len(list(groups(points)))
    lines = named + len(roofline.peaks) + len(_alike(roofline.bandwidths)) + 2
    return max(_LEAST_HEIGHT, _HEIGHT_OF_A_LINE * lines + _HEIGHT_OF_A_FRAME)


def _draw(axes: Axes, roofline: Roofline, report: Report) -> None:
    left, right, bottom, top = _limits(roofline)
    axes.set(xscale="log", yscale="log", xlim=(left, right), ylim=(bottom, top))
    axes.set_xlabel(
        "arithmetic intensity in FLOP/byte\n(a thin line leads from a mark to its place, where another one is)"
    )
    axes.set_ylabel("GFLOP/s")
    axes.set_title(f"roofline, {roofline.dtype}", loc="left", fontsize=10)
    legend = [_heading("roofs"), *_draw_roofs(axes, roofline, report, (left, right))]
    marks = style.marks(_name(point) for point in _chosen(roofline))
    all_groups = list(groups(_chosen(roofline)))
    _draw_points(axes, [point for _, points in all_groups for point in points], marks)
    for title, points in all_groups:
        bound = " or ".join(dict.fromkeys(f"by {point.bound}" for point in points))
        legend += [_heading(""), _heading(title), _heading(f"bound {bound}; per cent of its roof:")]
        legend += _named(points[: max(1, _MOST_POINTS_NAMED // len(all_groups))], marks)
    _write_beside(axes, legend)


def _limits(roofline: Roofline) -> tuple[float, float, float, float]:
    """The ends of both axes: all points and all edges of the roof are between them."""
    points = _chosen(roofline)
    intensities = [point.intensity for point in points]
    intensities += [roofline.ridge(each) for each in roofline.bandwidths]
    left, right = min(intensities) / _LEFT, max(intensities) * _RIGHT
    rates = [point.gflops for point in points] + [left * roofline.bandwidths[-1].rate]
    return left, right, min(rates) / 2, roofline.peaks[0].rate * 2


def _draw_roofs(axes: Axes, roofline: Roofline, report: Report, ends: tuple[float, float]) -> list[Line2D]:
    """The lines of arithmetic and of memory, the highest first; those of memory end where they meet the peak."""
    left, right = ends
    lines = []
    for peak, dashes in zip(roofline.peaks, cycle(_DASHES)):
        label = f"{roof_name(peak, report.machine)}: {units.figure(peak.rate)} GFLOP/s"
        begin = peak.rate / roofline.bandwidths[0].rate
        lines += axes.plot([begin, right], [peak.rate] * 2, linestyle=dashes, color="black", linewidth=1.2, label=label)
    for alike, dashes in zip(_alike(roofline.bandwidths), cycle(_DASHES)):
        intensities = [left, roofline.ridge(alike[0])]
        rates = [intensity * alike[0].rate for intensity in intensities]
        label = _bandwidth(alike, report)
        lines += axes.plot(intensities, rates, linestyle=dashes, color=_GREY, linewidth=1.2, label=label)
    return lines


def _alike(bandwidths: Sequence[Ceiling]) -> list[list[Ceiling]]:
    """Those that lie so close to each other that one line stands for them, the highest first."""
    groups: list[list[Ceiling]] = []
    for each in bandwidths:
        first = groups[-1][0] if groups else None
        if first and (first.kind == READS) == (each.kind == READS) and each.rate * _ONE_LINE > first.rate:
            groups[-1].append(each)
        else:
            groups.append([each])
    return groups


def _bandwidth(alike: Sequence[Ceiling], report: Report) -> str:
    """What one line of memory stands for."""
    fastest, slowest = alike[0], alike[-1]
    if units.figure(fastest.rate) == units.figure(slowest.rate):
        rates = units.figure(fastest.rate)
    else:
        rates = f"{units.figure(slowest.rate)} to {units.figure(fastest.rate)}"
    names = sorted(alike, key=lambda each: each.working_set_bytes or 0)
    words = " to ".join(dict.fromkeys(roof_name(each, report.machine) for each in (names[0], names[-1])))
    return f"{words}: {rates} GB/s"


def _draw_points(axes: Axes, points: Sequence[Point], marks: dict[str, style.Mark]) -> None:
    """A mark for each point, the fastest first; a thin line leads to one that stands to the right of its place."""
    in_order = sorted(points, key=lambda point: -point.gflops)
    for point, intensity in zip(in_order, _in_a_row(axes, in_order), strict=True):
        mark = marks[_name(point)]
        if intensity > point.intensity:
            axes.plot([point.intensity, intensity], [point.gflops] * 2, color=_GREY, linewidth=0.5)
        axes.plot(intensity, point.gflops, mark.marker, color=mark.colour, **_MARKS)


def _named(points: Sequence[Point], marks: dict[str, style.Mark]) -> list[Line2D]:
    from matplotlib.lines import Line2D

    names = [f"{percent(point.percent)}  {_name(point)}" for point in points]
    return [
        Line2D([], [], linestyle="", color=mark.colour, marker=mark.marker, label=name, **_MARKS)
        for mark, name in zip((marks[_name(point)] for point in points), names, strict=True)
    ]


def _heading(words: str) -> Line2D:
    """A line of the legend without a mark."""
    from matplotlib.lines import Line2D

    return Line2D([], [], linestyle="", label=words or " ")


def _write_beside(axes: Axes, lines: Sequence[Line2D]) -> None:
    """All the lines as one legend beside the panel."""
    legend = axes.legend(
        handles=lines,
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        borderaxespad=0.0,
        frameon=False,
        fontsize=8,
        handlelength=2.4,
        labelspacing=0.25,
    )
    for text, line in zip(legend.get_texts(), lines, strict=True):
        if line.get_linestyle() == "None" and line.get_marker() == "None":
            text.set_fontweight("bold")


def _in_a_row(axes: Axes, points: Sequence[Point]) -> list[float]:
    """The intensity at which each point is drawn: its own, or one to the right where another mark already is.

    To the right and never to the left, where it would seem to be above the roof.
    """
    to_panel = axes.transScale + axes.transLimits
    taken: list[tuple[float, float]] = []
    for point in points:
        x, y = to_panel.transform((point.intensity, point.gflops))
        near = [other for other, height in taken if abs(height - y) < _TOUCHING]
        free = (x + step * _ASIDE for step in range(len(points)))
        taken.append((next(at for at in free if all(abs(at - other) > 0.9 * _ASIDE for other in near)), y))
    return [float(to_panel.inverted().transform(at)[0]) for at in taken]
