"""Prints a report on a terminal, or as plain text into a pipe."""

from __future__ import annotations

import io
import sys
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from py_backends.harness import streams
from py_backends.harness.results import Report
from py_backends.report import layout
from py_backends.report.layout import Remark, Section

_PIPE_WIDTH = 120
_NAMES = 3
"""The columns that name a row: backend, target, variant."""
_RIGHT = frozenset({3, 4, 5, 6, 7, 8, 9})
_DROPPED = (9, 8, 6, 5, 4, 2, 1)
"""The columns that a narrow terminal loses, in this order: all but the backend, the time and how it compares."""
_INDENT, _GAP = 2, 2


@contextmanager
def output() -> Iterator[Console]:
    """Standard output: a terminal as it is; into a pipe plain text of a fixed width, without trailing blanks.

    OutputFailed where it cannot be written.
    """
    with streams.writing():
        if sys.stdout.isatty():
            yield Console(highlight=False)
            return
        text = io.StringIO()
        try:
            yield Console(file=text, width=_PIPE_WIDTH, no_color=True, highlight=False)
        finally:
            sys.stdout.writelines(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())


def print_report(report: Report, out: Console) -> None:
    """A table a kernel, dtype and shape; below them what was not run, notes and the verdict."""
    print_parts([Text(part, style="bold") for part in layout.heading(report)], out)
    for section in layout.sections(report):
        out.print()
        print_section(section, out)
    print_remarks("Not run", layout.not_run(report), out)
    print_remarks("Notes", layout.notes(report), out)
    print_end(report, out)


def print_end(report: Report, out: Console) -> None:
    """What disturbed the run, and one sentence on the whole."""
    text, bad = layout.verdict(report)
    out.print()
    if disturbed := layout.disturbance(report):
        out.print(Text(disturbed, style="yellow"))
    out.print(Text(text, style="bold red" if bad else "bold green"))


def print_section(section: Section, out: Console) -> None:
    """The title, the rows with their times, then those without."""
    print_parts([Text(section.title, style="bold"), Text(section.rule, style="dim")], out)
    cells = [section.header, *section.timed] if section.timed else []
    names = [(line.backend, line.target, line.variant) for line in section.lines]
    kept = _columns_that_fit(cells, names, out.width)
    widths = [max(cell_len(row[column]) for row in [*cells, *names]) for column in range(_NAMES)]
    if section.timed:
        out.print(Padding(_timed(section, kept, widths), (0, 0, 0, _INDENT)))
    if section.lines:
        out.print(Padding(_lines(section, kept, widths), (0, 0, 0, _INDENT)))
    for footnote in section.footnotes:
        out.print(Padding(Text(footnote, style="dim"), (0, 0, 0, _INDENT)))


def print_parts(parts: Sequence[Text], out: Console) -> None:
    """Parts of a heading, each on the line of the one before where it fits there."""
    line = Text()
    for part in parts:
        if line and line.cell_len + 4 + part.cell_len > out.width:
            out.print(line)
            line = Text()
        line = Text("    ").join([line, part]) if line else part.copy()
    out.print(line)


def print_remarks(title: str, remarks: Sequence[Remark], out: Console) -> None:
    """Who, what is said of it, and the fix: beside it where there is room, else below."""
    if not remarks:
        return
    out.print()
    out.print(Text(title, style="bold"))
    widest = [
        max(map(cell_len, cells)) for cells in zip(*((r.subject, r.text, r.fix or "") for r in remarks), strict=True)
    ]
    beside = _INDENT + sum(widest) + 2 * _GAP <= out.width
    table = _plain_table()
    table.add_column(min_width=min(widest[0], out.width // 3))
    table.add_column(overflow="fold", ratio=None if beside else 1)
    if beside:
        table.add_column(no_wrap=True)
    for remark in remarks:
        fix = Text(remark.fix or "", style="cyan")
        text = Text(remark.text)
        if beside:
            table.add_row(remark.subject, text, fix)
        else:
            table.add_row(remark.subject, Text("\n").join([text, fix]) if remark.fix else text)
    out.print(Padding(table, (0, 0, 0, _INDENT)))


def fitted(
    header: Sequence[str], rows: Sequence[Sequence[str]], dropped: Sequence[int], right: Container[int], width: int
) -> Table:
    """A table without those of the `dropped` columns, in their order, that have no room; `right` ones end in line."""
    kept = list(range(len(header)))
    widths = [max(map(cell_len, column)) for column in zip(header, *rows, strict=True)]
    for column in dropped:
        if sum(widths[c] + _GAP for c in kept) - _GAP <= width:
            break
        kept.remove(column)
    table = _plain_table(show_header=True)
    for column in kept:
        table.add_column(header[column], justify="right" if column in right else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(row[column] for column in kept))
    return table


def _columns_that_fit(cells: Sequence[Sequence[str]], names: Sequence[Sequence[str]], width: int) -> list[int]:
    """The columns that a terminal of this width has room for."""
    if not cells:
        return list(range(_NAMES))
    kept = list(range(len(cells[0])))
    widths = [max(cell_len(row[column]) for row in [*cells, *names] if column < len(row)) for column in kept]
    for column in _DROPPED:
        if _INDENT + sum(widths[c] + _GAP for c in kept) - _GAP <= width:
            break
        kept.remove(column)
    return kept


def _timed(section: Section, kept: Sequence[int], widths: Sequence[int]) -> Table:
    table = _plain_table(show_header=True)
    for column in kept:
        table.add_column(
            section.header[column],
            justify="right" if column in _RIGHT else "left",
            min_width=widths[column] if column < _NAMES else None,
            no_wrap=True,
        )
    for row in section.timed:
        table.add_row(*(row[column] for column in kept))
    return table


def _lines(section: Section, kept: Sequence[int], widths: Sequence[int]) -> Table:
    table = _plain_table()
    names = [column for column in kept if column < _NAMES]
    for column in names:
        table.add_column(min_width=widths[column], no_wrap=True)
    table.add_column(overflow="fold")
    for line in section.lines:
        cells = (line.backend, line.target, line.variant)
        table.add_row(*(cells[column] for column in names), line.text, style="red" if line.wrong else None)
    return table


def _plain_table(*, show_header: bool = False) -> Table:
    return Table(box=None, show_header=show_header, header_style="dim", padding=(0, _GAP, 0, 0), pad_edge=False)
