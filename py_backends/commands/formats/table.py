"""Prints the speed and the error of each backend in each number format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console

from py_backends.commands.formats.analysis import BASIS, Choice, choices
from py_backends.display import console, layout, remarks, units
from py_backends.display.layout import Column, Section
from py_backends.results.ratios import rate
from py_backends.results.report import Report


def print_report(report: Report, out: Console) -> None:
    """A table for each kernel and shape. Below them, what has no place there."""
    said = {"Checked only, or wrong": remarks.without_roof(report), "Not run": remarks.not_run(report)}
    console.print_view(report, _sections(report), said, out)


def _sections(report: Report) -> Iterator[Section]:
    for title, found in choices(report).items():
        subtitle = "every row within the error bound of its own format"
        yield Section(title, subtitle, columns(found), footnotes=list(footnotes(found)))


def columns(found: Sequence[Choice]) -> list[Column]:
    """The rate has the usual unit of the kernel."""
    rows = [choice.row for choice in found]
    percents = [choice.percent_of_peak for choice in found]
    return [
        *layout.names(rows, variant=2, target=4),
        Column("format", [f"{'*' if row.requested else ''}{row.dtype}" for row in rows], right=False),
        Column("moved", [units.size(choice.bytes) for choice in found], 1),
        Column(layout.unit(*rows), [units.figure(rate(row)) for row in rows]),
        Column("over float32", [over_float32(choice) for choice in found]),
        Column("of peak", ["" if percent is None else units.percent(percent) for percent in percents], 3),
        Column("error", [error(choice) for choice in found]),
    ]


def over_float32(choice: Choice) -> str:
    """How many times as fast as in float32, with half the width of its interval in per cent."""
    over = choice.over_float32
    if over is None:
        return "1" if choice.row.dtype == BASIS else ""
    return units.with_spread(f"{units.figure(over.speedup)}x", over.speedup, over.low, over.high)


def error(choice: Choice) -> str:
    """The relative error, against float64 of unrounded inputs."""
    return "" if choice.relative_error is None else f"{choice.relative_error:.1e}"


def footnotes(found: Sequence[Choice]) -> Iterator[str]:
    """What the columns mean, and which rows ran at a smaller shape."""
    yield "over float32: of the same backend, round by round"
    yield "of peak: of the most multiply-adds that this machine does in that format"
    yield "error: of the result against float64, of inputs as they were before they were rounded to their format"
    rows = [choice.row for choice in found]
    named = ((row, f"{row.backend} {row.target} {row.dtype}") for row in rows)
    yield from remarks.at_smaller_shapes(named, ", compared by rate")
