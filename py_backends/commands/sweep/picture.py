"""Rates or times over sizes, of kernels alone and of whole calls, with caches and crossovers marked.

A crossover is the smallest size from which on a line is certain to be faster than the baseline. It may also be faster
at smaller sizes, but this run cannot tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from py_backends.commands.sweep.analysis import Line, Sweep, sweeps
from py_backends.commands.sweep.search import KERNEL, MEASURES
from py_backends.commands.sweep.table import RATE, WORDS, crossover, name, size, value
from py_backends.display import style, units
from py_backends.results.report import Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Sizes"
_MOST = 4
"""The most kernels and dtypes in one picture."""
_WIDTH, _HEIGHT, _HEIGHT_OF_A_LINE = 11.0, 4.6, 0.11
_MOST_TICKS = 12
_ROOM_ABOVE = 0.1
"""The part of the height above the lines that stays free for the names of the caches."""
_CACHES = "all arrays fill this cache, by its reported size"
_FAR_BELOW = 1000
"""A line whose best rate is so many times below the best of all would leave the others too little height. The legend
has its rate instead."""


@style.settings()
def draw(report: Report, figure: str = RATE) -> Figure:
    """Two panels for each kernel and dtype: the kernel alone, and whole calls.

    Raises NothingToDraw if no row was timed at three sizes.
    """
    found = _chosen(report)
    names = [name(line) for sweep in found for line in sweep.lines]
    marks = style.marks(names)
    height = _HEIGHT * len(found) + _HEIGHT_OF_A_LINE * len(marks)
    drawn, panels = style.grid(_WIDTH, height, len(found), 2, sharey="row")
    for sweep, row in zip(found, panels, strict=True):
        for axes, measure in zip(row, MEASURES, strict=True):
            _draw(axes, sweep, measure, figure, marks)
        row[0].set_ylabel(units.RATES[sweep.unit] if figure == RATE else "time of one run")
    shown = {
        label: mark
        for row in panels
        for axes in row
        for mark, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    drawn.legend(list(shown.values()), list(shown), loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return drawn


def describe(report: Report) -> str:
    """What the picture shows, in words. Raises NothingToDraw as `draw` does."""
    sentences = ["Rates over sizes, of the kernel alone and of whole calls."]
    for sweep in _chosen(report):
        said = [
            f"{name(line)}: kernel {crossover(line.crossover(KERNEL))}; whole {crossover(line.crossover(MEASURES[1]))}"
            for line in sweep.lines
            if not line.is_baseline
        ]
        sentences.append(f"{sweep.asked.title}, certainly faster than {sweep.baseline}: {'. '.join(said)}.")
    return " ".join(sentences)


def _chosen(report: Report) -> list[Sweep]:
    found = sweeps(report)
    if not found:
        raise style.NothingToDraw(
            "no row was timed at three sizes or more: run py-backends sweep with a longer --budget"
        )
    return found[:_MOST]


def _draw(axes: Axes, sweep: Sweep, measure: str, figure: str, marks: dict[str, style.Mark]) -> None:
    from matplotlib.ticker import EngFormatter

    below = _far_below(sweep) if figure == RATE else {}
    for line in sweep.lines:
        if line in below:
            axes.plot([], color=marks[name(line)].colour, marker=marks[name(line)].marker, label=below[line])
        else:
            _draw_line(axes, line, measure, figure, marks)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_ymargin(_ROOM_ABOVE)
    axes.yaxis.set_major_formatter("{x:g}" if figure == RATE else EngFormatter(unit="s"))
    sizes = sweep.sizes
    shown = sizes[:: -(-len(sizes) // _MOST_TICKS)]
    axes.set_xticks(shown, [size(each) for each in shown], fontsize=9)
    axes.minorticks_off()
    dimensions = len(sweep.lines[0].points[0].row.shape)
    axes.set_xlabel("size: elements of a vector" if dimensions == 1 else f"size: each of the {dimensions} dimensions")
    axes.set_title(f"{sweep.asked.title}\n{WORDS[measure]}", loc="left", fontsize=10)
    axes.tick_params(labelleft=True)
    _draw_caches(axes, sweep)
    _draw_crossovers(axes, [line for line in sweep.lines if line not in below], measure, figure, sweep.baseline)


def _far_below(sweep: Sweep) -> dict[Line, str]:
    """What the legend says about lines that are left out of a picture of rates."""
    best = {line: max(point.rate(KERNEL) or 0.0 for point in line.points) for line in sweep.lines}
    unit = units.RATES[sweep.unit]
    return {
        line: f"{name(line)}: below, {units.figure(rate)} {unit}"
        for line, rate in best.items()
        if rate * _FAR_BELOW < max(best.values()) and not line.is_baseline
    }


def _draw_line(axes: Axes, line: Line, measure: str, figure: str, marks: Mapping[str, style.Mark]) -> None:
    mark = marks[name(line)]
    first = next(each for each, other in marks.items() if other.colour == mark.colour)
    known = [(point.size, found) for point in line.points if (found := value(point, measure, figure))]
    if known:
        axes.plot(
            *zip(*known, strict=True),
            color=mark.colour,
            marker=mark.marker,
            markersize=4,
            linestyle="-" if first == name(line) else "--",
            linewidth=2.2 if line.is_baseline else 1.2,
            label=name(line),
        )


def _draw_caches(axes: Axes, sweep: Sweep) -> None:
    """A line where all arrays together fill a cache, if that is among the sizes."""
    sizes = sweep.sizes
    for cache, at in sweep.caches.items():
        if sizes[0] < at < sizes[-1]:
            axes.axvline(at, color="black", linewidth=0.8, linestyle=":", label=_CACHES)
            axes.annotate(
                cache,
                (at, 1),
                (2, -2),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                va="top",
                fontsize=8,
            )


def _draw_crossovers(axes: Axes, lines: Sequence[Line], measure: str, figure: str, baseline: str | None) -> None:
    """A ring around the point from which on a line is certainly faster than the baseline."""
    places = []
    for line in lines:
        found = line.crossover(measure)
        first = [point for point in line.points if found and point.size == found.size]
        places += [(point.size, height) for point in first if (height := value(point, measure, figure))]
    if places:
        axes.plot(
            *zip(*places, strict=True),
            color="black",
            marker="o",
            markersize=11,
            fillstyle="none",
            linestyle="",
            label=f"from here on certainly faster than {baseline}",
        )
