"""The roofline: how fast a kernel may be at its arithmetic intensity, and how fast each row is, on log scales.

Every mark stands at its own intensity and rate, even if it covers another one. The kernel's name stands above the
highest of its marks. Beside the panel each mark has its name, and its per cents from the leftmost kernel to the last. A
kernel that computes nothing has no place on such a scale: its rows are bars of their bandwidth's ceiling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import cycle
from math import log, prod
from typing import TYPE_CHECKING, Any

from py_backends.commands.roofline.table import groups, of_ceiling, roof_name
from py_backends.display import style, units
from py_backends.display.layout import UNSURE, why_unsure
from py_backends.results.report import Ceiling, Report
from py_backends.results.roofline import WHAT_MOVES, Point, Roofline, rooflines

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

TITLE = "The roofline"
_WIDTH, _LEAST_HEIGHT, _HEIGHT_OF_A_LINE, _HEIGHT_OF_A_FRAME = 10.0, 4.5, 0.145, 0.9
_HEIGHT_OF_A_BAR = 0.2
_MOST_POINTS_NAMED = 45
"""More names than these beside a panel are too many to read. Then only the best are named."""
_MOST_GROUPS = 6
"""Kernels and shapes in one panel."""
_BEYOND = 4.0
"""By which factor the axes go beyond the outermost points and edges."""
_ONE_LINE = 1.08
"""Bandwidths that differ by a smaller factor are drawn as one line."""
_DASHES: Any = ("-", "--", "-.", ":", (0, (9, 3)), (0, (5, 1, 1, 1, 1, 1)), (0, (1, 4)))
_GREY = "#808080"
_MARKS: Any = {"markersize": 6.5, "zorder": 3}
_WIDTH_OF_PANEL, _WIDTH_OF_A_LETTER, _HEIGHT_OF_A_NAME = 290.0, 5.5, 11.0
"""In points, about: of the panel, and of kernels' names in it."""


@style.settings()
def draw(report: Report) -> Figure:
    """A panel for each dtype: ceilings as lines, rows as marks, and their per cent of the roof beside their names.

    Rows that only move are in a panel below. Raises NothingToDraw if no row has a roof.
    """
    drawn = [panel for roofline in _found(report) for panel in _panels(roofline, report)]
    heights = [height for height, _ in drawn]
    figure, panels = style.grid(_WIDTH, sum(heights), len(drawn), 1, height_ratios=heights)
    for (_, fill), (axes,) in zip(drawn, panels, strict=True):
        fill(axes)
    return figure


def _panels(roofline: Roofline, report: Report) -> Iterator[tuple[float, Callable[[Axes], None]]]:
    """The panels of one dtype: the height of each in inches, and what draws it."""
    computing = [point for point in roofline.points if point.intensity]
    moving = [point for point in roofline.points if not point.intensity]
    if computing:
        of_these = replace(roofline, points=computing)
        yield _height(of_these), lambda axes: _draw(axes, of_these, report)
    if moving:
        shown = _chosen(replace(roofline, points=moving))
        height = _HEIGHT_OF_A_FRAME + _HEIGHT_OF_A_BAR * (len(shown) + len(list(groups(shown))))
        yield height, lambda axes: _draw_bars(axes, shown, roofline.dtype, report)


def describe(report: Report) -> str:
    """What the picture shows, in words. Raises NothingToDraw if no row has a roof."""
    sentences = ["A roofline: GFLOP/s over arithmetic intensity, on logarithmic scales."]
    for roofline in _found(report):
        peak, fastest, slowest = roofline.peaks[0], roofline.bandwidths[0], roofline.bandwidths[-1]
        sentences.append(
            f"In {roofline.dtype} the roof is {units.figure(peak.rate)} GFLOP/s of arithmetic, and from "
            f"{units.figure(slowest.rate)} to {units.figure(fastest.rate)} GB/s of memory and caches."
        )
        for title, points in groups(_chosen(roofline)):
            said = "; ".join(f"{_name(point)} reaches {of_ceiling(point)}" for point in points)
            bound = " or ".join(dict.fromkeys(point.bound for point in points))
            at = f"at {units.figure(points[0].intensity)} FLOP/byte" if points[0].intensity else "which only moves"
            sentences.append(f"{' '.join(title.split())}, {at}, is bound by {bound}: {said}.")
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
    """The points that are drawn: all, or of many shapes only those of the largest shape of each kernel."""
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
    return prod(size for size in row.asked.values() if isinstance(size, int))


