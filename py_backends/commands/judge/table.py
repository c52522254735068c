"""Prints a judgement: the comparison if there is one, and then what it says, in three lines or so."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from py_backends.display import comparison, console, layout, remarks, units
from py_backends.results.report import FAILURES, FailingCase, Judgement, Report, Row

_IN_COMPARISON = {True: "but its time is not to be believed", False: "but not that of the comparison"}
"""What a source is whose cases all hold, and which is wrong: by whether it is `impossible`."""


def print_report(report: Report, out: Console) -> None:
    """The tables of a source that was timed. Below them, the judgement."""
    found = report.judgement
    assert found is not None
    if found.failing is None or found.failing.kind == "compare":
        below = {"Not run": remarks.not_run(report), "Notes": remarks.notes(report)}
        console.print_view(report, comparison.sections(report), below, out)
        out.print()
    first, *others = lines(report, found)
    out.print(Text(first, style="bold green" if found.right else "bold red"), soft_wrap=True)
    for line in others:
        out.print(Text(line), soft_wrap=True)


def lines(report: Report, found: Judgement) -> Iterator[str]:
    """Whether it is right, the smallest failing case, its time beside others, its share of the ceiling, remarks."""
    where = f"{found.file} as {found.kernel} in {found.backend} on {found.target}"
    tried = f"{found.cases:,} cases of {found.kinds} kinds in {', '.join(found.dtypes)}"
    failed = (
        f"{found.failed} of {tried} fail" if found.failed and found.cases else f"{tried} hold" if found.cases else ""
    )
    rows = sorted((each for each in report.rows if each.variant == found.variant), key=_is_right)
    row = rows[0] if rows else None
    impossible = row is not None and row.status == "impossible"
    but = f", {_IN_COMPARISON[impossible]}" if found.failing and found.failing.kind == "compare" else ""
    said = "right" if found.right else "wrong" if found.failing else "interrupted"
    yield f"{said}: {where}{failed and f': {failed}{but}'}"
    if said == "interrupted":
        yield "the timed shape was not checked to the end, so nobody knows whether it is right: run it again"
    if found.failing is not None:
        about = "not to be believed" if impossible else "smallest failing case"
        yield f"{about}: {_case(found.failing, row)}: {found.failing.reason}"
    if found.right and row is not None:
        yield from _speed(report, row)
    yield from (f"remark: {each}" for each in found.remarks)


def _is_right(row: Row) -> bool:
    return row.status not in FAILURES


def _case(failing: FailingCase, row: Row | None) -> str:
    """The case. Sizes have their names, which the author's file may give to others."""
    names = list(row.shape) if row is not None else []
    sizes = [f"{name}={size}" for name, size in zip(names, failing.sizes, strict=False)]
    shape = f" at {' '.join(sizes)}" if sizes else ""
    seed = f', seed "{failing.case}"' if failing.case else ""
    return f"{failing.kind}{shape}, {failing.dtype}{seed}"


def _speed(report: Report, row: Row) -> Iterator[str]:
    time = row.timed
    if time is None:
        yield f"not timed: {row.reason or row.status}"
        return
    others = [each for each in report.rows if each is not row and each.timed]
    alike = all(each.shape == row.shape for each in others)  # else times say nothing, and rates do
    beside = "".join(f"; {_name(each, row)} {_time(each) if alike else _speed_at(each, row)}" for each in others)
    own = _time(row) if alike else f"{_time(row)}, {layout.speed(row)}"
    at = f" at {units.shape(row.shape.values())}" if row.shape else ""
    yield f"time: {own}{at} in {row.dtype}{beside}"
    if row.percent_of_ceiling is not None:
        yield f"ceiling: {units.percent(row.percent_of_ceiling)} of what this machine allows"


def _name(other: Row, row: Row) -> str:
    return other.variant if other.backend == row.backend else other.backend


def _speed_at(other: Row, row: Row) -> str:
    """Its rate, with its shape if that is another one, at which a rate may be too."""
    return f"{layout.speed(other)}{'' if other.shape == row.shape else f' at {units.shape(other.shape.values())}'}"


def _time(row: Row) -> str:
    time = row.timed
    assert time is not None
    return units.with_spread(units.duration(time.median), time.median, time.low, time.high)
