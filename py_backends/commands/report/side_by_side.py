"""Several reports side by side, of different machines or days. Rates and verdicts belong to their own report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from py_backends.display import comparison, layout, units
from py_backends.results.ratios import rate
from py_backends.results.report import FAILURES, Report, Row
from py_backends.results.spec import Spec, Workload, told_apart


@dataclass(frozen=True)
class Cell:
    """What one report says about a row: its rate and verdict, or its status."""

    text: str
    verdict: str = ""
    wrong: bool = False


@dataclass(frozen=True)
class Line:
    """A row of the comparison, with a cell for each report. None if a report lacks the row.

    spec: what identifies the row, with threads only if a report has it for several numbers of them.
    """

    spec: Spec
    cells: list[Cell | None]


@dataclass(frozen=True)
class Beside:
    """All reports at one kernel, dtype and requested shape."""

    title: str
    unit: str
    lines: list[Line]


def across(reports: Sequence[Report]) -> list[Beside]:
    """A table for each kernel, dtype and shape in at least two reports, in their order."""
    key = told_apart(*((row.spec for row in report.rows) for report in reports))
    workloads: dict[Workload, dict[Spec, list[Row | None]]] = {}
    for number, report in enumerate(reports):
        for row in report.rows:
            lines = workloads.setdefault(row.spec.on_any_threads.workload, {})
            lines.setdefault(key(row.spec), [None] * len(reports))[number] = row
    return [_beside(workload, lines) for workload, lines in workloads.items() if _in_two(lines.values())]


def _in_two(lines: Iterable[list[Row | None]]) -> bool:
    return sum(any(rows) for rows in zip(*lines, strict=True)) > 1


def _beside(workload: Workload, lines: dict[Spec, list[Row | None]]) -> Beside:
    made = [Line(spec, [_cell(row) if row else None for row in rows]) for spec, rows in _by_rate(lines)]
    return Beside(workload.title, layout.unit(*(row for rows in lines.values() for row in rows if row)), made)


def _by_rate(lines: dict[Spec, list[Row | None]]) -> list[tuple[Spec, list[Row | None]]]:
    """Sorted by the highest rate in any report."""
    rates = {spec: [rate(row) for row in rows if row and row.status == "ok"] for spec, rows in lines.items()}
    return sorted(lines.items(), key=lambda line: -max(rates[line[0]], default=-1.0))


def _cell(row: Row) -> Cell:
    if row.status != "ok" or row.rate is None:
        return Cell(row.status, wrong=row.status in FAILURES)
    star = "*" if row.requested and row.requested != row.shape else ""
    return Cell(f"{star}{units.figure(rate(row))}", comparison.versus(row))
