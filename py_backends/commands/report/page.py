"""One self-contained page of one or several reports: tables, pictures, machines, and the kernels side by side.

The page loads and sends nothing. A content security policy allows only its own styles and its one script, by the
script's hash. Templates escape what they show.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

import py_backends
from py_backends import commands
from py_backends.commands.report.side_by_side import Beside, across
from py_backends.commands.report.sources import DARK, LIGHT, Source, sources, style_sheet
from py_backends.commands.report.steps import Walk, walks
from py_backends.display import comparison, layout, remarks, style
from py_backends.display.drawable import drawable, known
from py_backends.display.layout import Remark, Section
from py_backends.results.grouping import grouped
from py_backends.results.report import Report

_TEMPLATES = Path(__file__).parent / "templates"

_READABLE_PIXELS_PER_INCH = 78
"""Letters of a picture, whose size is meant for 96, can still be read at this. On a narrower screen it scrolls."""


@dataclass(frozen=True)
class Picture:
    """A picture and its description, or why there is none.

    width: the smallest width, in CSS pixels, at which its letters can be read.
    """

    title: str
    svg: Markup | None
    words: str
    width: int = 0


@dataclass(frozen=True)
class Shown:
    """All that the page says about one report. `key` is its name in ids and addresses."""

    key: str
    name: str
    heading: list[str]
    created: str
    verdict: str
    bad: bool
    disturbance: str | None
    sections: list[Section]
    not_run: list[Remark]
    notes: list[Remark]
    pictures: list[Picture]
    walks: list[Walk]
    machine: list[tuple[str, str]]
    details: list[tuple[str, str]]


def page(reports: Sequence[tuple[str, Report]]) -> str:
    """The page of reports, each with a name of its own."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    reports = [(name, _of_kernels(report)) for name, report in reports]
    script = (_TEMPLATES / "choose.js").read_text(encoding="utf-8")
    texts = sources(reports)
    return environment.get_template("page.html").render(
        version=py_backends.__version__,
        shown=[_shown(f"file-{number}", name, report) for number, (name, report) in enumerate(reports, 1)],
        names=[name for name, _ in reports],
        across=_compared(reports),
        sources=texts,
        first=_first(texts),
        style=Markup((_TEMPLATES / "page.css").read_text(encoding="utf-8")),  # noqa: S704  # a file of ours
        light=Markup(style_sheet(LIGHT)),  # noqa: S704  # Pygments writes it
        dark=Markup(style_sheet(DARK)),  # noqa: S704  # likewise
        script=Markup(script),  # noqa: S704  # a file of ours
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _of_kernels(report: Report) -> Report:
    """The report without whole calls, which tables and pictures would mistake for kernels."""
    return replace(report, rows=[row for row in report.rows if row.statement is None])


def _compared(reports: Sequence[tuple[str, Report]]) -> list[Beside]:
    return across([report for _, report in reports]) if len(reports) > 1 else []


def _first(texts: Sequence[Source]) -> list[Source]:
    """The two sources that the page shows at first: the fastest short ones of two models."""
    if not texts:
        return []
    fastest = max(texts, key=lambda text: text.best)
    alike = [text for text in texts if (text.kernel, text.variant) == (fastest.kernel, fastest.variant)]
    return sorted(alike, key=lambda text: -text.best)[:2]


def _shown(key: str, name: str, report: Report) -> Shown:
    verdict, bad = layout.verdict(report)
    return Shown(
        key=key,
        name=name,
        heading=layout.heading(report),
        created=report.created,
        verdict=verdict,
        bad=bad,
        disturbance=layout.disturbance(report),
        sections=comparison.sections(report),
        not_run=remarks.not_run(report),
        notes=remarks.notes(report),
        pictures=list(_pictures(key, report)),
        walks=walks(drawable(report)),
        machine=list(_machine(report)),
        details=list(_details(report)),
    )


def _pictures(key: str, report: Report) -> Iterator[Picture]:
    shown = drawable(report)
    pictures = {name: picture for name in commands.names() if (picture := commands.part(name, "picture"))}
    for name, picture in pictures.items():
        try:
            figure = picture.draw(shown)
            svg = Markup(style.svg(figure, f"{key}-{name}"))  # noqa: S704  # matplotlib escapes the words in it
        except ValueError as error:  # nothing to draw, or a number that no axis can have
            yield Picture(picture.TITLE, None, str(error))
        else:
            width = round(figure.get_figwidth() * _READABLE_PIXELS_PER_INCH)
            yield Picture(picture.TITLE, svg, picture.describe(known(report)), width)


def _machine(report: Report) -> Iterator[tuple[str, str]]:
    """What was run, and on what machine, by name. Unknown things are left out."""
    machine, settings = report.machine, report.settings
    memory = machine.get("memory_bytes")
    devices = grouped((row.device, f"{row.backend} {row.target}") for row in report.rows if row.device)
    said = {
        "CPU": machine.get("cpu"),
        "Logical CPUs": machine.get("logical_cpus"),
        "Memory": f"{memory / 2**30:.1f} GiB" if memory else None,
        "System": machine.get("os"),
        "Python": machine.get("python"),
        "py-backends": report.package_version,
        "Begun": report.created,
        "Command": settings.get("command"),
        "Threads": settings.get("threads"),
        "Seed": settings.get("seed"),
        "Budget": f"{settings['budget_seconds']} s" if "budget_seconds" in settings else None,
        "Caches": settings.get("cache"),
        "Rounds": f"{report.rounds.kept} of {report.rounds.taken} taken count" if report.rounds else None,
        "Busy CPUs before": machine.get("busy_cpus"),
        "Devices": "; ".join(f"{device} ({', '.join(dict.fromkeys(names))})" for device, names in devices.items()),
    }
    yield from ((name, str(value)) for name, value in said.items() if value not in (None, ""))


def _details(report: Report) -> Iterator[tuple[str, str]]:
    """Details that few readers need, as JSON."""
    for title, name in (
        ("Instruction sets", "isa"),
        ("Versions of compilers and drivers", "versions"),
        ("Packages", "packages"),
        ("State of the machine", "state"),
    ):
        value: Any = report.machine.get(name)
        if value:
            yield title, json.dumps(value, indent=1, ensure_ascii=False)