def _height(roofline: Roofline) -> float:
    """The height in inches that leaves room for the names beside the panel."""
    points = _chosen(roofline)
    named = min(len({_name(point) for point in points}), _MOST_POINTS_NAMED) + len(list(groups(points)))
    lines = named + len(roofline.peaks) + len(_alike(roofline.bandwidths)) + 5
    return max(_LEAST_HEIGHT, _HEIGHT_OF_A_LINE * lines + _HEIGHT_OF_A_FRAME)


def _draw(axes: Axes, roofline: Roofline, report: Report) -> None:
    left, right, bottom, top = _limits(roofline)
    axes.set(xscale="log", yscale="log", xlim=(left, right), ylim=(bottom, top))
    axes.set_xlabel("arithmetic intensity in FLOP/byte")
    axes.set_ylabel("GFLOP/s")
    axes.set_title(f"roofline, {roofline.dtype}", loc="left", fontsize=10)
    legend = [_heading("roofs (fits: by reported size)"), *_draw_roofs(axes, roofline, report, (left, right))]
    points = _chosen(roofline)
    marks = style.marks(map(_name, points))
    _draw_points(axes, points, marks)
    by_intensity = sorted(groups(points), key=lambda group: _highest(group[1]).intensity)
    _write_kernels(axes, by_intensity, 72 * (_height(roofline) - _HEIGHT_OF_A_FRAME))
    legend += [_heading(""), *_headings(by_intensity, report), *_names(by_intensity, marks)]
    _write_beside(axes, legend)


_Group = tuple[str, Sequence[Point]]
"""The rows of one kernel and shape, with their title."""


def _highest(points: Sequence[Point]) -> Point:
    return max(points, key=lambda point: point.rate)


def _headings(by_intensity: Sequence[_Group], report: Report) -> Iterator[Line2D]:
    """What the per cents behind the names are of: the kernels from left to right."""
    yield _heading("per cent of the roof, from left to right, in")
    for title, points in by_intensity:
        bound = " or ".join(dict.fromkeys(f"by {point.bound}" for point in points))
        yield _heading(f"{title}, bound {bound}")
    if any(point.unsure for _, points in by_intensity for point in points):
        yield _heading(f"{UNSURE} and hollow {why_unsure(report)}")


def _names(by_intensity: Sequence[_Group], marks: dict[str, style.Mark]) -> Iterator[Line2D]:
    """A mark and its name, and its per cent for each kernel, those first that are the nearest to their roofs."""
    by_name: dict[str, dict[str, Point]] = {}
    for title, points in by_intensity:
        for point in points:
            by_name.setdefault(_name(point), {})[title] = point
    best_first = sorted(by_name.items(), key=lambda named: -max(point.percent for point in named[1].values()))
    for name, found in best_first[:_MOST_POINTS_NAMED]:
        cells = [of_ceiling(found[title]) if title in found else "-" for title, _ in by_intensity]
        yield _mark(marks[name], next(iter(found.values())), label=f"{name}: {', '.join(cells)}")


def _write_kernels(axes: Axes, by_intensity: Sequence[_Group], height: float) -> None:
    """The name of each kernel above the highest of its marks, and above other names where these are in its way."""
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    kernels = [title.split()[0] for title, _ in by_intensity]
    placed: list[tuple[float, float, float]] = []
    for (title, points), kernel in zip(by_intensity, kernels, strict=True):
        point, name = _highest(points), kernel if kernels.count(kernel) == 1 else " ".join(title.split())
        x = _WIDTH_OF_PANEL * log(point.intensity / left) / log(right / left)
        y = begin = height * log(point.rate / bottom) / log(top / bottom)
        half = len(name) * _WIDTH_OF_A_LETTER / 2
        for other, at, reach in sorted(placed, key=lambda each: each[1]):
            if abs(other - x) < half + reach and abs(at - y) < _HEIGHT_OF_A_NAME:
                y = at + _HEIGHT_OF_A_NAME
        placed.append((x, y, half))
        axes.annotate(
            name, (point.intensity, point.rate), (0, 6 + y - begin), textcoords="offset points", ha="center", fontsize=8
        )


