"""The roofline: how fast a kernel may be at its arithmetic intensity, and how fast each row is, on log scales.

The peaks and one roof for each level of memory are lines with their names on them. Every mark stands at its own
intensity and rate, even if it covers another one. Above the marks of a kernel a dash is its own roof, with its name. A
heat map says how much of it each row reaches: of many kernels, each model at best. It is the legend of the marks too.
A kernel that computes nothing has no place on such a scale: without others, its rows are bars of their bandwidth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import atan, degrees, exp, log
from typing import TYPE_CHECKING, Any

from py_backends.commands.roofline.analysis import Kernel, Level, Shares, levels, shares, source
from py_backends.commands.roofline.table import marked, of_ceiling
from py_backends.display import style, units
from py_backends.display.layout import UNSURE, why_unsure
from py_backends.results.report import Ceiling, Report
from py_backends.results.roofline import Roofline, rooflines

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D

TITLE = "The roofline"
_WIDTH, _HEIGHT, _HEIGHT_OF_A_FRAME, _HEIGHT_OF_A_CELL = 10.0, 4.5, 0.9, 0.2
_WIDTH_OF_A_NAME, _WIDTH_OF_A_CELL, _LEAST_WIDTH = 1.1, 0.78, 8.0
"""In inches: of models' names beside the heat map of many kernels, and of its columns; and of such a picture."""
_WIDTH_OF_A_SOURCE = 1.7
"""The same of backends, targets and variants, of few kernels."""
_HEIGHT_OF_HEADS = 0.62
"""Of the heat map's columns, in inches."""
_DASH = 1.18
"""By which factor the dash of a kernel's roof goes beyond its intensity, to either side."""
_MOST_NAMED = 45
"""More rows of the heat map than these are too many to read. Then only the best are named."""
_ONE_LINE = 1.08
"""Roofs of memory that differ by a smaller factor are drawn as one line."""
_GREY = "#808080"
_MARKS: Any = {"markersize": 6.5, "zorder": 3}
_WIDTH_OF_A_LETTER, _HEIGHT_OF_LETTERS, _HEIGHT_OF_A_NAME = 5.0, 8.0, 11.0
"""In points, about: of names in the panel."""
_SLANTED = 0.8
"""A name along a rising line takes this part of its length from the left, at most."""
_ON_PAGE: Any = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.3}
"""Behind kernels' names, so that lines do not cross them."""
_COLOURS = "cividis"
"""From dark to light, and alike for any colour vision."""
_LIGHT_FROM = 47
"""Per cent from which a cell is so light that its figure is dark."""
_ON_LIGHT, _ON_DARK = "#010101", "#fefefe"
"""Nearly black and white. Those themselves become the colours of the page: see `style.svg`."""


@dataclass(frozen=True)
class _Part:
    """A part of the picture, its size in inches, and what draws it."""

    width: float
    height: float
    fill: Callable[[SubFigure], None]


@style.settings()
def draw(report: Report) -> Figure:
    """For each dtype a panel of roofs and marks, and a heat map of shares: beside it, or of many kernels below it.

    Rows that only move are in the heat map of many kernels, else in a panel below. Raises NothingToDraw if no row has a
    roof.
    """
    drawn = [part for roofline in _found(report) for part in _parts(roofline, report)]
    figure, places = style.stacked(max(part.width for part in drawn), [part.height for part in drawn])
    for part, place in zip(drawn, places, strict=True):
        part.fill(place)
    return figure


def _parts(roofline: Roofline, report: Report) -> Iterator[_Part]:
    """The parts of one dtype."""
    found = shares(roofline, report.machine)
    computing = [point for point in roofline.points if point.intensity]
    if computing:
        if not found.many:
            found = shares(replace(roofline, points=computing), report.machine)
        size = _size_of_map(found)
        width = max(_LEAST_WIDTH, _WIDTH_OF_A_NAME + size[0]) if found.many else _WIDTH
        height = _HEIGHT + size[1] if found.many else max(_HEIGHT, size[1])
        yield _Part(width, height, lambda part: _draw(part, found, roofline, report))
    if (moving := [point for point in roofline.points if not point.intensity]) and not (computing and found.many):
        kernels = shares(replace(roofline, points=moving), report.machine).kernels
        bars = sum(1 + len(kernel.points) for kernel in kernels)
        height = _HEIGHT_OF_A_FRAME + _HEIGHT_OF_A_CELL * bars
        yield _Part(_WIDTH, height, lambda part: _draw_bars(part.subplots(), kernels, roofline.dtype, report))


