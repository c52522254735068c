"""What a report says, as words in cells. `table` prints them, and `files` writes them as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rich.text import Text

from py_backends import registry
from py_backends.harness.results import FAILURES, RAN, Control, Duration, Report, Row
from py_backends.harness.spec import Workload
from py_backends.report import units

_NOT_RUN = frozenset({"unavailable", "skipped"})
_HEADER = ("backend", "target", "variant", "kernel", "")
_DROPPED = (9, 8, 6, 5, 4, 2, 1)
"""The columns that a narrow terminal drops: all but the backend, the time and the comparison."""
_RULES = {"bitwise": "every row bit for bit", "componentwise": "every row within its error bound"}


@dataclass(frozen=True)
class Line:
    """A row without a time, and the reason."""

    backend: str
    target: str
    variant: str
    text: str
    wrong: bool


_MUCH_LONGER = 1.5
"""From this ratio on, a note says that launch and wait take time of their own."""
_SIGNALS = {"steal": "while the host took CPUs away", "others": "while other processes used CPUs"}
"""The signals of interference in words."""


@dataclass
class Section:
    """A table under its title.

    rows: each has a cell for every column of the header.
    lines: rows of a comparison that have no time, below the others.
    right: the right-aligned columns; the others are left-aligned.
    dropped: the columns that a narrow terminal drops, in this order.
    """

    title: str
    subtitle: str = ""
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str | Text]] = ()
    lines: Sequence[Line] = ()
    footnotes: Sequence[str] = ()
    right: Container[int] = ()
    dropped: Sequence[int] = ()


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
    parts.append(f"seed {settings.get('seed')}")
    if report.seconds_taken is not None:
        parts.append(f"{report.seconds_taken:.0f} s")
    return [part for part in parts if part]


def sections(report: Report) -> list[Section]:
    """A section for each kernel, dtype and requested shape with a row to show, in the order of the rows."""
    groups: dict[Workload, list[Row]] = {}
    several = len({row.threads for row in report.rows if row.threads is not None}) > 1
    for row in report.rows:
        spec = row.spec if several else row.spec.on_any_threads
        groups.setdefault(spec.workload, []).append(row)
    return [
        _section(workload, group, report.control)
        for workload, group in groups.items()
        if any(row.status not in _NOT_RUN for row in group)
    ]


def not_run(report: Report) -> list[Remark]:
    """Each backend and target that was not run, once for each reason."""
    rows = [row for row in report.rows if row.status in _NOT_RUN]
    return _remarks(report, ((row, row.reason or row.status, row.fix) for row in rows))


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
    """`disturbance` in short where disturbed rounds count, for readers who do not reach the end."""
    rounds = report.rounds
    if rounds is None or not rounds.disturbed or rounds.kept < rounds.taken:
        return None
    return "Disturbed rounds count, since too few others are left: times are worse than on an idle machine."


def notes(report: Report) -> list[Remark]:
    """The notes of rows that ran, once for each backend, target and note, and why there are no ceilings."""
    said = [(row, "; ".join(filter(None, (row.note, _told(row))))) for row in report.rows if row.status not in _NOT_RUN]
    remarks = _remarks(report, ((row, text, None) for row, text in said if text))
    if report.without_ceilings:
        remarks.append(Remark("ceilings", f"not all were measured: {report.without_ceilings}"))
    return remarks


def _told(row: Row) -> str:
    """How much of a kernel on ranks is communication, in a few words."""
    if row.communication is None or row.communicating is None:
        return ""
    most, over_bound = max(row.communication.bytes_sent, default=0), row.communication.over_bound
    if not most:
        return "its ranks send nothing"
    bound = f", {over_bound:.2f} times what some rank must" if over_bound else ""
    return f"communication takes {row.communicating:.1%} of the kernel: a rank sends {most:,} bytes{bound}"


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
        return f"{failed} of {count(ran, 'row')} that ran went wrong: {kinds}.{end}", True
    emulated = f", {counts['emulated']} of them emulated" if counts["emulated"] else ""
    agree = f"1 row ran, and is {agreed}" if ran == 1 else f"{ran} rows ran{emulated}, and all are {agreed}"
    return f"{agree}.{end}", report.interrupted


class _Timed(NamedTuple):
    """A row that has a time, and the figures by which it is judged."""

    row: Row
    kernel: Duration
    rate: float


def judged_by(kernel: str) -> tuple[str, str]:
    """The rule by which a kernel's results are checked, and the rate by which they are compared.

    Results may come from a clone with other kernels. Their rule is unknown here.
    """
    if kernel not in registry.kernel_names():
        return "", "gflops"
    problem = registry.problem(kernel)
    return problem.rule, problem.rate


def _section(workload: Workload, group: Sequence[Row], controls: Iterable[Control]) -> Section:
    rule, rate = judged_by(workload.kernel)
    baseline = next((row.versus.baseline for row in group if row.versus), None)
    header = (
        *_HEADER,
        units.RATES[rate],
        "of ceiling" if any(row.percent_of_ceiling is not None for row in group) else "",
        f"vs {baseline}" if baseline else "",
        "end to end",
        "error/bound",
    )
    # Sorts by rate, which at one shape is by time. A size of 0 leaves no work and so no rate, only time.
    in_order = sorted(_timed(group, rate), key=lambda timed: (-timed.rate, timed.kernel.median))
    rows = [timed.row for timed in in_order]
    with_time = {id(row) for row in rows}
    others = [row for row in group if row.status not in _NOT_RUN and id(row) not in with_time]
    return Section(
        workload.title,
        _RULES.get(rule, rule),
        header,
        rows=[_cells(timed) for timed in in_order],
        lines=[_line(row) for row in sorted(others, key=lambda row: row.status in FAILURES)],
        footnotes=[
            *_footnotes([row for row in rows if row.requested]),
            *_launches(rows),
            *_not_converged(rows),
            *(_in_words(control) for control in controls if any(_is_for(control, row) for row in group)),
        ],
        right=range(3, len(header)),
        dropped=_DROPPED,
    )


def _launches(rows: Iterable[Row]) -> Iterator[str]:
    """Kernels timed by their device's events whose launch takes as long as the kernel, or longer."""
    names = [
        f"{row.backend} {row.target} {units.duration(row.seconds.clock.median)}"
        for row in rows
        if row.seconds and row.seconds.kernel and row.seconds.clock
        if row.seconds.clock.median > _MUCH_LONGER * row.seconds.kernel.median
    ]
    if names:
        yield f"timed by the device's events; by the clock, with launch and wait: {', '.join(names)}"


