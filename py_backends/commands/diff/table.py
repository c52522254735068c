"""Prints what distinguishes two runs, on a terminal or as plain text into a pipe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.text import Text

from py_backends.commands.diff.analysis import Difference, Pair, Setting
from py_backends.display import layout, units
from py_backends.display.console import print_parts, print_remarks, print_section
from py_backends.display.layout import Column, Remark, Section, count
from py_backends.results.grouping import grouped
from py_backends.results.report import Row
from py_backends.results.verdicts import FASTER, SAME, SLOWER, UNCLEAR, WIDEST_SAME

_VERDICTS = {SLOWER: "red", FASTER: "green", UNCLEAR: "yellow", SAME: ""}
"""Verdicts in the order in which readers look for them, with their colours."""
_NOT_JUDGED = {
    "speedup": "",
    "rate": "* by rate alone, ",
    "time": "* by time alone, which drifts with the machine: ",
    None: "not comparable: ",
}
"""How a row without a verdict was compared. It stands before the reason."""


def print_difference(difference: Difference, out: Console) -> None:
    """What differs around the runs, a table for each kernel, dtype and shape, new and lost rows, and one sentence."""
    old, new = difference.old, difference.new
    runs = [f"old: {old.created}, py-backends {old.package_version}", f"new: {new.created}, {new.package_version}"]
    print_parts([Text("py-backends diff", style="bold"), *map(Text, runs)], out)
    if difference.one_run:
        out.print(Text("Both files hold the same run."))
    if difference.other_cpu:
        out.print(Text("The CPU differs: a slower row below is no regression of the code.", style="yellow"))
    print_remarks("Settings that differ", list(_settings(difference.settings)), out)
    for group in grouped((_place(pair.new), pair) for pair in difference.pairs if pair.verdict is not None).values():
        out.print()
        print_section(_section(group), out)
    print_remarks("Status changed", [_changed_status(p) for p in difference.pairs if p.old.status != p.new.status], out)
    print_remarks("Only in the new run", [_alone(row) for row in difference.came], out)
    print_remarks("Only in the old run", [_alone(row) for row in difference.went], out)
    text = summary(difference)
    out.print()
    out.print(Text(text, style="bold red" if difference.is_worse() else "bold"))


def summary(difference: Difference) -> str:
    """A sentence on the rows in both runs, one on what was lost, and one if the runs say nothing."""
    pairs = difference.pairs
    counts = Counter(pair.verdict or "not timed in both" for pair in pairs)
    parts = [f"{counts[verdict]} {verdict}" for verdict in (*_VERDICTS, "not timed in both") if counts[verdict]]
    text = f"{count(len(pairs), 'row')} in both runs: {', '.join(parts)}."
    if lost := sum(pair.lost for pair in pairs) + len(difference.vanished):
        return f"{text} {count(lost, 'row')} lost."
    return f"{text}\nNothing could be judged: these runs guard nothing." if difference.judged_nothing() else text


def _settings(settings: Sequence[Setting]) -> Iterator[Remark]:
    """A line for each setting, with all its parts."""
    for name in dict.fromkeys(setting.name for setting in settings):
        said = [
            f"{part} {old or 'not there'} → {new or 'not there'}".strip()
            for other, part, old, new in settings
            if other == name
        ]
        yield Remark(name, ", ".join(said))


def _place(row: Row) -> str:
    return row.spec.on_any_threads.workload.title


def _section(group: Sequence[Pair]) -> Section:
    order = list(_VERDICTS)
    ordered = sorted(group, key=lambda pair: (pair.reason is not None, order.index(pair.verdict or "")))
    return Section(
        _place(group[0].new),
        f"same: within {100 * WIDEST_SAME:.0f}%",
        _columns(ordered),
        footnotes=_footnotes(ordered),
    )


def _columns(pairs: Sequence[Pair]) -> list[Column]:
    """A narrow terminal keeps the backend, the change and the verdict."""
    changes = [(pair.change, pair.kind) for pair in pairs]
    spreads = [units.spread(change.median, change.low, change.high) if change else "" for change, _ in changes]
    verdicts = [Text(pair.verdict or "", style=_VERDICTS[pair.verdict or UNCLEAR]) for pair in pairs]
    return [
        *layout.names([pair.new for pair in pairs], variant=4, target=5),
        Column("kernel", list(map(_kernels, pairs)), 3),
        Column("speed-up", list(map(_speedups, pairs)), 1),
        Column("change", [_change(change.median, kind) if change else "" for change, kind in changes]),
        Column("", spreads, 2),
        Column("verdict", verdicts, right=False),
    ]


def _kernels(pair: Pair) -> str:
    rows = pair.old, pair.new
    return _before_and_now(
        units.duration(row.seconds.kernel.median) for row in rows if row.seconds and row.seconds.kernel
    )


def _speedups(pair: Pair) -> str:
    return _before_and_now(units.figure(row.versus.speedup) for row in (pair.old, pair.new) if row.versus)


def _before_and_now(figures: Iterable[str]) -> str:
    """The figures of both runs. Empty if a run has none."""
    both = list(figures)
    return " → ".join(both) if len(both) == 2 else ""


def _change(ratio: float, kind: str | None) -> str:
    """Three significant digits on both sides of 1. A star means that no speed-ups at one shape were compared."""
    digits = f"{ratio:.3f}" if 0.0995 <= ratio < 0.9995 else units.figure(ratio)
    return digits if kind == "speedup" else f"*{digits}"


def _footnotes(pairs: Sequence[Pair]) -> list[str]:
    """For each reason not to judge, the rows that it applies to."""
    names = grouped(
        (_NOT_JUDGED[pair.kind if pair.change else None] + pair.reason, f"{pair.new.backend} {pair.new.target}")
        for pair in pairs
        if pair.reason
    )
    return [f"{reason}: {', '.join(rows)}" for reason, rows in names.items()]


def _changed_status(pair: Pair) -> Remark:
    text = f"{pair.old.status} → {pair.new.status}"
    return Remark(_subject(pair.new), f"{text}: {pair.new.reason}" if pair.new.reason else text, pair.new.fix)


def _alone(row: Row) -> Remark:
    return Remark(_subject(row), f"{row.status}: {row.reason}" if row.reason else row.status)


def _subject(row: Row) -> str:
    return f"{row.backend} {row.target} {row.variant} ({_place(row)})"