def describe(report: Report) -> str:
    """What the picture shows, in words. Raises NothingToDraw if no row has a roof."""
    sentences = ["A roofline: GFLOP/s over arithmetic intensity, on logarithmic scales."]
    if report.mostly_disturbed:
        sentences.append(f"Each figure {why_unsure(report)}.")
    for roofline in _found(report):
        peak, fastest, slowest = roofline.peaks[0], roofline.bandwidths[0], roofline.bandwidths[-1]
        sentences.append(
            f"In {roofline.dtype} the roof is {units.figure(peak.rate)} GFLOP/s of arithmetic, and from "
            f"{units.figure(slowest.rate)} to {units.figure(fastest.rate)} GB/s of memory and caches."
        )
        found = shares(roofline, report.machine)
        for at, kernel in enumerate(found.kernels):
            reached = [(line[at], name) for name, line in found.models.items()]
            best_first = sorted(((point, name) for point, name in reached if point), key=lambda each: -each[0].percent)
            said = "; ".join(f"{name} reaches {of_ceiling(point)}" for point, name in best_first)
            intensity = kernel.typical.intensity
            place = f"at {units.figure(intensity)} FLOP/byte" if intensity else "which only moves"
            sentences.append(f"{kernel.title}, {place}, is bound by {found.bounds[at]}: {said}.")
    return " ".join(sentences)


def _found(report: Report) -> list[Roofline]:
    found = rooflines(report)
    if not found:
        why = report.without_ceilings or "no row was timed on a device whose ceilings were measured"
        raise style.NothingToDraw(f"there is no roofline: {why}")
    return found


def _draw(part: SubFigure, found: Shares, roofline: Roofline, report: Report) -> None:
    """The panel and the heat map, whose rows name the marks of both."""
    width, height = _size_of_map(found)
    if found.many:
        panel, below = part.subplots(2, 1, height_ratios=[_HEIGHT - _HEIGHT_OF_A_FRAME, height - _HEIGHT_OF_HEADS])
        in_points = 72 * max(_LEAST_WIDTH - _WIDTH_OF_A_NAME, width), 72 * (_HEIGHT - _HEIGHT_OF_A_FRAME)
    else:
        panel, below = part.subplots(1, 2, width_ratios=[_WIDTH - width - _WIDTH_OF_A_SOURCE - 1, width])
        in_points = 72 * (_WIDTH - width - _WIDTH_OF_A_SOURCE - 1), 72 * (max(_HEIGHT, height) - _HEIGHT_OF_A_FRAME)
    marks = style.marks(sorted(found.models))  # alike in pictures of the same models, whichever is fastest
    _draw_panel(panel, found, roofline, report, in_points)
    _draw_marks(panel, found, marks)
    _draw_map(part, below, found, marks, report)


def _size_of_map(found: Shares) -> tuple[float, float]:
    """The inches that the cells of the heat map take, the height with the heads of its columns."""
    rows = min(len(found.models), _MOST_NAMED)
    return _WIDTH_OF_A_CELL * len(found.kernels), _HEIGHT_OF_A_FRAME + _HEIGHT_OF_A_CELL * rows


