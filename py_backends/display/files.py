"""Writes results as CSV and as Markdown. Both are views of JSON, which has everything."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from py_backends.display import comparison, layout, remarks, units
from py_backends.display.layout import Section
from py_backends.results.report import Report, Row


def _places(of: type[Any]) -> Iterator[str]:
    """The place of each figure in an object of results: "status", "seconds.kernel.median". Lists are left out."""
    types = get_type_hints(of)
    for field in fields(of):
        kinds = get_args(types[field.name]) if isinstance(types[field.name], UnionType) else (types[field.name],)
        parts: Any = next(filter(is_dataclass, kinds), None)
        if parts:
            yield from (f"{field.name}.{part}" for part in _places(parts))
        elif not any(get_origin(kind) is list for kind in kinds):
            yield field.name


_COLUMNS = tuple(_places(Row))
"""The columns of CSV, with the place of each figure in the JSON of a row."""


def csv_text(report: Report) -> str:
    """A header, and a line for each row. A cell is empty if there is no figure."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows([_field(row, column) for column in _COLUMNS] for row in report.rows)
    return out.getvalue()


def markdown_text(report: Report) -> str:
    """A section for each table, then what was not run, notes and the verdict."""
    lines = ["# " + layout.heading(report)[0], "", ", ".join(layout.heading(report)[1:])]
    for section in comparison.sections(report):
        lines += ["", f"## {section.title}", ""]
        lines += [section.subtitle.capitalize() + ".", ""] if section.subtitle else []
        if section.rows:
            lines += _markdown_table(section)
        lines += [f"- {' '.join(line.names)}: {_escape(line.text)}" for line in section.lines]
        lines += [f"\n{_escape(footnote)}" for footnote in section.footnotes]
    for title, said in ("Not run", remarks.not_run(report)), ("Notes", remarks.notes(report)):
        if said:
            lines += ["", f"## {title}", ""]
            lines += [f"- {r.subject}: {_escape(r.text)}" + (f" ({_escape(r.fix)})" if r.fix else "") for r in said]
    if disturbed := layout.disturbance(report):
        lines += ["", disturbed]
    return "\n".join([*lines, "", layout.verdict(report)[0], ""])


def _field(row: Row, column: str) -> Any:
    if column in ("shape", "requested"):
        sizes: dict[str, int] = getattr(row, column) or {}
        return units.shape(sizes.values()).replace(" ", "")
    value: Any = row
    for name in column.split("."):
        value = getattr(value, name, None)  # also for None: what is missing has no parts
    return value


def _markdown_table(section: Section) -> list[str]:
    rule = ["---:" if column.right else "---" for column in section.columns]
    rows = (section.header, rule, *section.rows)
    return ["| " + " | ".join(_escape(str(cell)) for cell in row) + " |" for row in rows] + [""]


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("*", "\\*").replace("\n", " ")
