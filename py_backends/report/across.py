"""Several reports beside one another: machines, or days. A verdict belongs to its own report, and so does a rate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from py_backends.harness.results import FAILURES, Report, Row
from py_backends.report import layout, units


@dataclass(frozen=True)
class Cell:
    """What one report says of a row: its rate and verdict, or its status."""

    text: str
    verdict: str = ""
    wrong: bool = False


class Name(NamedTuple):
    """Which row it is; `threads` only where a report has it at several numbers of them."""

    backend: str
    target: str
    variant: str
    threads: int | None


@dataclass(frozen=True)
class Line:
    """A row of the comparison, with a cell for each report; None where a report does not have the row."""

    name: Name
    cells: list[Cell | None]


@dataclass(frozen=True)
class Beside:
    """All reports at one kernel, dtype and shape that was asked for."""

    title: str
    unit: str
    lines: list[Line]


class _Place(NamedTuple):
    kernel: str
    dtype: str
    sizes: tuple[int, ...]


def across(reports: Sequence[Report]) -> list[Beside]:
    """A table for each kernel, dtype and shape that two reports or more have, in the order in which they come."""
    several = _at_several_threads(reports)
    places: dict[_Place, dict[Name, list[Row | None]]] = {}
    for number, report in enumerate(reports):
        for row in report.rows:
            name = Name(row.backend, row.target, row.variant, row.threads)
            name = name if name[:3] in several else name._replace(threads=None)
            lines = places.setdefault(_place(row), {})
            lines.setdefault(name, [None] * len(reports))[number] = row
    return [_beside(place, lines) for place, lines in places.items() if _in_two(lines.values())]


def _in_two(lines: Iterable[list[Row | None]]) -> bool:
    return sum(any(rows) for rows in zip(*lines, strict=True)) > 1


def _at_several_threads(reports: Iterable[Report]) -> set[tuple[str, ...]]:
    """The rows that some report has at several numbers of threads. Machines have different ones of their own."""
    several: set[tuple[str, ...]] = set()
    for report in reports:
        threads: dict[tuple[str, ...], set[int | None]] = {}
        for row in report.rows:
            threads.setdefault((row.backend, row.target, row.variant), set()).add(row.threads)
        several |= {name for name, numbers in threads.items() if len(numbers) > 1}
    return several


def _place(row: Row) -> _Place:
    return _Place(row.kernel, row.dtype, tuple((row.requested or row.shape).values()))


def _beside(place: _Place, lines: dict[Name, list[Row | None]]) -> Beside:
    _, rate = layout.judged_by(place.kernel)
    in_order = sorted(lines.items(), key=lambda line: -max(_rate(row, rate) for row in line[1]))
    return Beside(
        f"{place.kernel}  {place.dtype}  {units.shape(place.sizes)}",
        units.RATES[rate],
        [Line(name, [_cell(row, rate) if row else None for row in rows]) for name, rows in in_order],
    )


def _rate(row: Row | None, rate: str) -> float:
    return getattr(row.rate, rate) if row and row.status == "ok" and row.rate else -1.0


def _cell(row: Row, rate: str) -> Cell:
    if row.status != "ok" or row.rate is None:
        return Cell(row.status, wrong=row.status in FAILURES)
    star = "*" if row.requested and row.requested != row.shape else ""
    return Cell(f"{star}{units.figure(getattr(row.rate, rate))}", layout.versus(row))
