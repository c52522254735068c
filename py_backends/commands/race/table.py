"""Prints a race, as a comparison is printed."""

from __future__ import annotations

from rich.console import Console

from py_backends.display import comparison, console, remarks
from py_backends.results.report import Report


def print_report(report: Report, out: Console) -> None:
    """Its table. Below it, what was not run, and notes."""
    below = {"Not run": remarks.not_run(report), "Notes": remarks.notes(report)}
    console.print_view(report, comparison.sections(report), below, out)
