"""The table of a comparison, as words in cells: it is printed, written as Markdown, and shown on pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from py_backends.display import layout, units
from py_backends.display.layout import NOT_RUN, UNSURE, Column, Line, Section, unit, why_unsure
from py_backends.results.grouping import grouped
from py_backends.results.ratios import rate
from py_backends.results.report import FAILURES, Control, Duration, Report, Row, Speedup
from py_backends.results.spec import Workload

_RULES = {"bitwise": "bit for bit", "componentwise": "within its error bound"}
_MUCH_LONGER = 1.5
"""From this ratio on, a note says that launch and wait take time of their own."""


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


def _section(workload: Workload, group: Sequence[Row], report: Report) -> Section:
    name = _namer(group)
    # Sorts by rate, which at one shape is by time. A size of 0 leaves no work and so no rate, only time.
    timed = [(row, row.timed) for row in group if row.rate and row.timed]
    timed.sort(key=lambda pair: (-rate(pair[0]), pair[1].median))
    rows = [row for row, _ in timed]
    with_time = {id(row) for row in rows}
    others = [row for row in group if row.status not in NOT_RUN and id(row) not in with_time]
    return Section(
        workload.title,
        _judged_by(group),
        _columns(rows, [kernel for _, kernel in timed], group, report),
        lines=[_line(row) for row in sorted(others, key=lambda row: row.status in FAILURES)],
        footnotes=[
            *_alone(rows, group),
            *_other_shapes(rows, name),
            *_launches(rows, name),
            *_not_converged(rows, name),
            *_far_off(rows, report),
            *_where_arrays_lie(rows, report),
            *(_of_control(control) for control in report.control if any(_is_for(control, row) for row in group)),
        ],
    )


def _judged_by(group: Sequence[Row]) -> str:
    """What every row holds to; where one failed, what a right one would."""
    rule = next((row.work.rule for row in group if row.work), "")
    if rule not in _RULES:
        return rule
    failed = any(row.status in FAILURES for row in group)
    return f"{'a right row agrees' if failed else 'every row'} {_RULES[rule]}"


def _columns(rows: Sequence[Row], kernels: Sequence[Duration], group: Sequence[Row], report: Report) -> list[Column]:
    """A narrow terminal keeps the backend, the time and the comparison."""
    baseline = next((row.versus.baseline for row in group if row.versus), None)
    has_ceiling = any(row.percent_of_ceiling is not None for row in group)
    return [
        *layout.names(rows, target=7, variant=6),
        Column("kernel", [units.duration(kernel.median) for kernel in kernels]),
        Column("", [units.spread(kernel.median, kernel.low, kernel.high) for kernel in kernels], 5),
        Column(unit(*group), [units.figure(rate(row)) for row in rows], 4),
        Column("of ceiling" if has_ceiling else "", [_of_ceiling(row, report) for row in rows], 3),
        Column(f"vs {baseline}" if baseline else "", [versus(row) for row in rows]),
        Column("end to end", [_end_to_end(row) for row in rows], 2),
        Column("error/bound", [_error(row) for row in rows], 1),
    ]


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
        yield f"undecided; a longer --budget may tell: {', '.join(dict.fromkeys(names))}"


def _far_off(rows: Iterable[Row], report: Report) -> Iterator[str]:
    """The legend of per cents that may be far off."""
    if any(row.percent_of_ceiling is not None and report.is_unsure_of(row) for row in rows):
        yield f"{UNSURE} {why_unsure(report)}"


def _where_arrays_lie(rows: Sequence[Row], report: Report) -> Iterator[str]:
    """How much the arrays take beside the caches: near the size of one of them, times are unsteady."""
    caches = layout.caches(report.machine)
    taken = max((row.work.bytes for row in rows if row.work), default=None)
    if caches and taken is not None:
        yield f"arrays take {units.size(taken)}; {caches}"


def _is_for(control: Control, row: Row) -> bool:
    return row.versus is not None and (row.backend, row.kernel, row.dtype, row.shape) == (
        control.second.baseline,
        control.kernel,
        control.dtype,
        control.shape,
    )


def _of_control(control: Control) -> str:
    """What this run says of equal rows."""
    first, second = _in_words(control.first), _in_words(control.second)
    return f"two copies of {control.first.baseline}, judged like the rows: {first}; {second}"


def _in_words(versus: Speedup) -> str:
    return units.ratio(versus.speedup, versus.verdict, versus.low, versus.high)


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
    ratio = _in_words(row.versus)
    return f"*{ratio}" if _other_shape(row) else ratio


def _other_shape(row: Row) -> bool:
    return row.versus is not None and not row.versus.same_shape


def _end_to_end(row: Row) -> str:
    return units.duration(row.seconds.end_to_end.median) if row.seconds and row.seconds.end_to_end else ""


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
