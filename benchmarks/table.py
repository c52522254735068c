"""Prints what was measured: a line for each goal, and below them the rates at each size."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from statistics import median

from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmarks.figures import Figure
from benchmarks.goals import Entry
from benchmarks.measure import Measurement, rates
from py_backends.harness.statistics import Median
from py_backends.report import units

_UNITS = {"matmul": "GFLOP/s", "vecadd": "GB/s"}


def print_goals(figures: Sequence[Figure], out: Console) -> None:
    """A line for each: what is asked, what was reached with its interval, and whether that is enough."""
    for (kernel, dtype), group in groupby(figures, key=lambda each: (each.goal.kernel, each.goal.dtype)):
        out.print()
        out.print(Text(f"{kernel} {dtype}", style="bold"))
        table = _table("backend", "ratio", "where", ">asked", ">reached", ">95% interval", "", "")
        for each in group:
            table.add_row(*_line(each))
        out.print(table)


def print_rates(measurement: Measurement, out: Console) -> None:
    """A table for each kernel and dtype: the median rate of every contender at every size."""
    for key in measurement.rounds:
        entries = [entry for entry in measurement.samples if (entry.kernel, entry.dtype) == key]
        if not entries:
            continue
        out.print()
        kernel, dtype = key
        heading = f"{kernel} {dtype}  {_UNITS[kernel]}, medians of {measurement.rounds[key]} rounds"
        out.print(Text(heading, style="bold"))
        contenders = list(dict.fromkeys(entry.contender for entry in entries))
        table = _table(">n", *(f">{contender.label}" for contender in contenders))
        for size in sorted({entry.size for entry in entries}):
            cells = [_rate(measurement, Entry(contender, kernel, dtype, size)) for contender in contenders]
            table.add_row(str(size), *cells)
        out.print(table)


def rate(measurement: Measurement, entry: Entry) -> float | None:
    """The median rate, in 10^9 operations, or of vecadd bytes, a second; None where it was not measured."""
    found = rates(measurement, entry)
    if not found:
        return None
    return median(found.values()) * (3 * int(entry.dtype[-2:]) // 8 if entry.kernel == "vecadd" else 1) / 1e9


def _rate(measurement: Measurement, entry: Entry) -> str:
    found = rate(measurement, entry)
    return "" if found is None else units.figure(found)


def _line(each: Figure) -> tuple[str | Text, ...]:
    goal = each.goal
    asked = "stated" if goal.asked is None else f"{'≤' if goal.at_most else '≥'} {goal.asked:.2f}"
    named = goal.subject, goal.what, goal.where, asked
    if each.value is None:
        return *named, "", "", "not measured", each.reason or ""
    verdict = {True: Text("reached", "green"), False: Text("not reached", "yellow"), None: Text("")}[each.reached]
    return *named, f"{each.value.value:.3f}", _interval(each.value), verdict, each.note or ""


def _interval(value: Median) -> str:
    return "" if value.low is None or value.high is None else f"{value.low:.3f} to {value.high:.3f}"


def _table(*columns: str) -> Table:
    """Columns by their headings; a heading after `>` is of one that is aligned to the right."""
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0), pad_edge=False)
    for column in columns:
        table.add_column(column.lstrip(">"), justify="right" if column.startswith(">") else "left")
    return table
