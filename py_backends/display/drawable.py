"""Results in a form that pictures can draw, whatever a file contains."""

from __future__ import annotations

from dataclasses import replace

from py_backends.number_formats import DTYPES
from py_backends.results.report import Report, Row

_LONGEST_NAME = 48


def drawable(report: Report) -> Report:
    """The report in a form that pictures can draw.

    Rows of formats that are missing here are left out. Dollar signs in names are
    escaped, since matplotlib expects a formula between two of them. Long names are shortened, so that a picture has
    room for them.
    """
    machine = {name: _kept(value) if isinstance(value, str) else value for name, value in report.machine.items()}
    return replace(report, machine=machine, rows=[_named(row) for row in known(report).rows])


def known(report: Report) -> Report:
    """The report without timed rows that do not say their work, and without formats that this version has not."""
    return replace(report, rows=[row for row in report.rows if (row.work or not row.timed) and row.dtype in DTYPES])


def _kept(text: str) -> str:
    short = text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}…"
    return short.replace("$", r"\$")


def _named(row: Row) -> Row:
    kernel, backend, target, variant = map(_kept, (row.kernel, row.backend, row.target, row.variant))
    device = row.device and _kept(row.device)
    return replace(row, kernel=kernel, backend=backend, target=target, variant=variant, device=device)
