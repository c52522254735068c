"""What fewer bits gain and cost: the rate over the error of each format, with a line for each backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from py_backends.commands.formats.analysis import Choice, choices
from py_backends.commands.formats.table import error, over_float32
from py_backends.display import layout, style
from py_backends.results.grouping import grouped
from py_backends.results.ratios import rate
from py_backends.results.report import Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Number formats"
_WIDTH, _HEIGHT = 9.0, 5.0
_MOST_BACKENDS = 6
"""The most lines that can be told apart. The fastest stay."""
_NO_ERROR = 1e-17
"""The place of a result without any error, since a logarithmic axis has no 0."""


@style.settings()
def draw(report: Report) -> Figure:
    """A panel for each kernel and shape. Raises NothingToDraw if no backend was timed in two formats."""
    found = _found(report)
    figure, panels = style.grid(_WIDTH, _HEIGHT * len(found), len(found), 1)
    for (title, lines), (axes,) in zip(found.items(), panels, strict=True):
        _draw(axes, title, lines)
    return figure


def describe(report: Report) -> str:
    """What the picture shows, in words. Raises NothingToDraw as `draw` does."""
    said = []
    for title, lines in _found(report).items():
        each = [f"{name}: {', '.join(map(_in_words, line))}" for name, line in lines.items()]
        said.append(f"Rates of {title} and errors against float64, by number format. {'; '.join(each)}.")
    return " ".join(said)


def _in_words(choice: Choice) -> str:
    """Its rate, the error, and how many times as fast as in float32."""
    said = f"{choice.row.dtype} {layout.speed(choice.row)}"
    over = f", {over_float32(choice)} of float32" if choice.over_float32 else ""
    return f"{said} (error {error(choice)}{over})"


Lines = dict[str, list[Choice]]


def _found(report: Report) -> dict[str, Lines]:
    """By title, the fastest backends, with the formats in which an error was measured."""
    panels: dict[str, Lines] = {}
    for title, found in choices(report).items():
        known = [choice for choice in found if choice.relative_error is not None]
        lines = grouped((f"{choice.row.backend} {choice.row.target}", choice) for choice in known)
        several = {name: line for name, line in lines.items() if len(line) > 1}
        if several:
            panels[title] = dict(list(several.items())[:_MOST_BACKENDS])
    if not panels:
        raise style.NothingToDraw("there is nothing to draw: some backend has to be timed in two formats")
    return panels


def _draw(axes: Axes, title: str, lines: Lines) -> None:
    for (name, line), mark in zip(lines.items(), style.marks(lines).values(), strict=True):
        ordered = sorted(line, key=lambda choice: choice.relative_error or 0.0)
        rates = [rate(choice.row) for choice in ordered]
        axes.plot(list(map(_place, ordered)), rates, color=mark.colour, marker=mark.marker, label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    longest = max(lines.values(), key=len)  # the error belongs to the format, and is about the same for all backends
    named = axes.secondary_xaxis("top")
    named.set_xticks([_place(choice) for choice in longest], [choice.row.dtype for choice in longest], rotation=40)
    named.set_xticks([], minor=True)
    axes.set_xlabel("error against float64, of inputs that were not yet rounded: further right is less exact")
    axes.set_ylabel(layout.unit(longest[0].row))
    axes.set_title(title, loc="left", fontsize=10)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def _place(choice: Choice) -> float:
    """The place of its error on the axis."""
    return max(_NO_ERROR, choice.relative_error or 0.0)