def _draw_panel(axes: Axes, found: Shares, roofline: Roofline, report: Report, size: tuple[float, float]) -> None:
    """The lines of the roofs, and each kernel's own, with their names. `size` is that of the panel, in points."""
    kernels = [kernel for kernel in found.kernels if kernel.typical.intensity]
    points = [point for point in found.points if point.intensity]
    lines, peak = _alike(levels(roofline, report.machine)), roofline.peaks[0].rate
    intensities = [point.intensity for point in points] + [roofline.ridge(line[0].ceiling) for line in lines]
    names = [len(kernel.name) for kernel in kernels]
    left, right, across = _ends(
        intensities, size[0], _SLANTED * max(len(_name_of(line)) for line in lines) + max(names) / 2,
        max(len(_name_of_peak(each)) for each in roofline.peaks) + max(names) / 2,
    )  # fmt: skip
    rates = [peak, *(point.rate for point in points), left * lines[-1][0].ceiling.rate]
    bottom, top, upwards = _ends(rates, size[1], 3, 8 if found.many else 4)
    axes.set(xscale="log", yscale="log", xlim=(left, right), ylim=(bottom, top))
    axes.set_xlabel("arithmetic intensity in FLOP/byte")
    axes.set_ylabel("GFLOP/s")
    title = f"roofline, {roofline.dtype}; caches by reported size; a line is the highest rate measured there"
    title = f"{title}\na dash is the roof of the kernel named there, by how it uses memory"
    if only_moving := [kernel.name for kernel in found.kernels if not kernel.typical.intensity]:
        title = f"{title}\nin the table alone, since they compute nothing: {', '.join(only_moving)}"
    if report.mostly_disturbed:
        title = f"{title}\nDisturbed run, every figure {why_unsure(report)}"
    elif any(point.unsure for point in points):
        title = f"{title}\n{UNSURE} and hollow {why_unsure(report)}"
    axes.set_title(title, loc="left", fontsize=9)
    _draw_peaks(axes, roofline, right)
    _draw_levels(axes, lines, peak, (left, across, upwards))
    _write_kernels(axes, kernels, across, upwards)


def _ends(values: Sequence[float], size: float, before: float, behind: float) -> tuple[float, float, float]:
    """The ends of a logarithmic axis of so many points, and its points for a factor of e.

    before, behind: the letters that need room outside the outermost values.
    """
    low, high, room = min(values), max(values), (before * _WIDTH_OF_A_LETTER, behind * _WIDTH_OF_A_LETTER)
    scale = max(size - sum(room), size / 3) / max(log(high / low), 1.0)
    return low / exp(room[0] / scale), high * exp(room[1] / scale), scale


def _draw_peaks(axes: Axes, roofline: Roofline, right: float) -> None:
    """The level lines of arithmetic, from where memory no longer binds to the right end, with their names there."""
    for peak in roofline.peaks:
        begin = peak.rate / roofline.bandwidths[0].rate
        axes.plot([begin, right], [peak.rate] * 2, color="black", linewidth=1.2)
        _write(axes, _name_of_peak(peak), (right, peak.rate), (-2, 2), ha="right", va="bottom")


def _name_of_peak(peak: Ceiling) -> str:
    return f"{peak.instruction_set or 'peak'} {units.figure(peak.rate)} GFLOP/s"


def _draw_levels(axes: Axes, lines: Sequence[_Line], peak: float, scale: tuple[float, float, float]) -> None:
    """The rising lines of memory, the highest first, up to the peak. A name stands above its line, or below the lowest.

    scale: the left end, and the points for a factor of e on either axis. By it, a name that has no room moves to the
        right of the one before.
    """
    left, across, upwards = scale
    cosine, end, above = across / (across**2 + upwards**2) ** 0.5, 0.0, 0.0
    for at, line in enumerate(lines):
        rate, name = line[0].ceiling.rate, _name_of(line)
        axes.plot([left, peak / rate], [left * rate, peak], color=_GREY, linewidth=1.2)
        near = above > 0 and upwards * log(above / rate) * cosine < _HEIGHT_OF_LETTERS
        below = near and at == len(lines) - 1
        begin = end if near and not below else 4.0
        end = begin + (len(name) + 1) * _WIDTH_OF_A_LETTER * cosine
        x = left * exp(begin / across)
        axes.text(
            x, x * rate, name, fontsize=8, va="top" if below else "bottom",
            rotation=degrees(atan(rate)), rotation_mode="anchor", transform_rotates_text=True,
        )  # fmt: skip
        above = rate


