"""Prints a report on a terminal, or as plain text into a pipe."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from py_backends.display import layout
from py_backends.display.layout import Column, Remark, Section
from py_backends.results.report import Report
from py_backends.system import streams

_PIPE_WIDTH = 120
_NAMES = 3
"""The columns that name a row: backend, target, variant."""
_INDENT, _GAP = 2, 2


@contextmanager
def output() -> Iterator[Console]:
    """Standard output: a terminal as it is, or a pipe with plain text of a fixed width, without trailing blanks.

    Raises OutputFailed if it cannot be written.
    """
    with streams.writing():
        if sys.stdout.isatty():
            yield console()
            return
        text = io.StringIO()
        try:
            yield console(file=text, width=_PIPE_WIDTH, no_color=True, force_terminal=False)  # for FORCE_COLOR
        finally:
            # By line feeds alone: a source that is shown may hold other ends of lines.
            sys.stdout.write("\n".join(line.rstrip(" ") for line in text.getvalue().split("\n")))


def console(**how: Any) -> Console:
    """A console for what others have written too: brackets, colons and figures mean nothing in it."""
    return Console(highlight=False, markup=False, emoji=False, **how)


def print_view(
    report: Report, sections: Iterable[Section], remarks: Mapping[str, Iterable[Remark]], out: Console
) -> None:
    """The heading, the tables, remarks by their titles, what disturbed the run, and the verdict."""
    print_parts([Text(part, style="bold") for part in layout.heading(report)], out)
    if warning := layout.warning(report):
        out.print(Text(warning, style="yellow"))
    for section in sections:
        out.print()
        print_section(section, out)
    for title, said in remarks.items():
        print_remarks(title, list(said), out)
    print_end(report, out)


def print_end(report: Report, out: Console) -> None:
    """What disturbed the run, and one sentence on the whole."""
    text, bad = layout.verdict(report)
    out.print()
    if disturbed := layout.disturbance(report):
        out.print(Text(disturbed, style="yellow"))
    out.print(Text(text, style="bold red" if bad else "bold green"))


def print_section(section: Section, out: Console) -> None:
    """The title, the rows, those without a time, and the footnotes."""
    parts = [Text(section.title, style="bold"), Text(section.subtitle, style="dim")]
    print_parts([part for part in parts if part], out)
    cells = [section.header, *section.rows] if section.rows else []
    names = [line.names for line in section.lines]
    kept = _columns_that_fit(cells, names, _dropped(section.columns), out.width)
    widths = [_width([*cells, *names], column) for column in range(_NAMES)] if names else []
    shown: list[Table | Text] = [_rows(section, kept, widths)] if section.rows else []
    shown += [_lines(section, kept, widths)] if section.lines else []
    shown += [Text(footnote, style="dim") for footnote in section.footnotes]
    for each in shown:
        out.print(Padding(each, (0, 0, 0, _INDENT)))


def print_parts(parts: Sequence[Text], out: Console) -> None:
    """Parts of a heading, each on the line of the one before if it fits there."""
    line = Text()
    for part in parts:
        if line and line.cell_len + 4 + part.cell_len > out.width:
            out.print(line)
            line = Text()
        line = Text("    ").join([line, part]) if line else part.copy()
    out.print(line)


def print_remarks(title: str, remarks: Sequence[Remark], out: Console) -> None:
    """Who a remark is about, the remark, and the fix, beside it if there is room, else below."""
    if not remarks:
        return
    out.print()
    out.print(Text(title, style="bold"))
    widest = [
        max(map(cell_len, cells)) for cells in zip(*((r.subject, r.text, r.fix or "") for r in remarks), strict=True)
    ]
    beside = _INDENT + sum(widest) + 2 * _GAP <= out.width
    table = plain_table()
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


def _dropped(columns: Sequence[Column]) -> list[int]:
    """The columns that a narrow terminal drops, in this order."""
    order = [(column.drop, at) for at, column in enumerate(columns) if column.drop is not None]
    return [at for _, at in sorted(order)]


def _columns_that_fit(
    cells: Sequence[Sequence[str | Text]], names: Sequence[Sequence[str]], dropped: Sequence[int], width: int
) -> list[int]:
    """The columns that a terminal of this width has room for."""
    if not cells:
        return list(range(_NAMES))
    kept = list(range(len(cells[0])))
    widths = [_width([*cells, *names], column) for column in kept]
    for column in dropped:
        if _INDENT + sum(widths[c] + _GAP for c in kept) - _GAP <= width:
            break
        kept.remove(column)
    return kept


def _width(rows: Sequence[Sequence[str | Text]], column: int) -> int:
    return max(cell_len(str(row[column])) for row in rows if column < len(row))


def _rows(section: Section, kept: Sequence[int], widths: Sequence[int]) -> Table:
    table = plain_table(show_header=True)
    for column in kept:
        table.add_column(
            section.columns[column].title,
            justify="right" if section.columns[column].right else "left",
            min_width=widths[column] if column < len(widths) else None,
            no_wrap=True,
        )
    for row in section.rows:
        table.add_row(*(row[column] for column in kept))
    return table


def _lines(section: Section, kept: Sequence[int], widths: Sequence[int]) -> Table:
    table = plain_table()
    names = [column for column in kept if column < _NAMES]
    for column in names:
        table.add_column(min_width=widths[column], no_wrap=True)
    table.add_column(overflow="fold")
    for line in section.lines:
        table.add_row(*(line.names[column] for column in names), line.text, style="red" if line.wrong else None)
    return table


def plain_table(*, show_header: bool = False) -> Table:
    """An empty table without borders."""
    return Table(box=None, show_header=show_header, header_style="dim", padding=(0, _GAP, 0, 0), pad_edge=False)