def _not_converged(rows: Iterable[Row]) -> Iterator[str]:
    names = [f"{row.backend} {row.target}" for row in rows if row.versus and not row.versus.converged]
    if names:
        yield f"noisy: a longer --budget narrows these: {', '.join(dict.fromkeys(names))}"


def _is_for(control: Control, row: Row) -> bool:
    return row.versus is not None and (row.backend, row.kernel, row.dtype, row.shape) == (
        control.second.baseline,
        control.kernel,
        control.dtype,
        control.shape,
    )


def _in_words(control: Control) -> str:
    """What the run can tell apart, and the result of one more copy of the baseline."""
    name = control.second.baseline
    if control.band is None:
        return f"no noise band: too few rounds, or a copy of {name} failed"
    copy = units.ratio(control.second.speedup, control.second.verdict)
    return f"noise band: copies of {name} lie within ±{100 * control.band:.1f}%; one more copy of it: {copy}"


def _timed(rows: Iterable[Row], rate: str) -> Iterator[_Timed]:
    for row in rows:
        if row.status == "ok" and row.rate and row.seconds and row.seconds.kernel:
            yield _Timed(row, row.seconds.kernel, getattr(row.rate, rate))


def _footnotes(rows: Iterable[Row]) -> list[str]:
    """For each shape that was not the requested one, the rows that ran at it."""
    names: dict[str, list[str]] = {}
    for row in rows:
        star, how = ("* ", ", compared by rate") if _other_shape(row) else ("", "")
        note = f"{star}at {units.shape(row.shape.values())}{how}"
        names.setdefault(note, []).append(f"{row.backend} {row.target}")
    return [f"{note}: {', '.join(rows)}" for note, rows in names.items()]


def _cells(timed: _Timed) -> tuple[str, ...]:
    row, kernel, rate = timed
    whole = row.seconds.end_to_end if row.seconds else None
    return (
        row.backend,
        row.target,
        row.variant,
        units.duration(kernel.median),
        units.spread(kernel.median, kernel.low, kernel.high),
        units.figure(rate),
        "" if row.percent_of_ceiling is None else f"{row.percent_of_ceiling:.0f}%",
        versus(row),
        units.duration(whole.median) if whole else "",
        _error(row),
    )


def versus(row: Row) -> str:
    """How a row compares with its baseline, in words. "1" is the baseline itself.

    A star means that rates were compared.
    """
    if row.versus is None:
        return ""
    if row.backend == row.versus.baseline:
        return "1"
    ratio = units.ratio(row.versus.speedup, row.versus.verdict)
    return f"*{ratio}" if _other_shape(row) else ratio


def _other_shape(row: Row) -> bool:
    return row.versus is not None and not row.versus.same_shape


def _error(row: Row) -> str:
    if row.check is None or row.check.error_over_bound is None:
        return ""
    return "bitwise" if row.check.rule == "bitwise" else f"{row.check.error_over_bound:.2g}"


def _line(row: Row) -> Line:
    if row.status == "emulated":
        shape = units.shape(row.shape.values())
        text = f"right, checked on the CPU at {shape}; not timed: {row.reason or 'emulated'}"
    elif row.status == "ok":
        text = "right; not timed"
    else:
        text = f"{row.status}: {row.reason}" if row.reason else row.status
        if row.fix:
            text = f"{text}; {row.fix}"
    return Line(row.backend, row.target, row.variant, text, row.status in FAILURES)


def _remarks(report: Report, said: Iterable[tuple[Row, str, str | None]]) -> list[Remark]:
    """Each remark once for each backend and target. Kernels and dtypes are named only if it does not apply to all."""
    everything = {(row.kernel, row.dtype) for row in report.rows}
    where: dict[tuple[str, str, str, str | None], list[tuple[str, str]]] = {}
    for row, text, fix in said:
        where.setdefault((row.backend, row.target, text, fix), []).append((row.kernel, row.dtype))
    remarks = []
    for (backend, target, text, fix), places in where.items():
        subject = f"{backend} {target}"
        if set(places) != everything:
            subject += f" ({', '.join(_places(report, places))})"
        remarks.append(Remark(subject, text, fix))
    return remarks


def _places(report: Report, places: Iterable[tuple[str, str]]) -> list[str]:
    """Kernels, with their dtype if the report has several dtypes."""
    several = len({row.dtype for row in report.rows}) > 1
    return list(dict.fromkeys(f"{kernel} {dtype}" if several else kernel for kernel, dtype in places))


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
