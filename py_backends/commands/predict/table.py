"""Prints predictions, on a terminal or as plain text into a pipe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from py_backends.commands.predict.analysis import MOST_RANKS, STRONG
from py_backends.display import console, layout, units
from py_backends.display.layout import Column, Section
from py_backends.ranks.costs import COMPUTING, LAUNCH
from py_backends.ranks.networks import HERE
from py_backends.results.grouping import grouped
from py_backends.results.report import Estimate, Prediction, Report

_TITLES = {STRONG: "strong: the same work on more ranks", "weak": "weak: work that grows with the ranks"}
_OF_A_RANK_ALONE = {COMPUTING, LAUNCH}
_LEAST_GAIN = 0.02
"""What would help is named if the efficiency gains as much."""


def print_report(report: Report, out: Console) -> None:
    """A table for each kernel, dtype and kind of scaling, and what the predictions rest on."""
    console.print_parts([Text(part, style="bold") for part in layout.heading(report)], out)
    for group in groups(report.predictions):
        out.print()
        console.print_section(_section(group, report.machine.get("memory_bytes")), out)
    out.print()
    out.print(Text(_network(report), style="dim"))


def groups(found: Sequence[Prediction]) -> list[list[Prediction]]:
    """Predictions that belong together: of one kernel, variant, dtype and kind of scaling, from one shape."""
    keys = []
    shape = None
    for each in found:
        if each.scaling == STRONG:
            shape = tuple(each.shape.values())
        keys.append((each.kernel, each.variant, each.dtype, shape, each.scaling))
    return list(grouped(zip(keys, found, strict=True)).values())


def title(group: Sequence[Prediction]) -> str:
    """Kernel, variant, dtype, and which kind of scaling."""
    first = group[0]
    shape = [units.shape(first.shape.values())] if first.scaling == STRONG else []
    threads = layout.count(first.threads, "thread")
    return "  ".join([first.kernel, first.variant, first.dtype, *shape, f"{threads} a rank", _TITLES[first.scaling]])


def half(group: Sequence[Prediction]) -> Iterator[str]:
    """From which number of ranks on the efficiency is below one half. Nothing of this machine, which has few."""
    found = group[0].half_from
    if found is not None:
        yield f"the efficiency is below one half from about {units.figure(found)} ranks on"
    elif group[0].network != HERE:
        yield f"an efficiency below one half was not met up to {MOST_RANKS:,} ranks"


def with_interval(found: Estimate, words: str) -> str:
    """A figure with half the width of its interval, in per cent of it."""
    return units.with_spread(words, found.value, found.low, found.high)


def helps(found: Prediction) -> str:
    """What would raise the efficiency most, and to what."""
    if not found.with_help:
        return ""
    name, efficiency = max(found.with_help.items(), key=lambda each: each[1])
    if efficiency - found.efficiency.value < _LEAST_GAIN:
        return "none of them"
    return f"{name}: {100 * efficiency:.0f}%"


def _section(group: Sequence[Prediction], memory: float | None) -> Section:
    return Section(
        title(group),
        "",
        _columns(group),
        footnotes=[*half(group), *_notes(group), *_too_large(group, memory)],
    )


def _columns(group: Sequence[Prediction]) -> list[Column]:
    efficiencies = [with_interval(each.efficiency, f"{100 * each.efficiency.value:.0f}%") for each in group]
    return [
        Column("ranks", [f"{each.ranks:,}" for each in group], right=False),
        Column("shape", [units.short_shape(each.shape) for each in group], 2, right=False),
        Column("time", [with_interval(each.seconds, units.duration(each.seconds.value)) for each in group]),
        Column("efficiency", efficiencies),
        Column("communication", [f"{100 * each.communicating:.1f}%" for each in group]),
        Column("most of it", list(map(_largest_part, group)), 1),
        Column("memory a rank", [units.size(each.bytes_a_rank) for each in group], 3),
        Column("would help most", list(map(helps, group)), 4, right=False),
    ]


def _largest_part(found: Prediction) -> str:
    """Of the communication."""
    exchanged = {name: seconds for name, seconds in found.parts.items() if name not in _OF_A_RANK_ALONE and seconds}
    return max(exchanged, key=exchanged.__getitem__) if exchanged else ""


def _notes(group: Sequence[Prediction]) -> Iterator[str]:
    for note, some in grouped((each.note, each) for each in group).items():
        if note:
            yield f"at {', '.join(f'{each.ranks:,}' for each in some)} ranks {note}"


def _too_large(group: Sequence[Prediction], memory: float | None) -> Iterator[str]:
    """Which ranks would not fit."""
    ranks = [f"{each.ranks:,}" for each in group if memory and each.bytes_a_rank > memory]
    if memory and ranks:
        yield f"more memory a rank than the {units.size(int(memory))} of this machine: at {', '.join(ranks)} ranks"


def _network(report: Report) -> str:
    network = report.settings["network"]
    latency, (_, byte) = network["latency"], network["seconds_a_byte"][-1]
    return (
        f"network {network['name']}: {units.duration(latency['value'])} latency, "
        f"{units.figure(1e-9 / byte['value'])} GB/s; {network['source']}"
    )
