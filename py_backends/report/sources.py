"""The kernels' sources for a page: highlighted, each with its measured speed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from py_backends import registry
from py_backends.harness.results import Report, Row
from py_backends.kernel_text import KernelText
from py_backends.report import layout, units
from py_backends.report.show import LANGUAGES, comment_of, rest_begins

LIGHT, DARK = "xcode", "lightbulb"
"""Styles of Pygments whose every colour has a contrast of 4.5 or more to the page's background for code."""

_FURTHEST = 16
"""Columns: the rest of a line stands no further to the right, where a phone would have no room for it."""


@dataclass(frozen=True)
class Speed:
    """What one row of one report says of a text; `threads` is None where the report does not tell."""

    report: str
    target: str
    dtype: str
    shape: str
    threads: int | None
    time: str
    rate: str
    versus: str


@dataclass(frozen=True)
class Source:
    """A kernel's text in one programming model."""

    kernel: str
    variant: str
    model: str
    path: str
    lines: int
    code: Markup
    speeds: list[Speed]
    best: float
    """Its highest rate in all reports; 0 where none was measured."""

    @property
    def title(self) -> str:
        return f"{self.model}: {self.path}, {self.lines} lines"


def sources(reports: Sequence[tuple[str, Report]]) -> list[Source]:
    """The texts of each kernel that the reports have rows of, by variant and by model; reports come with their names.

    The texts are those of this installation, which may be newer than the rows.
    """
    measured = {row.kernel for _, report in reports for row in report.rows}
    texts = (
        text
        for kernel in registry.kernel_names()
        if kernel in measured
        for backend in registry.backend_names()
        for text in registry.kernel_texts(kernel, backend).values()
    )
    return sorted((_source(text, reports) for text in texts), key=lambda source: (source.kernel, source.variant))


def style_sheet(style: str) -> str:
    """CSS that colours what stands in an element of the class `code`."""
    from pygments.formatters import HtmlFormatter

    return str(HtmlFormatter(style=style).get_style_defs(".code"))


def _source(text: KernelText, reports: Iterable[tuple[str, Report]]) -> Source:
    _, rate = layout.judged_by(text.kernel)
    rows = [(name, row) for name, report in reports for row in report.rows if _is_of(row, text)]
    rates = [getattr(row.rate, rate) for _, row in rows if row.rate]
    return Source(
        text.kernel,
        text.variant,
        text.backend,
        text.place,
        len(text.text.rstrip().splitlines()),
        highlighted(text),
        list(_speeds(rows, rate)),
        max(rates, default=0.0),
    )


def _is_of(row: Row, text: KernelText) -> bool:
    return (row.kernel, row.variant, row.backend) == (text.kernel, text.variant, text.backend)


def _speeds(rows: Iterable[tuple[str, Row]], rate: str) -> Iterator[Speed]:
    for name, row in rows:
        at = name, row.target, row.dtype, units.shape(row.shape.values()), row.threads
        if row.status == "ok" and row.rate and row.seconds and row.seconds.kernel:
            time = units.duration(row.seconds.kernel.median)
            said = f"{units.figure(getattr(row.rate, rate))} {units.RATES[rate]}"
            yield Speed(*at, time, said, layout.versus(row))
        else:
            yield Speed(*at, row.status, "", "")


def highlighted(text: KernelText, marked: Collection[int] = ()) -> Markup:
    """Each line an element of its own, which tells where its rest stands if the page wraps it.

    marked: the lines, counted from 0, that are to be told from the others.
    """
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name

    lexer = get_lexer_by_name(LANGUAGES.get(text.path.suffix, "text"), stripnl=False, ensurenl=False)
    plain = text.text.rstrip()
    # Pygments escapes what it highlights, and ends its elements with the line.
    lines = highlight(plain, lexer, HtmlFormatter(nowrap=True)).removesuffix("\n").split("\n")
    begins = (min(_FURTHEST, rest_begins(line, comment_of(text))) for line in plain.split("\n"))
    made = [
        f'<span class="{"line changed" if number in marked else "line"}" style="--rest:{at}ch">{line}'
        for number, (at, line) in enumerate(zip(begins, lines, strict=True))
    ]
    return Markup("\n</span>".join(made) + "</span>")  # noqa: S704  # see above
