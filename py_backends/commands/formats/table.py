"""Prints the speed and the error of each backend in each number format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console

from py_backends.commands.formats.analysis import BASIS, Choice, choices
from py_backends.display import console, layout, remarks, units
from py_backends.display.layout import Section
from py_backends.results.ratios import rate
from py_backends.results.report import Report

_DROPPED_NAMES = ("moved", "variant", "of peak", "target")
"""The columns that a narrow terminal drops, in this order."""
_RIGHT = frozenset({4, 5, 6, 7, 8})


def print_report(report: Report, out: Console) -> None:
    """A table for each kernel and shape. Below them, what has no place there."""
    said = {"Checked only, or wrong": remarks.without_roof(report), "Not run": remarks.not_run(report)}
    console.print_view(report, _sections(report), said, out)


def _sections(report: Report) -> Iterator[Section]:
    for title, found in choices(report).items():
        names = header(found)
        yield Section(
            title,
            "every row within the error bound of its own format",
            names,
            [cells(choice) for choice in found],
            footnotes=list(footnotes(found)),
            right=_RIGHT,
            dropped=[names.index(name) for name in _DROPPED_NAMES],
        )


def header(found: Sequence[Choice]) -> tuple[str, ...]:
    """The names of the columns, with the usual unit of the kernel's rate."""
    return (
        "backend",
        "target",
        "variant",
        "format",
        "moved",
        layout.unit(found[0].row),
        "over float32",
        "of peak",
        "error",
    )


def cells(choice: Choice) -> tuple[str, ...]:
    """A line under `header`."""
    row = choice.row
    return (
        row.backend,
        row.target,
        row.variant,
        f"*{row.dtype}" if row.requested else row.dtype,
        units.size(choice.bytes),
        units.figure(rate(row)),
        over_float32(choice),
        "" if choice.percent_of_peak is None else units.percent(choice.percent_of_peak),
        error(choice),
    )


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
