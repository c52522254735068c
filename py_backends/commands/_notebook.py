"""What `py_backends` has for notebooks: results that appear as the tables of their command, and its picture."""

from __future__ import annotations

import html
import io
import os
import zlib
from pathlib import Path

from rich.console import Console

from py_backends import commands, registry
from py_backends.commands.compare.table import print_report
from py_backends.display import comparison, console, remarks, style
from py_backends.display.drawable import drawable
from py_backends.harness.compare import compare
from py_backends.number_formats import DTYPES
from py_backends.racing.race import race
from py_backends.results.report import FUNCTIONS, Report, Row, ShownInNotebooks

_COMPARISON, _PICTURE_OF_A_COMPARISON = "compare", "roofline"
_RACE = "race"
_WIDTH = 120
_PAGE = '<pre style="overflow-x: auto; white-space: pre; line-height: 1.3">{code}</pre>'
_PICTURE = '<div role="img" aria-label="{words}" style="overflow-x: auto; {page}">{svg}</div>'
_BEHIND = "--page: var(--jp-layout-color0, transparent)"
"""White in a picture becomes the page behind it, in Jupyter or elsewhere."""
_NO_PICTURE = "<p>No picture: {reason}</p>"


__all__ = ["compare", "race", "read"]


def read(path: str | os.PathLike[str]) -> Report:
    """Read the results that a command wrote by `--json`. In a notebook they show themselves.

    path: of the file.

    Raises ValueError, with one clear line, if the file cannot be read or holds no results.
    """
    return Report.read(Path(path))


def views() -> list[str]:
    """The commands whose results are reports, which their tables print."""
    return [name for name in commands.names() if hasattr(commands.part(name, "table"), "print_report")]


def as_text(results: Report | Row) -> str:
    """What the command of a report prints into a pipe; of a row a table of `compare`, with its remarks."""
    return "\n".join(line.rstrip() for line in _printed(results).export_text().splitlines())


def as_html(results: Report | Row) -> str:
    """The same in colours. Below a report stands its picture, or why there is none."""
    tables = _printed(results).export_html(inline_styles=True, code_format=_PAGE)
    return tables + _picture(results) if isinstance(results, Report) else tables


def _printed(results: Report | Row) -> Console:
    # rich is told that this is not Jupyter, where it would display its output by itself.
    out = console.console(file=io.StringIO(), record=True, width=_WIDTH, force_jupyter=False)
    if isinstance(results, Report):
        # A view may compute with the kernels. The table of `compare` shows those too that are missing here.
        table = commands.part(_command(results), "table") if _knows(results) else None
        (table.print_report if table else print_report)(results, out)
        return out
    alone = Report("", "", {}, {}, [results])
    for section in comparison.sections(alone):
        console.print_section(section, out)
    console.print_remarks("Not run", remarks.not_run(alone), out)
    console.print_remarks("Notes", remarks.notes(alone), out)
    return out


def _knows(report: Report) -> bool:
    """Whether its kernels and formats are here."""
    return all(registry.has_kernel(row.kernel, [*row.shape]) and row.dtype in DTYPES for row in report.rows)


def _command(report: Report) -> str:
    """The command of the results; `compare` for those of `py_backends.compare`, and for unknown commands."""
    if FUNCTIONS in report.settings:
        return _RACE
    words = str(report.settings.get("command")).split()
    return next((word for word in words[1:2] if word in views()), _COMPARISON)


def _picture(report: Report) -> str:
    command = _command(report)
    name = _PICTURE_OF_A_COMPARISON if command == _COMPARISON else command
    picture = commands.part(name, "picture")
    if picture is None:
        return ""
    shown = drawable(report)
    try:
        figure = picture.draw(shown)
    except ValueError as error:  # no library, too few results, or something that matplotlib cannot draw
        return _NO_PICTURE.format(reason=html.escape(str(error)))
    # No two pictures of a notebook may share an id.
    svg = style.svg(figure, f"{name}-{zlib.crc32(report.to_json().encode()):08x}")
    return _PICTURE.format(words=html.escape(picture.describe(shown)), page=_BEHIND, svg=svg)


ShownInNotebooks.as_html, ShownInNotebooks.as_text = as_html, as_text
