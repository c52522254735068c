"""Prints what was measured: a line for each goal, and below them the rates at each size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from statistics import median

from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmarks.figures import Figure, ratios
from benchmarks.goals import Entry, Goal
from benchmarks.measure import Measurement, NotMeasured, Reason, rates
from py_backends.harness.results import Report
from py_backends.harness.statistics import Median
from py_backends.report import layout, units
from py_backends.report.layout import Remark
from py_backends.report.table import print_parts, print_remarks

_UNITS = {"matmul": "GFLOP/s", "vecadd": "GB/s"}
_LONGEST_REASON = 200
_GAP = 2
Cells = dict[int, str]
"""A column of a table, by size."""


def print_all(report: Report, figures: Sequence[Figure], measurement: Measurement, out: Console) -> None:
    """What was run on what; the goals; what is missing; the rates; and a verdict in one line."""
    print_parts([Text(part, style="bold") for part in layout.heading(report)], out)
    print_goals(figures, out)
    print_missing(figures, out)
    print_sizes(figures, measurement, out)
    out.print()
    if disturbed := layout.disturbance(report):
        out.print(Text(disturbed, style="yellow"))
    verdicts = [each.reached for each in figures if each.value is not None]
    absent = len(figures) - len(verdicts)
    out.print(f"{verdicts.count(True)} reached, {verdicts.count(False)} not reached, {absent} not measured.")


def print_goals(figures: Sequence[Figure], out: Console) -> None:
    """A line for each: what is asked, what was reached with its interval, and whether that is enough."""
    for kernel, dtype in dict.fromkeys((each.goal.kernel, each.goal.dtype) for each in figures):
        out.print()
        out.print(Text(f"{kernel} {dtype}", style="bold"))
        table = _table("who", "ratio", "where", ">asked", ">figure", ">95% interval", "")
        table.add_column(overflow="fold")
        for each in figures:
            if (each.goal.kernel, each.goal.dtype) == (kernel, dtype):
                table.add_row(*_line(each))
        out.print(table)


def print_missing(figures: Sequence[Figure], out: Console) -> None:
    """What was not measured, why, and what would change that: a line for each who and why."""
    lacking: dict[tuple[str, Reason], list[str]] = {}
    for each in figures:
        if each.reason:
            place = f"{each.goal.kernel} {each.goal.dtype}"
            lacking.setdefault((each.goal.subject, each.reason), []).append(place)
    remarks = [
        Remark(f"{subject} ({', '.join(dict.fromkeys(places))})", _shortened(reason.text), reason.fix)
        for (subject, reason), places in lacking.items()
    ]
    print_remarks("Not measured", remarks, out)


def _shortened(text: str) -> str:
    """JSON has the whole of it."""
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}..."


def print_sizes(figures: Sequence[Figure], measurement: Measurement, out: Console) -> None:
    """For each kernel and dtype the median rate of every contender at every size, and the ratios at each size."""
    for kernel, dtype in measurement.rounds:
        entries = [entry for entry in measurement.samples if (entry.kernel, entry.dtype) == (kernel, dtype)]
        rounds = f"medians of {measurement.rounds[kernel, dtype]} rounds"
        columns: dict[str, Cells] = {}
        for entry in sorted(entries, key=_libraries_first):
            columns.setdefault(entry.contender.label, {})[entry.size] = units.figure(rate(measurement, entry) or 0)
        _print_by_size(f"{kernel} {dtype}  {_UNITS[kernel]}, {rounds}", columns, out)
        several = [each.goal for each in figures if (each.goal.kernel, each.goal.dtype) == (kernel, dtype)]
        columns = {_ratio(goal): _ratios(goal, measurement) for goal in several if len(goal.comparisons) > 1}
        _print_by_size(f"{kernel} {dtype}  ratios of rates, {rounds}", columns, out)


def _print_by_size(title: str, columns: Mapping[str, Cells], out: Console) -> None:
    """A table of sizes by columns; several, below one another, where they do not fit beside."""
    sizes = sorted({size for cells in columns.values() for size in cells})
    left = {heading: cells for heading, cells in columns.items() if cells}
    if left:
        out.print()
        out.print(Text(title, style="bold"))
    while left:
        table = _table(">n")
        room = out.width - len(str(sizes[-1]))
        shown: dict[str, Cells] = {}
        for heading, cells in left.items():
            room -= _GAP + max(map(len, (heading, *cells.values())))
            if room < 0 and shown:
                break
            shown[heading] = cells
            table.add_column(heading, justify="right", no_wrap=True)
        for size in sizes:
            if any(size in cells for cells in shown.values()):
                table.add_row(str(size), *(cells.get(size, "") for cells in shown.values()))
        out.print(table)
        left = {heading: cells for heading, cells in left.items() if heading not in shown}


def _libraries_first(entry: Entry) -> bool:
    return entry.contender.backend not in {"numpy", "mkl", "cublas"}


def _ratio(goal: Goal) -> str:
    """What a column of ratios is called."""
    comparison = goal.comparisons[0]
    other = comparison.against[0].contender
    if other == comparison.subject.contender:
        return f"{other.label} / at n"
    return f"{goal.subject} / {'best' if len(comparison.against) > 1 else other.label}"


def _ratios(goal: Goal, measurement: Measurement) -> Cells:
    """The median ratio at each size at which both were measured."""
    cells: Cells = {}
    for comparison in goal.comparisons:
        with suppress(NotMeasured):
            cells[comparison.subject.size] = units.figure(median(ratios(comparison, measurement).values()))
    return cells


def rate(measurement: Measurement, entry: Entry) -> float | None:
    """The median rate, in 10^9 operations, or of vecadd bytes, a second; None where it was not measured."""
    found = rates(measurement, entry)
    if not found:
        return None
    return median(found.values()) * (3 * int(entry.dtype[-2:]) // 8 if entry.kernel == "vecadd" else 1) / 1e9


def _line(each: Figure) -> tuple[str | Text, ...]:
    goal = each.goal
    asked = "stated" if goal.asked is None else f"{'≤' if goal.at_most else '≥'} {goal.asked:.2f}"
    named = goal.subject, goal.what, goal.where, asked
    if each.value is None:
        return *named, "", "", "not measured", ""
    verdict = {True: Text("reached", "green"), False: Text("not reached", "yellow"), None: Text("")}[each.reached]
    return *named, f"{each.value.value:.3f}", _interval(each.value), verdict, each.note or ""


def _interval(value: Median) -> str:
    return "" if value.low is None or value.high is None else f"{value.low:.3f} to {value.high:.3f}"


def _table(*columns: str) -> Table:
    """Columns by their headings; a heading after `>` is of one that is aligned to the right."""
    table = Table(box=None, header_style="dim", padding=(0, _GAP, 0, 0), pad_edge=False)
    for column in columns:
        table.add_column(column.lstrip(">"), justify="right" if column.startswith(">") else "left", no_wrap=True)
    return table
