"""Prints where the time of one call goes, on a terminal or as plain text into a pipe."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from py_backends.display import console, layout, remarks, units
from py_backends.display.layout import Column, Section
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

_DROPPED = (FIRST_LAUNCH, REST, PREPARE, "release", "launch", "variant", "download", "upload")
"""The columns that a narrow terminal drops, in this order."""
_ORDER = {name: at for at, name in enumerate(_DROPPED)}


def print_report(report: Report, out: Console) -> None:
    """A table for each kernel, dtype and shape. Below them, what was not run, and the verdict."""
    console.print_view(report, map(_section, timelines(report)), {"Not run": remarks.not_run(report)}, out)


def _section(timeline: Timeline) -> Section:
    return Section(
        timeline.asked.title,
        "medians of the phases of one call",
        columns(timeline.calls),
        footnotes=footnotes(timeline.calls),
    )


def columns(calls: Sequence[Call]) -> list[Column]:
    """A cell is empty if that phase was not measured.

    `rest` is what a measured call takes beyond its phases. `not kernel` is the part of the call outside its kernel.
    """
    rest = [None if call.end_to_end is None else call.rest for call in calls]
    return [
        *layout.names([call.row for call in calls], variant=_ORDER["variant"]),
        *(Column(phase, [_phase(call, phase) for call in calls], _ORDER.get(phase)) for phase in PHASES),
        Column(REST, list(map(_duration, rest)), _ORDER[REST]),
        Column("end to end", [_duration(call.end_to_end) for call in calls]),
        Column("not kernel", [f"{100 * call.outside:.0f}%" for call in calls]),
        *(Column(name, [_duration(call.once.get(name)) for call in calls], _ORDER.get(name)) for name in ONCE),
    ]


def _phase(call: Call, phase: str) -> str:
    return f"{'*' if call.shortened and phase == KERNEL else ''}{_duration(call.phases.get(phase))}"


def _duration(seconds: float | None) -> str:
    return "" if seconds is None else units.duration(seconds)


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
