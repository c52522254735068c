"""Prints where the time of one call goes, on a terminal or as plain text into a pipe."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from py_backends.display import console, remarks, units
from py_backends.display.layout import Section
from py_backends.results.report import Report
from py_backends.results.timeline import (
    FIRST_LAUNCH,
    KERNEL,
    ONCE,
    PHASES,
    PREPARE,
    REST,
    Call,
    Lane,
    Timeline,
    timelines,
)

HEADER = ("backend", "target", "variant", *PHASES, REST, "end to end", "not kernel", *ONCE)
"""`rest` is what a measured call takes beyond its phases. `not kernel` is the part of the call outside its kernel."""
_DROPPED = tuple(map(HEADER.index, (FIRST_LAUNCH, REST, PREPARE, "release", "launch", "variant", "download", "upload")))
"""The columns that a narrow terminal drops, in this order."""


def print_report(report: Report, out: Console) -> None:
    """A table for each kernel, dtype and shape. Below them, what was not run, and the verdict."""
    console.print_view(report, map(_section, timelines(report)), {"Not run": remarks.not_run(report)}, out)


def _section(timeline: Timeline) -> Section:
    return Section(
        timeline.asked.title,
        "medians of the phases of one call",
        HEADER,
        [cells(call) for call in timeline.calls],
        footnotes=footnotes(timeline.calls),
        right=range(3, len(HEADER)),
        dropped=_DROPPED,
    )


def cells(call: Call) -> tuple[str, ...]:
    """A call's line under `HEADER`. A cell is empty if that phase was not measured."""
    row = call.row
    phases = [units.duration(call.phases[phase]) if phase in call.phases else "" for phase in PHASES]
    if call.shortened:
        phases[PHASES.index(KERNEL)] = f"*{phases[PHASES.index(KERNEL)]}"
    return (
        row.backend,
        row.target,
        row.variant,
        *phases,
        "" if call.end_to_end is None else units.duration(call.rest),
        "" if call.end_to_end is None else units.duration(call.end_to_end),
        f"{100 * call.outside:.0f}%",
        *(units.duration(call.once[name]) if name in call.once else "" for name in ONCE),
    )


def footnotes(calls: Sequence[Call]) -> list[str]:
    """Which calls had a smaller shape than the requested one, which kernels were only loaded, and what ranks did."""
    rows = [call.row for call in calls if call.shortened]
    smaller = remarks.at_smaller_shapes((row, f"{row.backend} {row.target}") for row in rows)
    kept = [f"{call.row.backend} {call.row.target}" for call in calls if call.row.kept]
    loaded = [f"{PREPARE} only loads what an earlier run compiled: {', '.join(kept)}"] if kept else []
    return [*smaller, *loaded, *(_ranks(call) for call in calls if call.lanes)]


def _ranks(call: Call) -> str:
    """The kernel of each rank, and the communication in it."""
    ranks = [f"rank {lane.rank} {units.duration(lane.kernel)} ({communicating(lane)})" for lane in call.some_lanes]
    of = "" if len(ranks) == len(call.lanes) else f", {len(ranks)} of {len(call.lanes)} ranks, the slowest first"
    return f"{call.row.backend} {call.row.target}, kernel (communication in it){of}: {', '.join(ranks)}"


def communicating(lane: Lane) -> str:
    """The part of a rank's kernel that is communication: "5%"."""
    return f"{100 * min(1.0, lane.communicating / lane.kernel):.0f}%" if lane.kernel else "0%"
