"""Prints times over sizes, and where backends begin to beat the baseline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from py_backends.harness.results import Report
from py_backends.harness.sizing import LONGER_BUDGET
from py_backends.harness.sweep import KERNEL, MEASURES, WHOLE, Crossover, Line, Point, Sweep, sweeps
from py_backends.report import layout, table, units
from py_backends.report.layout import Remark

RATE, TIME = FIGURES = ("rate", "time")
WORDS = {KERNEL: "kernel alone", WHOLE: "whole calls, upload and download counted"}
_NAMES = ("backend", "target", "variant")
_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_PLAIN_UP_TO = 9999
_INDENT = 2


def print_sweeps(report: Report, out: Console, figure: str = RATE) -> None:
    """For each kernel and dtype a table of the kernel alone, one of whole calls, and one of crossovers."""
    table.print_parts([Text(part, style="bold") for part in layout.heading(report)], out)
    for sweep in sweeps(report):
        for measure in MEASURES:
            out.print()
            _print_table(sweep, measure, figure, out)
        if sweep.baseline:
            out.print()
            _print_crossovers(sweep, out)
    rows = [row for row in report.rows if not (row.status == "skipped" and row.fix == LONGER_BUDGET)]
    table.print_remarks("Not run", layout.not_run(replace(report, rows=rows)), out)
    table.print_remarks("Too long for the budget: give a longer --budget", list(_too_long(report)), out)
    table.print_remarks("Notes", layout.notes(report), out)
    table.print_end(report, out)


def size(number: int) -> str:
    """A size as people write it: 64, 1000, and large powers of two as 2²⁰."""
    power = number.bit_length() - 1
    return f"2{str(power).translate(_SUPERSCRIPT)}" if number > _PLAIN_UP_TO and number == 2**power else str(number)


def crossover(found: Crossover | None) -> str:
    """From which size on it is faster: "from 256, not at 128", "from 64, the smallest", "not up to 2048".

    Where this run cannot tell: "from 256, unclear at 128", "unclear at 2048".
    """
    if found is None:
        return "not compared"
    if found.size is None:
        return f"unclear at {size(found.last)}" if found.unclear else f"not up to {size(found.last)}"
    if found.before is None:
        return f"from {size(found.size)}, the smallest"
    return f"from {size(found.size)}, {'unclear' if found.unclear else 'not'} at {size(found.before)}"


def name(line: Line) -> str:
    """Who it is, in a few words."""
    return f"{line.backend} {line.target}"


def _print_table(sweep: Sweep, measure: str, figure: str, out: Console) -> None:
    unit = units.RATES[sweep.unit] if figure == RATE else "time"
    table.print_parts(
        [Text(f"{sweep.asked.title}  {WORDS[measure]}", style="bold"), Text(f"{unit} by size", "dim")], out
    )
    header = (*_NAMES, *map(size, sweep.sizes))
    rows = [
        (line.backend, line.target, line.variant, *(_cell(line, at, measure, figure) for at in sweep.sizes))
        for line in _by_last(sweep, measure)
    ]
    first, last = len(_NAMES), len(header) - 1
    # A narrow terminal loses every other size before it loses more: the first and the last size stay.
    between = [*range(first + 1, last, 2), *range(first + 2, last, 2)]
    shown = table.fitted(header, rows, [2, *between, 1], range(first, last + 1), out.width - _INDENT)
    out.print(Padding(shown, (0, 0, 0, _INDENT)))


def _by_last(sweep: Sweep, measure: str) -> Sequence[Line]:
    """By the best rate that each reaches."""
    return sorted(sweep.lines, key=lambda line: -max(point.rate(measure) or 0.0 for point in line.points))


def _cell(line: Line, at: int, measure: str, figure: str) -> str:
    point = next((point for point in line.points if point.size == at), None)
    return "" if point is None else _figure(point, measure, figure)


def _figure(point: Point, measure: str, figure: str) -> str:
    if figure == TIME:
        seconds = point.duration(measure)
        return units.duration(seconds.median) if seconds else ""
    rate = point.rate(measure)
    return "" if rate is None else units.figure(rate)


def _too_long(report: Report) -> Iterator[Remark]:
    """Once for each kernel, dtype and sizes, who takes too long for them."""
    sizes: dict[tuple[str, ...], list[str]] = {}
    for row in report.rows:
        if row.status == "skipped" and row.fix == LONGER_BUDGET:
            at = (
                size(row.shape[min(row.shape)])
                if len(set(row.shape.values())) == 1
                else units.shape(row.shape.values())
            )
            sizes.setdefault((row.kernel, row.dtype, row.backend, row.target), []).append(at)
    who: dict[tuple[str, str], list[str]] = {}
    for (kernel, dtype, *names), found in sizes.items():
        who.setdefault((f"{kernel} {dtype}", ", ".join(dict.fromkeys(found))), []).append(" ".join(names))
    for (what, at), names in who.items():
        yield Remark(what, f"{at}: {', '.join(names)}")


def _print_crossovers(sweep: Sweep, out: Console) -> None:
    text = f"{sweep.asked.title}  faster than {sweep.baseline}, and at every larger size measured"
    table.print_parts([Text(text, style="bold"), Text("size from which on", style="dim")], out)
    rows = [
        (line.backend, line.target, line.variant, *(crossover(line.crossover(measure)) for measure in MEASURES))
        for line in sweep.lines
        if not line.is_baseline
    ]
    header = (*_NAMES, WORDS[KERNEL], WORDS[WHOLE])
    out.print(Padding(table.fitted(header, rows, [2, 1], (), out.width - _INDENT), (0, 0, 0, _INDENT)))
