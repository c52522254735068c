"""Steps from `lecture` to `tuned` for a page: each beside the one before, with what was measured of both."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from py_backends import registry
from py_backends.commands.ladder.analysis import Climb, Step, climbs
from py_backends.commands.ladder.table import over_below, share_of, title
from py_backends.commands.report.sources import highlighted
from py_backends.contract import Ladder, Rung
from py_backends.display import layout, units
from py_backends.kernel_text import KernelText
from py_backends.results.grouping import grouped
from py_backends.results.report import Report


@dataclass(frozen=True)
class Side:
    """A source of a pair. `figures` says how fast it was in each format and shape."""

    idea: str
    path: str
    figures: list[str]
    code: Markup


@dataclass(frozen=True)
class Walk:
    """A chain of steps. Each stands next to the one before, with their differences marked."""

    title: str
    pairs: list[tuple[Side, Side]]


def walks(report: Report) -> list[Walk]:
    """The chains of steps that a report holds, one for each kind of device."""
    chains = [climb for climb in climbs(report) if climb.ladder in registry.problem(climb.kernel).steps]
    found = grouped(((climb.kernel, climb.ladder.name or ""), climb) for climb in chains)
    return [
        Walk(f"{kernel}, step by step, {name}", list(_pairs(kernel, its[0].ladder, its)))
        for (kernel, name), its in found.items()
    ]


def _pairs(kernel: str, ladder: Ladder, its: Sequence[Climb]) -> Iterator[tuple[Side, Side]]:
    for below, above in pairwise(ladder.rungs):
        texts = [registry.kernel_texts(kernel, rung.backend)[rung.variant] for rung in (below, above)]
        sides = [
            Side(rung.idea, text.place, list(_figures(rung, its)), highlighted(text, marked))
            for rung, text, marked in zip((below, above), texts, changed(*texts), strict=True)
        ]
        yield sides[0], sides[1]


def changed(old: KernelText, new: KernelText) -> tuple[set[int], set[int]]:
    """The lines of each source, counted from 0, that are not in the other."""
    before, after = (text.text.rstrip().splitlines() for text in (old, new))
    gone, come = set[int](), set[int]()
    for what, i, end_i, j, end_j in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if what != "equal":
            gone |= set(range(i, end_i))
            come |= set(range(j, end_j))
    return gone, come


def _figures(rung: Rung, its: Sequence[Climb]) -> Iterator[str]:
    for climb in its:
        step = next((step for step in climb.steps if step.rung is rung), None)
        said = _figure(step, climb) if step else dict(climb.missing).get(rung, "not timed")
        yield f"{' '.join(title(climb).split()[1:])}: {said}"


def _figure(step: Step, climb: Climb) -> str:
    """Its rate, with the size if it is another one, its share, and how many times as fast it is as the step before."""
    at = f" at {units.short_shape(step.row.shape)}" if step.row.shape != climb.shape else ""
    said = [f"{layout.speed(step.row)}{at}"]
    if step.percent_of_peak is not None:
        said.append(f"{units.percent(step.percent_of_peak)} of {share_of(step.row)}")
    if step.over_below:
        said.append(over_below(step.over_below))
    return ", ".join(said)
