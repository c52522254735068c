"""The kernels' sources for a page: highlighted, each with its measured speed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from py_backends import registry
from py_backends.display import comparison, layout, units
from py_backends.display.code import LANGUAGES, comment_of, rest_begins
from py_backends.kernel_text import KernelText
from py_backends.results.ratios import rate
from py_backends.results.report import Report, Row

LIGHT, DARK = "xcode", "lightbulb"
"""Styles of Pygments. Each of their colours has a contrast of at least 4.5 to the page's background for code."""

_FURTHEST = 16
"""The most columns by which the rest of a line is indented, since a phone has no room for more."""


@dataclass(frozen=True)
class Speed:
    """What one row of one report says about a source. `threads` is None if the report does not tell."""

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
    """A kernel's source in one programming model."""

    kernel: str
    variant: str
    model: str
    path: str
    lines: int
    code: Markup
    speeds: list[Speed]
    best: float
    """Its highest rate in all reports, or 0 if none was measured."""

    @property
    def title(self) -> str:
        return f"{self.model}: {self.path}, {self.lines} lines"


def sources(reports: Sequence[tuple[str, Report]]) -> list[Source]:
    """The sources of each kernel in the reports, by variant and by model. Reports come with their names.

    The sources are those of this installation, which may be newer than the rows.
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
    """CSS that colours the contents of elements of the class `code`."""
    from pygments.formatters import HtmlFormatter

    return str(HtmlFormatter(style=style).get_style_defs(".code"))


def _source(text: KernelText, reports: Iterable[tuple[str, Report]]) -> Source:
    rows = [(name, row) for name, report in reports for row in report.rows if _is_of(row, text)]
    return Source(
        text.kernel,
        text.variant,
        text.backend,
        text.place,
        len(text.text.rstrip().splitlines()),
        highlighted(text),
        [_speed(name, row) for name, row in rows],
        max((rate(row) for _, row in rows), default=0.0),
    )


def _is_of(row: Row, text: KernelText) -> bool:
    return (row.kernel, row.variant, row.backend) == (text.kernel, text.variant, text.backend)


def _speed(report: str, row: Row) -> Speed:
    at = report, row.target, row.dtype, units.shape(row.shape.values()), row.threads
    if row.rate is None or row.timed is None:
        return Speed(*at, row.status, "", "")
    return Speed(*at, units.duration(row.timed.median), layout.speed(row), comparison.versus(row))


def highlighted(text: KernelText, marked: Collection[int] = ()) -> Markup:
    """Each line as an element of its own, which says where its rest begins if the page wraps it.

    marked: the lines, counted from 0, to be highlighted.
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