_Line = Sequence[Level]
"""The levels that one line stands for, the highest first."""


def _alike(all_levels: Sequence[Level]) -> list[list[Level]]:
    """Groups of levels that are so close that one line stands for each group, the highest first."""
    alike: list[list[Level]] = []
    for each in all_levels:
        if alike and each.ceiling.rate * _ONE_LINE > alike[-1][0].ceiling.rate:
            alike[-1].append(each)
        else:
            alike.append([each])
    return alike


def _name_of(alike: Sequence[Level]) -> str:
    """The levels that one line stands for, and their rates."""
    rates = dict.fromkeys(units.figure(each.ceiling.rate) for each in (alike[-1], alike[0]))
    return f"{', '.join(each.name for each in alike)} {' to '.join(rates)} GB/s"


def _write_kernels(axes: Axes, kernels: Sequence[Kernel], across: float, upwards: float) -> None:
    """A dash for each kernel's own roof, and its name above it, and above dashes and names that are in its way."""
    half = across * log(_DASH)
    roofs = {kernel.title: max(kernel.typical.roof, kernel.typical.attainable) for kernel in kernels}
    taken = [(across * log(each.typical.intensity), upwards * log(roofs[each.title]), half, 4.0) for each in kernels]
    for kernel in sorted(kernels, key=lambda kernel: roofs[kernel.title]):
        at, roof = kernel.typical.intensity, roofs[kernel.title]
        axes.plot([at / _DASH, at * _DASH], [roof] * 2, color="black", linewidth=2.5, solid_capstyle="butt")
        height = max(roof, *(point.rate for point in kernel.points))
        x, y = across * log(at), upwards * log(height) + 4
        begin, half = y, len(kernel.name) * _WIDTH_OF_A_LETTER / 2
        for other, its, reach, tall in sorted(taken, key=lambda each: each[1]):
            if abs(other - x) < half + reach and its - _HEIGHT_OF_A_NAME < y < its + tall:
                y = its + tall
        taken.append((x, y, half, _HEIGHT_OF_A_NAME))
        _write(
            axes, kernel.name, (at, height), (0, 4 + y - begin), ha="center", va="bottom", weight="bold", bbox=_ON_PAGE
        )


def _write(axes: Axes, words: str, place: tuple[float, float], off: tuple[float, float], **how: Any) -> None:
    axes.annotate(words, place, off, textcoords="offset points", fontsize=8, zorder=2.5, **how)


def _draw_marks(axes: Axes, found: Shares, marks: dict[str, style.Mark]) -> None:
    """A mark that stands beside its kernel's dash is pale: at a smaller shape, the intensity is another one."""
    for name, line in found.models.items():
        for kernel, point in zip(found.kernels, line, strict=True):
            if point and point.intensity:
                beside = not 1 / _DASH < point.intensity / kernel.typical.intensity < _DASH
                looks: Any = {"alpha": 0.4} if beside else {}
                axes.add_line(_mark(marks[name], point.unsure, ([point.intensity], [point.rate]), **looks))


def _mark(mark: style.Mark, unsure: bool, place: tuple[list[float], list[float]], **how: Any) -> Line2D:
    """A mark at a place. It is hollow if the point is unreliable."""
    from matplotlib.lines import Line2D

    looks: Any = {"fillstyle": "none"} if unsure else {"markeredgecolor": "white", "markeredgewidth": 0.5}
    return Line2D(place[0], place[1], linestyle="", color=mark.colour, marker=mark.marker, **_MARKS, **looks, **how)


