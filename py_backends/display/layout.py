"""What every view says of a report: its heading, its verdict, what disturbed it; and the parts of a view."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from py_backends.display import units
from py_backends.results.ratios import rate, rate_of
from py_backends.results.report import FAILURES, RAN, SURE, Report, Row

NOT_RUN = frozenset({"unavailable", "skipped"})
"""The statuses of rows that were not run."""
UNSURE = "~"
"""The mark before a figure that may be far off."""


@dataclass(frozen=True)
class Line:
    """A row without a time, by backend, target and variant, and the reason."""

    names: tuple[str, str, str]
    text: str
    wrong: bool


_SIGNALS = {"steal": "while the host took CPUs away", "others": "while other processes used CPUs"}
"""The signals of interference in words."""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    cells: one for each row of the table.
    drop: in which order a narrow terminal drops it, the lowest first; None for one that stays.
    right: whether it is right-aligned.
    """

    title: str
    cells: Sequence[str | Text]
    drop: int | None = None
    right: bool = True


def names(rows: Sequence[Any], variant: int | None = None, target: int | None = None) -> list[Column]:
    """The first columns of most tables: who computed each row. The others say in which order they are dropped."""
    return [
        Column("backend", [row.backend for row in rows], right=False),
        Column("target", [row.target for row in rows], target, right=False),
        Column("variant", [row.variant for row in rows], variant, right=False),
    ]


@dataclass(frozen=True)
class Section:
    """A table under its title.

    lines: rows of a comparison that have no time, below the others.
    """

    title: str
    subtitle: str
    columns: Sequence[Column]
    lines: Sequence[Line] = ()
    footnotes: Sequence[str] = ()

    @property
    def header(self) -> tuple[str, ...]:
        """The titles of the columns."""
        return tuple(column.title for column in self.columns)

    @property
    def rows(self) -> list[tuple[str | Text, ...]]:
        """The cells, row by row."""
        return list(zip(*(column.cells for column in self.columns), strict=True))


@dataclass(frozen=True)
class Remark:
    """A remark on one backend and target: why it did not run, with the fix, or a note."""

    subject: str
    text: str
    fix: str | None = None


def heading(report: Report) -> list[str]:
    """What was run, and on what machine, in a few words each."""
    machine, settings = report.machine, report.settings
    parts = [f"py-backends {report.package_version}", processor(machine)]
    if machine.get("python"):
        parts.append(f"Python {machine['python']}")
    if settings.get("threads") not in (None, machine.get("logical_cpus")):
        parts.append(count(settings["threads"], "thread"))
    if "seed" in settings:
        parts.append(f"seed {settings['seed']}")
    if report.seconds_taken is not None:
        parts.append(f"{report.seconds_taken:.0f} s")
    return [part for part in parts if part]


def disturbance(report: Report) -> str | None:
    """Which rounds were disturbed, and what became of them. None if nothing disturbed the comparison."""
    rounds = report.rounds
    if rounds is None or not rounds.disturbed:
        return None
    disturbed = ", ".join(f"{count} {_SIGNALS.get(signal, signal)}" for signal, count in rounds.disturbed.items())
    if dropped := rounds.taken - rounds.kept:
        return f"{dropped} of {count(rounds.taken, 'round')} dropped: {disturbed}."
    return (
        f"Of {count(rounds.taken, 'round')} too few were undisturbed, so all of them count: {disturbed}. Times are "
        "worse than on an idle machine, most of all for backends with several threads."
    )


def warning(report: Report) -> str | None:
    """What makes all times of a report worse, for readers who do not reach the end; None if nothing does."""
    rounds, said = report.rounds, []
    quota = report.machine.get("state", {}).get("begin", {}).get("quota")
    if quota is not None and quota < (report.settings.get("threads") or math.inf):
        said.append(f"This process may use the time of {quota:g} CPUs: with more threads, each waits for its turn.")
    if rounds and rounds.disturbed and rounds.kept == rounds.taken:
        said.append("Disturbed rounds count, since too few others are left: times are worse than on an idle machine.")
    return " ".join(said) or None


_TOO_WIDE = (
    "times the values, in the median. Give the largest error, relative to the largest element of an output: "
    "--tolerance X, in Python tolerance=X."
)
"""The end of a sentence on a bound that judges nothing."""


def verdict(report: Report) -> tuple[str, bool]:
    """One sentence on the whole, and whether it is bad news."""
    counts = Counter(row.status for row in report.rows)
    ran, failed = sum(counts[status] for status in RAN), sum(counts[status] for status in FAILURES)
    end = " Interrupted: what was finished is shown." if report.interrupted else ""
    agreed = "right as far as they were checked" if report.interrupted else "right"
    if not ran:
        return f"No row ran.{end}", True
    if failed:
        kinds = ", ".join(f"{counts[status]} {status}" for status in sorted(FAILURES) if counts[status])
        others = " Of the others nobody knows whether they are right." if report.too_wide and ran > failed else ""
        return f"{failed} of {count(ran, 'row')} that ran went wrong: {kinds}.{others}{end}", True
    if report.too_wide:
        they = (
            "1 row ran: nobody knows whether it is" if ran == 1 else f"{ran} rows ran: nobody knows which of them are"
        )
        return f"{they} right, since the bound is {report.too_wide:.2g} {_TOO_WIDE}{end}", True
    emulated = f", {counts['emulated']} of them emulated" if counts["emulated"] else ""
    agree = f"1 row ran, and is {agreed}" if ran == 1 else f"{ran} rows ran{emulated}, and all are {agreed}"
    others = f" Of the other {report.unreached} nobody knows: see why they did not run." if report.unreached else ""
    return f"{agree}.{others}{end}", report.interrupted or bool(others)


def unit(*rows: Row) -> str:
    """The unit of the rate by which rows of one kernel are compared."""
    return units.RATES[rate_of(rows)]


def speed(row: Row) -> str:
    """That rate of a timed row, with its unit."""
    return f"{units.figure(rate(row))} {unit(row)}"


def why_unsure(report: Report) -> str:
    """Why marked figures are unreliable."""
    if report.mostly_disturbed:
        return "may be far off: other processes used the CPUs in most rounds"
    return f"may be far off: its time is known to no better than ±{100 * SURE:.0f}%"


def processor(machine: Mapping[str, Any]) -> str:
    """The CPU: its name, how many cores, and its widest vectors."""
    name = str(machine.get("cpu") or "unknown CPU").replace("(R)", "").replace("(TM)", "")
    parts = [" ".join(name.split())]
    if machine.get("logical_cpus"):
        parts.append(count(machine["logical_cpus"], "core"))
    best = best_instruction_set(machine)
    return ", ".join([*parts, best] if best else parts)


def caches(machine: Mapping[str, Any]) -> str:
    """The size of each level; empty where the machine does not say."""
    sizes: Mapping[str, int] = machine.get("cache_bytes") or {}
    levels = ", ".join(f"{level} {units.cache_size(size)}" for level, size in sizes.items())
    return f"caches {levels}" if levels else ""


def best_instruction_set(machine: Mapping[str, Any]) -> str | None:
    """The usual name of a machine's widest vectors; None if the report does not say."""
    isa = set(machine.get("isa") or ())
    return next((label for flag, label in _INSTRUCTION_SETS if flag in isa), None)


_INSTRUCTION_SETS = (
    ("avx512f", "AVX-512"), ("avx2", "AVX2"), ("avx", "AVX"), ("sse2", "SSE2"), ("sve", "SVE"), ("asimd", "NEON"),
)  # fmt: skip


def count(number: int, noun: str) -> str:
    """A number and its noun: "1 thread", "2 threads"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
