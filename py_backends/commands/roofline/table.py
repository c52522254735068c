"""Prints the measured ceilings, and where every row stands under them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from py_backends.commands.roofline.analysis import DRAM, Shares, groups, level, levels, share, shares
from py_backends.display import console, layout, remarks, units
from py_backends.display.layout import UNSURE, Column, Section, why_unsure
from py_backends.results.report import Ceiling, Report
from py_backends.results.roofline import WHAT_MOVES, Point, Roofline, rooflines

_KINDS = {"additions": "", "copies": "copying ", "reads": "reading "}
"""How the name of a bandwidth begins, by what moves."""


def print_report(report: Report, out: Console) -> None:
    """For each dtype its ceilings, then a table for each kernel and shape. Below them, what has no place there."""
    console.print_view(
        report,
        _sections(report),
        {"Under no roof": remarks.without_roof(report), "Not run": remarks.not_run(report)},
        out,
    )


def _sections(report: Report) -> Iterator[Section]:
    for roofline in rooflines(report):
        threads = roofline.peaks[0].threads
        of_all = shares(roofline, report.machine)
        yield Section(
            f"ceilings  {roofline.dtype}",
            ("" if threads is None else f"on {layout.count(threads, 'thread')}, ") + "measured in the same rounds",
            roofs(roofline, report.machine, by_level=of_all.many),
            footnotes=list(roof_notes(roofline, report.machine, by_level=of_all.many)),
        )
        for title, points in groups(roofline.points):
            said = footnotes(points, report, disturbed=not of_all.many)
            yield Section(title, "", _columns(points), footnotes=said)
        if of_all.many:
            yield share_table(of_all, roofline.dtype, report)


def share_table(found: Shares, dtype: str, report: Report) -> Section:
    """The shares of the roof, models by kernels. Above them what binds each kernel, and who is nearest to its roof."""
    columns = [Column("", ["bound by", "at sizes", "nearest", *found.models], right=False)]
    for at, kernel in enumerate(found.kernels):
        nearest = found.nearest(at)
        cells = [
            Text(marked(line[at], report), "bold" if name in nearest else "") for name, line in found.models.items()
        ]
        columns.append(
            Column(kernel.name, [found.bounds[at], kernel.sizes, ", ".join(nearest), *cells], len(found.kernels) - at)
        )
    notes = ["of each model its best variant and target; - where it has none"]
    if any(point.row.requested for point in found.points):
        notes.append(
            "* smaller than requested; each row has the roof of the shape that it ran at: see the tables above"
        )
    if report.mostly_disturbed:
        notes.append(f"{UNSURE} and each share {why_unsure(report)}")
    elif any(point.unsure for point in found.points):
        notes.append(f"{UNSURE} {why_unsure(report)}")
    return Section(f"shares  {dtype}", "per cent of the roof", columns, footnotes=notes)


def marked(point: Point | None, report: Report) -> str:
    """A share, with a star if its row ran at a smaller shape than requested, and marked if it may be far off.

    Where all may be, one line says so in place of marks.
    """
    star = "*" if point and point.row.requested else ""
    return f"{UNSURE if point and point.unsure and not report.mostly_disturbed else ''}{star}{share(point)}"


def roofs(roofline: Roofline, machine: Mapping[str, Any], *, by_level: bool = False) -> list[Column]:
    """For each ceiling its name, rate, half the width of its interval, and what it limits.

    by_level: whether each level of memory has one line, with its highest bandwidth.
    """
    peaks, bandwidths = roofline.peaks, roofline.bandwidths
    names = [roof_name(each, machine, roofline.from_memory) for each in (*peaks, *bandwidths)]
    if by_level:
        found = levels(roofline, machine)
        bandwidths = [each.ceiling for each in found]
        names = [*names[: len(peaks)], *(each.name for each in found)]
    binds = [f"below {units.figure(roofline.ridge(each))} FLOP/byte" for each in bandwidths]
    return [
        Column("roof", names, right=False),
        Column(
            "",
            [
                *(f"{units.figure(peak.rate)} GFLOP/s" for peak in peaks),
                *(f"{units.figure(each.rate)} GB/s" for each in bandwidths),
            ],
        ),
        Column("", [units.spread(each.rate, each.low, each.high) for each in (*peaks, *bandwidths)], 1),
        Column("binds", ["" for _ in peaks] + binds, 2, right=False),
    ]


def roof_name(ceiling: Ceiling, machine: Mapping[str, Any], from_memory: Collection[int] = ()) -> str:
    """A ceiling's name in a few words. `from_memory` is that of `Roofline`."""
    if ceiling.working_set_bytes is None:
        return f"peak, {ceiling.instruction_set}" if ceiling.instruction_set else "peak"
    kind = _KINDS[WHAT_MOVES[ceiling.kind]]
    place = level(ceiling, machine, from_memory)
    fits = {"": "", DRAM: f" ({DRAM})"}.get(place, f" (fits {place})")
    return f"{kind}{units.size(ceiling.working_set_bytes)}{fits}"


def roof_notes(roofline: Roofline, machine: Mapping[str, Any], *, by_level: bool = False) -> Iterator[str]:
    """The notes that explain where the data are, by the names of the ceilings."""
    if by_level:
        yield "of each level the highest bandwidth that was measured there; --json has all"
    places = {level(each, machine, roofline.from_memory) for each in roofline.bandwidths}
    if places - {DRAM, ""}:
        what = "caches" if by_level else "fits"
        yield f"{what}: by the reported size of that cache, which a virtual machine may share with others"
    if DRAM in places:
        yield f"{DRAM}: larger than all reported caches, or written faster past them than through them"


def _columns(points: Sequence[Point]) -> list[Column]:
    """The rate of a kernel that only moves is in GB/s."""
    intensities = [f"{'*' if point.row.requested else ''}{units.figure(point.intensity)}" for point in points]
    return [
        *layout.names([point.row for point in points], variant=1, target=4),
        Column("FLOP/byte", intensities, 2),
        Column("GFLOP/s" if points[0].intensity else "GB/s", [units.figure(point.rate) for point in points]),
        Column("attainable", [units.figure(point.attainable) for point in points], 3),
        Column("of ceiling", [of_ceiling(point) for point in points]),
        Column("bound by", [point.bound for point in points], right=False),
    ]


def of_ceiling(point: Point) -> str:
    """Per cent of its roof, marked if the figure may be far off."""
    return f"{UNSURE if point.unsure else ''}{units.percent(point.percent)}"


def footnotes(points: Sequence[Point], report: Report, *, disturbed: bool = True) -> list[str]:
    """The notes on points of a smaller shape than requested, and on unreliable ones.

    disturbed: whether to say of a disturbed run that all of them are.
    """
    rows = [point.row for point in points]
    notes = remarks.at_smaller_shapes((row, f"{row.backend} {row.target}") for row in rows)
    if any(point.unsure for point in points) and (disturbed or not report.mostly_disturbed):
        notes.append(f"{UNSURE} {why_unsure(report)}")
    return notes