def _draw_map(part: SubFigure, axes: Axes, found: Shares, marks: dict[str, style.Mark], report: Report) -> None:
    """The share of the roof in each cell, in figures and as a colour.

    The nearest of each kernel is framed, but in a disturbed run: there the order of models says nothing.
    """
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle
    from matplotlib.transforms import ScaledTranslation

    named = list(found.models.items())[:_MOST_NAMED]
    nearest = [[] if report.mostly_disturbed else found.nearest(at) for at in range(len(found.kernels))]
    beside = axes.transData + ScaledTranslation(-10 / 72, 0, part.dpi_scale_trans)
    for down, (name, line) in enumerate(named):
        axes.add_line(_mark(marks[name], report.mostly_disturbed, ([-0.5], [down]), transform=beside, clip_on=False))
        for right, point in enumerate(line):
            of_roof = 0.0 if point is None else min(100.0, point.percent)
            ink = "black" if point is None else _ON_LIGHT if of_roof >= _LIGHT_FROM else _ON_DARK
            if point is not None:
                colour = colormaps[_COLOURS](of_roof / 100)
                axes.add_patch(
                    Rectangle((right - 0.5, down - 0.5), 1, 1, facecolor=colour, edgecolor="white", linewidth=1)
                )
            if name in nearest[right]:
                frame: Any = {"fill": False, "edgecolor": "black", "linewidth": 1.8, "zorder": 3}
                axes.add_patch(Rectangle((right - 0.5, down - 0.5), 1, 1, clip_on=False, **frame))
            weight = "bold" if name in nearest[right] else "normal"
            axes.text(
                right, down, marked(point, report), ha="center", va="center", fontsize=8, color=ink, weight=weight
            )
    # Beside a panel, few rows are no higher than many.
    rows = len(named) if found.many else max(len(named), (_HEIGHT - _HEIGHT_OF_A_FRAME) / _HEIGHT_OF_A_CELL)
    axes.set(xlim=(-0.5, len(found.kernels) - 0.5), ylim=(rows - 0.5, -0.5))
    heads = [f"{each.name}\n{bound}\n{each.sizes}" for each, bound in zip(found.kernels, found.bounds, strict=True)]
    axes.set_xticks(range(len(heads)), heads, fontsize=7.5)
    axes.set_yticks(range(len(named)), [name for name, _ in named], fontsize=8)
    axes.xaxis.tick_top()
    axes.tick_params(length=0, pad=3)
    axes.tick_params(axis="y", pad=18)
    place: Any = {"xycoords": "axes fraction", "textcoords": "offset points", "ha": "right", "va": "bottom"}
    axes.annotate("kernel\nbound by\nat sizes", (0, 1), (-18, 3), fontsize=7.5, **place)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_title(_title_of_map(found, report), loc="left" if found.many else "right", fontsize=9)


def _title_of_map(found: Shares, report: Report) -> str:
    title = "per cent of the roof; framed: the nearest"
    if report.mostly_disturbed:
        title = "per cent of the roof; the order says nothing: several threads suffer most"
    smaller = any(point.row.requested for point in found.points)
    return f"{title}\n* and pale: smaller than requested" if smaller else title


def _draw_bars(axes: Axes, kernels: Sequence[Kernel], dtype: str, report: Report) -> None:
    """A bar for each row, as long as its part of what its bandwidth's ceiling allows."""
    points = [point for kernel in kernels for point in kernel.points]
    title = f"what only moves, {dtype}"
    if any(point.unsure for point in points):
        title = f"{title} ({UNSURE} and hollow {why_unsure(report)})"
    axes.set(xlim=(0, max(100.0, *(point.percent for point in points))), xlabel="per cent of the bandwidth of a copy")
    axes.set_title(title, loc="left", fontsize=10)
    marks, names = style.marks(map(source, points)), []
    for kernel in kernels:
        names.append(kernel.title)
        for point in kernel.points:
            looks: Any = {"fill": False} if point.unsure else {}
            axes.barh(len(names), point.percent, color=marks[source(point)].colour, height=0.7, **looks)
            axes.annotate(
                f" {of_ceiling(point)}, {units.figure(point.rate)} GB/s",
                (point.percent, len(names)),
                va="center",
                fontsize=8,
                annotation_clip=False,
            )
            names.append(source(point))
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.invert_yaxis()
