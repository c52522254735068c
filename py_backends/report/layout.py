"""What a report says, as words in cells. `table` prints them, and `files` writes them as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from py_backends import registry
from py_backends.report import units
from py_backends.results.grouping import grouped
from py_backends.results.report import FAILURES, RAN, SURE, Control, Duration, Report, Row
from py_backends.results.spec import Workload

NOT_RUN = frozenset({"unavailable", "skipped"})
"""The statuses of rows that were not run."""
UNSURE = "~"
"""The mark before a figure that may be far off."""
_HEADER = ("backend", "target", "variant", "kernel", "")
_DROPPED = (9, 8, 6, 5, 4, 2, 1)
"""The columns that a narrow terminal drops: all but the backend, the time and the comparison."""
_RULES = {"bitwise": "every row bit for bit", "componentwise": "every row within its error bound"}


@dataclass(frozen=True)
class Line:
    """A row without a time, by backend, target and variant, and the reason."""

    names: tuple[str, str, str]
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
    several = len({row.threads for row in report.rows if row.threads is not None}) > 1
    specs = (row.spec if several else row.spec.on_any_threads for row in report.rows)
    groups = grouped((spec.workload, row) for spec, row in zip(specs, report.rows, strict=True))
    return [
        _section(workload, group, report)
        for workload, group in groups.items()
        if any(row.status not in NOT_RUN for row in group)
    ]


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


def judged_by(kernel: str) -> tuple[str, str]:
    """The rule by which a kernel's results are checked, and the rate by which they are compared.

    Results may come from a clone with other kernels. Their rule is unknown here.
    """
    if kernel not in registry.kernel_names():
        return "", "gflops"
    problem = registry.problem(kernel)
    return problem.rule, problem.rate


def rate(row: Row) -> float:
    """The rate by which rows of its kernel are compared; 0 without one."""
    return float(getattr(row.rate, judged_by(row.kernel)[1], 0.0))


def unit(kernel: str) -> str:
    """The unit of that rate."""
    return units.RATES[judged_by(kernel)[1]]


def _section(workload: Workload, group: Sequence[Row], report: Report) -> Section:
    name = _namer(group)
    rule, _ = judged_by(workload.kernel)
    baseline = next((row.versus.baseline for row in group if row.versus), None)
    header = (
        *_HEADER,
        unit(workload.kernel),
        "of ceiling" if any(row.percent_of_ceiling is not None for row in group) else "",
        f"vs {baseline}" if baseline else "",
        "end to end",
        "error/bound",
    )
    # Sorts by rate, which at one shape is by time. A size of 0 leaves no work and so no rate, only time.
    timed = [(row, row.timed) for row in group if row.rate and row.timed]
    timed.sort(key=lambda pair: (-rate(pair[0]), pair[1].median))
    rows = [row for row, _ in timed]
    with_time = {id(row) for row in rows}
    others = [row for row in group if row.status not in NOT_RUN and id(row) not in with_time]
    return Section(
        workload.title,
        _RULES.get(rule, rule),
        header,
        rows=[_cells(row, kernel, report) for row, kernel in timed],
        lines=[_line(row) for row in sorted(others, key=lambda row: row.status in FAILURES)],
        footnotes=[
            *_alone(rows, group),
            *_other_shapes(rows, name),
            *_launches(rows, name),
            *_not_converged(rows, name),
            *_far_off(rows, report),
            *(_in_words(control) for control in report.control if any(_is_for(control, row) for row in group)),
        ],
        right=range(3, len(header)),
        dropped=_DROPPED,
    )


def _namer(rows: Iterable[Row]) -> Callable[[Row], str]:
    """Names rows by backend and target, and by variant where these have several of them."""
    variants = grouped(((row.backend, row.target), row.variant) for row in rows)

    def name(row: Row) -> str:
        several = len(set(variants[row.backend, row.target])) > 1
        return " ".join([row.backend, row.target, row.variant][: 3 if several else 2])

    return name


def _launches(rows: Iterable[Row], name: Callable[[Row], str]) -> Iterator[str]:
    """Kernels timed by their device's events, or by their ranks, whose launch and wait take time of their own."""
    clocks: dict[str, list[str]] = {}
    for row in rows:
        if row.seconds is None or row.seconds.kernel is None or row.seconds.clock is None:
            continue
        if row.seconds.clock.median > _MUCH_LONGER * row.seconds.kernel.median:
            timed_by = "the device's events" if row.communication is None else "the clocks of the ranks"
            clocks.setdefault(timed_by, []).append(f"{name(row)} {units.duration(row.seconds.clock.median)}")
    for timed_by, names in clocks.items():
        yield f"timed by {timed_by}; by the host's clock, with launch and wait: {', '.join(names)}"


def _not_converged(rows: Iterable[Row], name: Callable[[Row], str]) -> Iterator[str]:
    names = [name(row) for row in rows if row.versus and not row.versus.converged]
    if names:
        yield f"noisy: a longer --budget narrows these: {', '.join(dict.fromkeys(names))}"


def _far_off(rows: Iterable[Row], report: Report) -> Iterator[str]:
    """The legend of per cents that may be far off."""
    if any(row.percent_of_ceiling is not None and report.is_unsure_of(row) for row in rows):
        yield f"{UNSURE} {why_unsure(report)}"


def why_unsure(report: Report) -> str:
    """Why marked figures are unreliable."""
    if report.mostly_disturbed:
        return "may be far off: other processes used the CPUs in most rounds"
    return f"may be far off: its time is known to no better than ±{100 * SURE:.0f}%"


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


def _alone(rows: Sequence[Row], group: Sequence[Row]) -> Iterator[str]:
    """Says why a row stands alone, if others were requested and none of them ran."""
    if len(rows) == 1 < len(group) and all(row is rows[0] or row.status in NOT_RUN for row in group):
        yield "nothing else ran at this shape: Not run says why"


def _other_shapes(rows: Sequence[Row], name: Callable[[Row], str]) -> Iterator[str]:
    """For each shape that was not the requested one, the rows that ran at it, and what a star means."""
    short = next((row for row in rows if row.requested and row.versus and row.backend == row.versus.baseline), None)

    def note(row: Row) -> str:
        at = f"at {units.shape(row.shape.values())}"
        return f"* {at}, compared by rate" if _other_shape(row) and not short else at

    for at, names in grouped((note(row), name(row)) for row in rows if row.requested).items():
        yield f"{at}: {', '.join(names)}"
    if short and any(map(_other_shape, rows)):
        yield f"* compared by rate: {short.backend} ran at {units.shape(short.shape.values())}"


def _cells(row: Row, kernel: Duration, report: Report) -> tuple[str, ...]:
    whole = row.seconds.end_to_end if row.seconds else None
    return (
        row.backend,
        row.target,
        row.variant,
        units.duration(kernel.median),
        units.spread(kernel.median, kernel.low, kernel.high),
        units.figure(rate(row)),
        _of_ceiling(row, report),
        versus(row),
        units.duration(whole.median) if whole else "",
        _error(row),
    )


def _of_ceiling(row: Row, report: Report) -> str:
    if row.percent_of_ceiling is None:
        return ""
    return f"{UNSURE if report.is_unsure_of(row) else ''}{row.percent_of_ceiling:.0f}%"


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
    return Line(row.spec.implementation, text, row.status in FAILURES)


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
