"""Writes results as CSV and as Markdown. Both are views of JSON, which has everything."""

from __future__ import annotations

import csv
import io
from typing import Any

from py_backends.display import comparison, layout, remarks, units
from py_backends.display.layout import Section
from py_backends.results.report import Report, Row

_COLUMNS = (
    "kernel", "backend", "target", "variant", "dtype", "shape", "requested", "status", "finished",
    "reason", "fix", "note", "device",
    "check.passed", "check.rule", "check.error_over_bound",
    "threads",
    "seconds.prepare", "seconds.upload", "seconds.download", "seconds.release",
    "seconds.kernel.median", "seconds.kernel.low", "seconds.kernel.high", "seconds.kernel.minimum",
    "seconds.kernel.samples", "seconds.end_to_end.median", "seconds.end_to_end.low", "seconds.end_to_end.high",
    "seconds.end_to_end.minimum", "seconds.end_to_end.samples", "seconds.first_launch",
    "seconds.clock.median", "seconds.clock.low", "seconds.clock.high", "seconds.clock.minimum", "seconds.clock.samples",
    "rate.gflops", "rate.gbytes_per_second", "percent_of_ceiling",
    "versus.baseline", "versus.speedup", "versus.low", "versus.high", "versus.same_shape", "versus.verdict",
    "versus.rounds", "versus.converged", "check.relative_error", "estimated_seconds", "kept",
)  # fmt: skip
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
    rule = ["---:" if column in section.right else "---" for column in range(len(section.header))]
    rows = (section.header, rule, *section.rows)
    return ["| " + " | ".join(_escape(str(cell)) for cell in row) + " |" for row in rows] + [""]


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("*", "\\*").replace("\n", " ")
