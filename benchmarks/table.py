"""Prints what was measured: a line for each goal, and below them the rates at each size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from benchmarks.contenders import Conditions, Contender, Goal, Size
from benchmarks.figures import Figure, NotMeasured, Rates
from benchmarks.measure import Reports
from py_backends import registry
from py_backends.display import layout, units
from py_backends.display.console import print_parts, print_remarks, print_section
from py_backends.display.layout import Column, Remark, Section
from py_backends.results.grouping import grouped
from py_backends.results.report import Report
from py_backends.results.statistics import Median, median

_UNITS = {"gflops": "GFLOP/s", "gbytes_per_second": "GB/s"}
_LONGEST_REASON = 200


def print_all(report: Report, figures: Sequence[Figure], reports: Reports, out: Console) -> None:
    """What was run on what; the goals; what is missing; the rates; and a verdict in one line."""
    print_parts([Text(part, style="bold") for part in layout.heading(report)], out)
    for section in goal_sections(figures):
        out.print()
        print_section(section, out)
    print_remarks("Not measured", missing(figures), out)
    for section in size_sections(figures, reports):
        out.print()
        print_section(section, out)
    out.print()
    for disturbed in dict.fromkeys(filter(None, map(layout.disturbance, reports.values()))):
        out.print(Text(disturbed, style="yellow"))
    verdicts = [each.reached for each in figures if each.value is not None]
    absent = len(figures) - len(verdicts)
    out.print(f"{verdicts.count(True)} reached, {verdicts.count(False)} not reached, {absent} not measured.")


def goal_sections(figures: Sequence[Figure]) -> Iterator[Section]:
    """A line for each goal: what is asked, what was reached with its interval, and whether that is enough."""
    for kernel, dtype in dict.fromkeys(each.goal.conditions[:2] for each in figures):
        of_kernel = [each for each in figures if each.goal.conditions[:2] == (kernel, dtype)]
        yield Section(f"{kernel} {dtype}", "", _columns(of_kernel))


def missing(figures: Sequence[Figure]) -> list[Remark]:
    """What was not measured, why, and what would change that: a line for each who and why."""
    lacking = grouped(
        ((each.goal.subject, each.reason), " ".join(each.goal.conditions[:2])) for each in figures if each.reason
    )
    return [
        Remark(f"{subject} ({', '.join(dict.fromkeys(places))})", _shortened(reason.text), reason.fix)
        for (subject, reason), places in lacking.items()
    ]


def _shortened(text: str) -> str:
    """JSON has the whole of it."""
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}..."


def size_sections(figures: Sequence[Figure], reports: Reports) -> Iterator[Section]:
    """Of every comparison the median rates by size, and the median ratios of the goals that have several sizes."""
    for conditions, report in reports.items():
        goals = [each.goal for each in figures if each.goal.conditions == conditions and each.goal.summary == "mean"]
        rates = Rates(conditions, reports)
        entries = {entry for goal in goals for entry in goal.entries() if rates.why_not(entry) is None}
        contenders = sorted({entry.contender for entry in entries}, key=_libraries_first)
        rounds = f"medians of {report.rounds.kept if report.rounds else 0} rounds"
        lines = [
            (who.label, {entry.size: rates.median(entry) for entry in entries if entry.contender == who})
            for who in contenders
        ]
        yield from _by_size(f"{_title(conditions)}  {_UNITS[registry.problem(conditions.kernel).rate]}", rounds, lines)
        several = [goal for goal in goals if len(goal.comparisons) > 1]
        lines = [(f"{goal.subject} {goal.what}", _ratios(goal, rates)) for goal in several]
        yield from _by_size(f"{_title(conditions)}  ratios of rates", rounds, lines)


def _by_size(title: str, subtitle: str, lines: Sequence[tuple[str, dict[Size, float]]]) -> Iterator[Section]:
    """A line for each of the names, and a column for each size; nothing where there is no figure."""
    sizes = sorted({size for _, line in lines for size in line}, key=lambda n: n if isinstance(n, tuple) else (n,))
    rows = [(who, line) for who, line in lines if line]
    named = ["x".join(map(str, n)) if isinstance(n, tuple) else str(n) for n in sizes]
    figures = [[units.figure(line[n]) if n in line else "" for _, line in rows] for n in sizes]
    if rows:
        of_sizes = [Column(name, cells, at) for at, (name, cells) in enumerate(zip(named, figures, strict=True))]
        yield Section(title, subtitle, [Column("n", [who for who, _ in rows], right=False), *of_sizes])


def _title(conditions: Conditions) -> str:
    threads = [] if conditions.threads is None else [layout.count(conditions.threads, "thread")]
    held = [f"{name}={value}" for name, value in conditions.environment]
    skewed = [f"{conditions.skew:.0%} in one bin"] if conditions.skew else []
    return "  ".join([f"{conditions.kernel} {conditions.dtype}", *threads, *held, *skewed])


def _libraries_first(contender: Contender) -> tuple[bool, str]:
    return contender.backend not in {"numpy", "mkl", "onednn", "cublas"}, contender.label


def _ratios(goal: Goal, rates: Rates) -> dict[Size, float]:
    """The median ratio at each size at which both were measured."""
    found: dict[Size, float] = {}
    for comparison in goal.comparisons:
        try:
            found[comparison.subject.size] = median(list(rates.ratios(comparison).values())).value
        except NotMeasured:
            continue
    return found


def _columns(figures: Sequence[Figure]) -> list[Column]:
    goals, values = [each.goal for each in figures], [each.value for each in figures]
    return [
        Column("who", [goal.subject for goal in goals], right=False),
        Column("ratio", [goal.what for goal in goals], right=False),
        Column("where", [goal.where for goal in goals], right=False),
        Column("asked", list(map(_asked, goals))),
        Column("figure", ["" if value is None else f"{value.value:.3f}" for value in values]),
        Column("95% interval", ["" if value is None else _interval(value) for value in values]),
        Column("", list(map(_verdict, figures)), right=False),
        Column("", [each.note or "" if each.value else "" for each in figures], 1, right=False),
    ]


def _asked(goal: Goal) -> str:
    return "stated" if goal.asked is None else f"{'≤' if goal.at_most else '≥'} {goal.asked:.2f}"


def _verdict(each: Figure) -> str | Text:
    if each.value is None:
        return "not measured"
    return {True: Text("reached", "green"), False: Text("not reached", "yellow"), None: Text("")}[each.reached]


def _interval(value: Median) -> str:
    return "" if value.low is None or value.high is None else f"{value.low:.3f} to {value.high:.3f}"
