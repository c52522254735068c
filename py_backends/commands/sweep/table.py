"""Prints times over sizes, and where backends begin to beat the baseline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rich.console import Console

from py_backends.commands.sweep.analysis import Crossover, Line, Point, Sweep, sweeps
from py_backends.commands.sweep.search import KERNEL, MEASURES, WHOLE
from py_backends.display import console, layout, remarks, units
from py_backends.display.layout import Column, Remark, Section
from py_backends.harness.sizing import LONGER_BUDGET
from py_backends.harness.summary import FEW_ROUNDS
from py_backends.results.grouping import grouped
from py_backends.results.report import Report, Row

RATE, TIME = "rate", "time"
WORDS = {KERNEL: "kernel alone", WHOLE: "whole calls, upload and download counted"}
_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_PLAIN_UP_TO = 9999


def print_report(report: Report, out: Console, figure: str = RATE) -> None:
    """For each kernel and dtype a table of the kernel alone, one of whole calls, and one of crossovers."""
    rows = [row for row in report.rows if not (row.status == "skipped" and row.fix == LONGER_BUDGET)]
    quiet = [replace(row, note=_without_few_rounds(row.note), communication=None) for row in rows]
    said = {
        "Not run": remarks.not_run(replace(report, rows=rows)),
        "Too long for the budget: give a longer --budget": _too_long(report),
        "Notes": remarks.notes(replace(report, rows=quiet)),
    }
    console.print_view(report, _sections(report, figure), said, out)


def _sections(report: Report, figure: str) -> Iterator[Section]:
    for sweep in sweeps(report):
        yield from (_of_measure(sweep, measure, figure) for measure in MEASURES)
        if sweep.baseline:
            yield _of_crossovers(sweep)


def size(number: int) -> str:
    """A size as people write it: 64, 1000, and large powers of two as 2²⁰."""
    power = number.bit_length() - 1
    return f"2{str(power).translate(_SUPERSCRIPT)}" if number > _PLAIN_UP_TO and number == 2**power else str(number)


def crossover(found: Crossover | None) -> str:
    """From which size on: "from n = 256 on, not at 128", "from the smallest on, n = 64", "never up to n = 64".

    Where this run cannot tell: "from n = 512 on, perhaps from 128", "unclear from n = 256 on".
    """
    if found is None:
        return "not compared"
    if found.unclear is not None:
        if found.size is None:
            return f"unclear from n = {size(found.unclear)} on"
        return f"from n = {size(found.size)} on, perhaps from {size(found.unclear)}"
    if found.size is None:
        return f"never up to n = {size(found.last)}"
    if found.before is None:
        return f"from the smallest on, n = {size(found.size)}"
    return f"from n = {size(found.size)} on, not at {size(found.before)}"


def name(line: Line) -> str:
    """Its name, in a few words."""
    return f"{line.backend} {line.target}"


def _without_few_rounds(note: str | None) -> str | None:
    """The notes of a row, without the one on few rounds, which holds for most sizes here."""
    kept = [each for each in (note or "").split("; ") if not each.endswith(FEW_ROUNDS)]
    return "; ".join(kept) or None


def _of_measure(sweep: Sweep, measure: str, figure: str) -> Section:
    unit = units.RATES[sweep.unit] if figure == RATE else "time"
    lines = sorted(sweep.lines, key=lambda line: -max(point.rate(measure) or 0.0 for point in line.points))
    values = [{point.size: value(point, measure, figure) for point in line.points} for line in lines]
    write, sizes = units.figure if figure == RATE else units.duration, sweep.sizes
    # A narrow terminal drops every other size before it drops more. The first and the last size stay.
    between = [*sizes[1:-1:2], *sizes[2:-1:2]]
    order = {at: number for number, at in enumerate(between, start=1)}
    figures = {at: ["" if (known := of.get(at)) is None else write(known) for of in values] for at in sizes}
    return Section(
        f"{sweep.asked.title}  {WORDS[measure]}",
        f"{unit} by size",
        [
            *layout.names(lines, variant=0, target=len(sizes)),
            *(Column(size(at), cells, order.get(at)) for at, cells in figures.items()),
        ],
    )


def value(point: Point, measure: str, figure: str) -> float | None:
    """The rate or the time of a point; None if it was not measured."""
    if figure == RATE:
        return point.rate(measure)
    seconds = point.duration(measure)
    return seconds.median if seconds else None


def _too_long(report: Report) -> Iterator[Remark]:
    """Who takes too long for which sizes, once for each kernel and dtype."""
    rows = [row for row in report.rows if row.status == "skipped" and row.fix == LONGER_BUDGET]
    sizes = grouped(((f"{row.kernel} {row.dtype}", f"{row.backend} {row.target}"), _at(row)) for row in rows)
    who = grouped(((what, ", ".join(dict.fromkeys(found))), name) for (what, name), found in sizes.items())
    for (what, at), names in who.items():
        yield Remark(what, f"{at}: {', '.join(names)}")


def _at(row: Row) -> str:
    """The size of a row; its shape if the dimensions differ."""
    sizes = list(row.shape.values())
    return size(int(sizes[0])) if len(set(sizes)) == 1 else units.shape(sizes)


def _of_crossovers(sweep: Sweep) -> Section:
    lines = [line for line in sweep.lines if not line.is_baseline]
    return Section(
        f"{sweep.asked.title}  faster than {sweep.baseline}, and at every larger size measured",
        "size from which on",
        [
            *layout.names(lines, variant=1, target=2),
            *(
                Column(WORDS[measure], [crossover(line.crossover(measure)) for line in lines], right=False)
                for measure in MEASURES
            ),
        ],
    )
