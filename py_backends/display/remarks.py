"""What stands below the tables: who was not run and why, and the notes on rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from py_backends.display import units
from py_backends.display.layout import NOT_RUN, Remark
from py_backends.results import roofline
from py_backends.results.grouping import grouped
from py_backends.results.report import FAILURES, Report, Row


def not_run(report: Report) -> list[Remark]:
    """Each backend and target that was not run, once for each reason."""
    rows = [row for row in report.rows if row.status in NOT_RUN]
    return _by_subject(report, ((row, row.reason or row.status, row.fix) for row in rows))


def notes(report: Report) -> list[Remark]:
    """The notes of rows that ran, and why there are no ceilings.

    A sentence on several backends or targets stands once, with their names. All others stand by backend and target.
    """
    ran = [row for row in report.rows if row.status not in NOT_RUN]
    about = grouped((sentence, row) for row in ran for sentence in _sentences(row))
    shared = {sentence: rows for sentence, rows in about.items() if len({(r.backend, r.target) for r in rows}) > 1}
    own = ((row, [each for each in _sentences(row) if each not in shared]) for row in ran)
    remarks = [_of_several(report, sentence, rows) for sentence, rows in shared.items()]
    remarks += _by_subject(report, ((row, "; ".join(said), None) for row, said in own if said))
    if report.without_ceilings:
        remarks.append(Remark("ceilings", f"not all were measured: {report.without_ceilings}"))
    return remarks


def without_roof(report: Report) -> Iterator[Remark]:
    """The rows that ran and have no roof: without a ceiling, without a time, or wrong."""
    said = [(row, reason) for row, reason in roofline.without_roof(report)]
    for row in report.rows:
        if row.status == "emulated":
            said.append((row, f"right, never timed: {row.reason or 'emulated'}"))
        elif row.status in FAILURES:
            said.append((row, f"{row.status}: {row.reason}" if row.reason else row.status))
    kernels = grouped(
        ((f"{row.backend} {row.target} {row.variant}", words), f"{row.kernel} {row.dtype}") for row, words in said
    )
    for (name, words), places in kernels.items():
        yield Remark(f"{name} ({', '.join(dict.fromkeys(places))})", words)


def at_smaller_shapes(named: Iterable[tuple[Row, str]], how: str = "") -> list[str]:
    """A footnote for each shape at which rows ran that were requested at a larger one. A star marks their cells.

    named: rows with the names that footnotes use.
    how: what else to know of these rows, as the end of a sentence.
    """
    shapes = grouped((units.shape(row.shape.values()), name) for row, name in named if row.requested)
    return [f"* at {shape}{how}: {', '.join(names)}" for shape, names in shapes.items()]


def _sentences(row: Row) -> list[str]:
    return list(dict.fromkeys([*(row.note.split("; ") if row.note else []), *_communication(row)]))


def _communication(row: Row) -> Iterator[str]:
    """How much of a kernel on ranks is communication, in a few words."""
    if row.communication is None or row.communicating is None:
        return
    most, over_bound = max(row.communication.bytes_sent, default=0), row.communication.over_bound
    if not most:
        yield "its ranks send nothing"
        return
    bound = f", {over_bound:.2f} times what some rank must" if over_bound else ""
    yield f"communication takes {row.communicating:.1%} of the kernel: a rank sends {most:,} bytes{bound}"


def _of_several(report: Report, sentence: str, rows: Sequence[Row]) -> Remark:
    """A sentence on rows of several backends or targets."""
    about = {id(row) for row in rows}
    if all(id(row) in about for row in report.rows if row.seconds and row.seconds.kernel):
        return Remark("all timed rows", sentence)
    together = grouped(((row.backend, row.target), row) for row in rows)
    return Remark("several", f"{sentence}: {', '.join(_subject(report, each) for each in together.values())}")


def _by_subject(report: Report, said: Iterable[tuple[Row, str, str | None]]) -> list[Remark]:
    """Each remark once for each backend and target."""
    where = grouped(((row.backend, row.target, text, fix), row) for row, text, fix in said)
    return [Remark(_subject(report, rows), text, fix) for (_, _, text, fix), rows in where.items()]


def _subject(report: Report, rows: Sequence[Row]) -> str:
    """Rows of one backend and target in a few words.

    Variants are named only if others ran, and kernels and dtypes only if a remark does not apply to all.
    """
    backend, target = rows[0].backend, rows[0].target
    its = [row for row in report.rows if (row.backend, row.target) == (backend, target)]
    variants = list(dict.fromkeys(row.variant for row in rows))
    places = dict.fromkeys((row.kernel, row.dtype) for row in rows)
    others = {row.variant for row in its if (row.kernel, row.dtype) in places} - set(variants)
    subject = " ".join([backend, target, ", ".join(variants)] if others else [backend, target])
    if set(places) == {(row.kernel, row.dtype) for row in report.rows}:
        return subject
    several = len({row.dtype for row in report.rows}) > 1
    names = dict.fromkeys(f"{kernel} {dtype}" if several else kernel for kernel, dtype in places)
    return f"{subject} ({', '.join(names)})"