def _draw_bars(axes: Axes, points: Sequence[Point], dtype: str, report: Report) -> None:
    """A bar for each row, as long as its part of what its bandwidth's ceiling allows."""
    title = f"what only moves, {dtype}"
    if any(point.unsure for point in points):
        title = f"{title} ({UNSURE} and hollow {why_unsure(report)})"
    axes.set(xlim=(0, max(100.0, *(point.percent for point in points))), xlabel="per cent of the bandwidth of a copy")
    axes.set_title(title, loc="left", fontsize=10)
    marks, names = style.marks(map(_name, points)), []
    for title, group in groups(points):
        names.append(" ".join(title.split()))
        for point in group:
            looks: Any = {"fill": False} if point.unsure else {}
            axes.barh(len(names), point.percent, color=marks[_name(point)].colour, height=0.7, **looks)
            axes.annotate(
                f" {of_ceiling(point)}, {units.figure(point.rate)} GB/s",
                (point.percent, len(names)),
                va="center",
                fontsize=8,
                annotation_clip=False,
            )
            names.append(_name(point))
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.invert_yaxis()


def _limits(roofline: Roofline) -> tuple[float, float, float, float]:
    """The ends of both axes. All points and all edges of the roof are between them."""
    points = _chosen(roofline)
    intensities = [point.intensity for point in points]
    intensities += [roofline.ridge(each) for each in roofline.bandwidths]
    left, right = min(intensities) / _BEYOND, max(intensities) * _BEYOND
    rates = [point.rate for point in points] + [left * roofline.bandwidths[-1].rate]
    return left, right, min(rates) / 2, roofline.peaks[0].rate * 2


def _draw_roofs(axes: Axes, roofline: Roofline, report: Report, ends: tuple[float, float]) -> list[Line2D]:
    """The lines of arithmetic and of memory, the highest first. Those of memory end where they meet the peak."""
    left, right = ends
    lines = []
    for peak, dashes in zip(roofline.peaks, cycle(_DASHES)):
        label = f"{roof_name(peak, report.machine)}: {units.figure(peak.rate)} GFLOP/s"
        begin = peak.rate / roofline.bandwidths[0].rate
        lines += axes.plot([begin, right], [peak.rate] * 2, linestyle=dashes, color="black", linewidth=1.2, label=label)
    for alike, dashes in zip(_alike(roofline.bandwidths), cycle(_DASHES)):
        intensities = [left, roofline.ridge(alike[0])]
        rates = [intensity * alike[0].rate for intensity in intensities]
        label = _bandwidth(alike, roofline, report)
        lines += axes.plot(intensities, rates, linestyle=dashes, color=_GREY, linewidth=1.2, label=label)
    return lines


def _alike(bandwidths: Sequence[Ceiling]) -> list[list[Ceiling]]:
    """Groups of bandwidths that are so close that one line stands for each group, the highest first."""
    groups: list[list[Ceiling]] = []
    for each in bandwidths:
        first = groups[-1][0] if groups else None
        same = first and WHAT_MOVES[first.kind] == WHAT_MOVES[each.kind]
        if first and same and each.rate * _ONE_LINE > first.rate:
            groups[-1].append(each)
        else:
            groups.append([each])
    return groups


def _bandwidth(alike: Sequence[Ceiling], roofline: Roofline, report: Report) -> str:
    """The caches or memory that one line stands for."""
    fastest, slowest = alike[0], alike[-1]
    if units.figure(fastest.rate) == units.figure(slowest.rate):
        rates = units.figure(fastest.rate)
    else:
        rates = f"{units.figure(slowest.rate)} to {units.figure(fastest.rate)}"
    by_size = sorted(alike, key=lambda each: each.working_set_bytes or 0)
    names = [roof_name(each, report.machine, roofline.from_memory) for each in (by_size[0], by_size[-1])]
    return f"{' to '.join(dict.fromkeys(names))}: {rates} GB/s"


def _draw_points(axes: Axes, points: Sequence[Point], marks: dict[str, style.Mark]) -> None:
    for point in points:
        axes.add_line(_mark(marks[_name(point)], point, ([point.intensity], [point.rate])))


def _mark(mark: style.Mark, point: Point, place: tuple[list[float], list[float]] = ([], []), label: str = "") -> Line2D:
    """A point's mark, at its place, or without one for the legend. It is hollow if the point is unreliable."""
    from matplotlib.lines import Line2D

    looks: Any = {"fillstyle": "none"} if point.unsure else {"markeredgecolor": "white", "markeredgewidth": 0.5}
    return Line2D(
        place[0], place[1], linestyle="", color=mark.colour, marker=mark.marker, label=label, **_MARKS, **looks
    )


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
