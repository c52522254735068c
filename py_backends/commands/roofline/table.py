"""Prints the measured ceilings, and where every row stands under them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console

from py_backends.display import console, layout, remarks, units
from py_backends.display.layout import UNSURE, Section, why_unsure
from py_backends.results.grouping import grouped
from py_backends.results.report import Ceiling, Report
from py_backends.results.roofline import WHAT_MOVES, Point, Roofline, rooflines

ROOFS = ("roof", "", "", "binds")
POINTS = ("backend", "target", "variant", "FLOP/byte", "GFLOP/s", "attainable", "of ceiling", "bound by")
_DROPPED = tuple(map(POINTS.index, ("variant", "FLOP/byte", "attainable", "target")))
"""The columns that a narrow terminal drops, in this order."""
_DRAM = "DRAM"
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
        yield Section(
            f"ceilings  {roofline.dtype}",
            ("" if threads is None else f"on {layout.count(threads, 'thread')}, ") + "measured in the same rounds",
            ROOFS,
            list(roofs(roofline, report.machine)),
            footnotes=list(roof_notes(roofline, report.machine)),
            right={1, 2},
            dropped=(2, 3),
        )
        for title, points in groups(roofline.points):
            yield Section(
                title,
                header=header(points),
                rows=[cells(point) for point in points],
                footnotes=footnotes(points, report),
                right={3, 4, 5, 6},
                dropped=_DROPPED,
            )


def roofs(roofline: Roofline, machine: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """A line for each ceiling under `ROOFS`: its name, rate, half the width of its interval, and what it limits."""
    for peak in roofline.peaks:
        yield roof_name(peak, machine), f"{units.figure(peak.rate)} GFLOP/s", _spread(peak), ""
    for each in roofline.bandwidths:
        binds = f"below {units.figure(roofline.ridge(each))} FLOP/byte"
        name = roof_name(each, machine, roofline.from_memory)
        yield name, f"{units.figure(each.rate)} GB/s", _spread(each), binds


def roof_name(ceiling: Ceiling, machine: Mapping[str, Any], from_memory: Collection[int] = ()) -> str:
    """A ceiling's name in a few words. `from_memory` is that of `Roofline`."""
    if ceiling.working_set_bytes is None:
        return f"peak, {ceiling.instruction_set}" if ceiling.instruction_set else "peak"
    kind = _KINDS[WHAT_MOVES[ceiling.kind]]
    place = _DRAM if ceiling.working_set_bytes in from_memory else _smallest_cache(ceiling, machine)
    return f"{kind}{units.size(ceiling.working_set_bytes)}{f' ({place})' if place else ''}"


def roof_notes(roofline: Roofline, machine: Mapping[str, Any]) -> Iterator[str]:
    """The notes that explain where the data are, by the names of the ceilings."""
    places = {roof_name(each, machine, roofline.from_memory).partition("(")[2] for each in roofline.bandwidths}
    if any(place.startswith("fits") for place in places):
        yield "fits: by the reported size of that cache, which a virtual machine may share with others"
    if f"{_DRAM})" in places:
        yield "DRAM: larger than all reported caches, or written faster past them than through them"


def groups(points: Sequence[Point]) -> Iterator[tuple[str, list[Point]]]:
    """The points by kernel, dtype and requested shape. In each group, those nearest to the roof come first."""
    found = grouped((point.row.spec.on_any_threads.workload.title, point) for point in points)
    for title, group in found.items():
        yield title, sorted(group, key=lambda point: -point.percent)


def header(points: Sequence[Point]) -> tuple[str, ...]:
    """`POINTS` for the points of a group. The rate of a kernel that only moves is in GB/s."""
    return POINTS if points[0].intensity else tuple("GB/s" if name == "GFLOP/s" else name for name in POINTS)


def cells(point: Point) -> tuple[str, ...]:
    """A point's line under `POINTS`."""
    row = point.row
    return (
        row.backend,
        row.target,
        row.variant,
        f"*{units.figure(point.intensity)}" if row.requested else units.figure(point.intensity),
        units.figure(point.rate),
        units.figure(point.attainable),
        of_ceiling(point),
        point.bound,
    )


def of_ceiling(point: Point) -> str:
    """Per cent of its roof, marked if the figure may be far off."""
    return f"{UNSURE if point.unsure else ''}{units.percent(point.percent)}"


def footnotes(points: Sequence[Point], report: Report) -> list[str]:
    """The notes on points of a smaller shape than requested, and on unreliable ones."""
    rows = [point.row for point in points]
    notes = remarks.at_smaller_shapes((row, f"{row.backend} {row.target}") for row in rows)
    if any(point.unsure for point in points):
        notes.append(f"{UNSURE} {why_unsure(report)}")
    return notes


def _spread(ceiling: Ceiling) -> str:
    return units.spread(ceiling.rate, ceiling.low, ceiling.high)


def _smallest_cache(ceiling: Ceiling, machine: Mapping[str, Any]) -> str:
    """The first cache that is as large as this working set. Empty if the results lack the caches' sizes."""
    caches = machine.get("cache_bytes")
    if not caches:
        return ""
    for level, size in caches.items():
        # The first two levels belong to one core, where each thread has its part.
        together = size * (ceiling.threads or 1) if level in {"L1", "L2"} else size
        if (ceiling.working_set_bytes or 0) <= together:
            return f"fits {level}"
    return _DRAM
