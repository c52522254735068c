"""Shows the sources of a kernel side by side: the same computation in several programming models."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from itertools import pairwise

from rich.cells import cell_len
from rich.console import Console
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from py_backends.contract import Ladder
from py_backends.display.code import coloured, comment_of, rest_begins
from py_backends.kernel_text import KernelText

_FRAME, _FRAME_OF_TITLE = 4, 6
"""What a panel adds to the width of its source, and of its title: borders and spaces."""
_READABLE = 76, 56
"""The widths of lines for which two panels may stand side by side. Longer lines are wrapped. The second width is for
terminals without room for two panels of the first. From 120 columns on there is room for two of the second."""


def print_texts(texts: Sequence[KernelText], out: Console) -> None:
    """As many side by side as fit the terminal. In a pipe, one source unchanged, or several below their names."""
    if not out.is_terminal and len(texts) == 1:
        out.file.write(f"{texts[0].text.rstrip()}\n")
        return
    if not out.is_terminal:
        out.file.write("\n".join(map(_below_its_name, texts)))
        return
    for row in _rows(texts, out.width):
        grid = Table.grid()
        widths = _widths(row, out.width)
        for width in widths:
            grid.add_column(width=width)
        grid.add_row(*(_panel(text, width, out) for text, width in zip(row, widths, strict=True)))
        if any(text.includes for text in row):
            grid.add_row(*(_included(text) for text in row))
        out.print(grid)


def _below_its_name(text: KernelText) -> str:
    return f"==> {_title(text)} <==\n{text.text.rstrip()}\n"


def _included(text: KernelText) -> Text:
    """The files with the rest of a source."""
    return Text(f"it includes: {', '.join(text.includes)}" if text.includes else "", style="dim")


def print_steps(ladder: Ladder, texts: Sequence[KernelText], out: Console) -> None:
    """The source of the first rung unchanged, each other one as a unified difference from the one before.

    A line above each names the ladder and the idea. A line below names the files that it includes.
    """
    titles = [f"{ladder.name}, step {number}: {rung.idea}" for number, rung in enumerate(ladder.rungs, 1)]
    _print_title(titles[0], out)
    if out.is_terminal:
        print_texts(texts[:1], out)
    else:
        out.file.write(_below_its_name(texts[0]))
    for title, (old, new) in zip(titles[1:], pairwise(texts), strict=True):
        _print_title(title, out)
        print_difference(old, new, out)
        if new.includes:
            out.print(_included(new))


def _print_title(title: str, out: Console) -> None:
    out.print(Text(f"\n{title}\n", style="bold"))


def print_difference(old: KernelText, new: KernelText, out: Console) -> None:
    """The unified difference between two sources, in colours on a terminal, and plain in a pipe."""
    before, after = (text.text.rstrip().splitlines() for text in (old, new))
    lines = "\n".join(difflib.unified_diff(before, after, old.place, new.place, lineterm=""))
    if out.is_terminal:
        out.print(Syntax(lines, "diff", theme="ansi_dark", background_color="default", word_wrap=True))
    else:
        out.file.write(f"{lines}\n")


def _rows(texts: Sequence[KernelText], width: int) -> Iterator[list[KernelText]]:
    """Fill each row of the terminal with the next sources that fit."""
    row: list[KernelText] = []
    used = 0
    for text in texts:
        needed = _needed(text, width)
        if row and used + needed > width:
            yield row
            row, used = [], 0
        row.append(text)
        used += needed
    yield row


def _widths(row: Sequence[KernelText], width: int) -> list[int]:
    """The width of each panel: what it needs, then more for whole lines of code, then for whole comments."""
    widths = [min(_needed(text, width), width) for text in row]
    for whole in (_widest_code, _widest):
        for at, text in enumerate(row):
            widths[at] += max(0, min(whole(text) - widths[at], width - sum(widths)))
    return widths


def _needed(text: KernelText, width: int) -> int:
    """The width that a source needs on a terminal of that width. Its comments may be wrapped, and very long code."""
    wide, narrow = _READABLE
    readable = wide if 2 * (wide + _FRAME) <= width else narrow
    return max(min(_widest_code(text), readable + _FRAME), _FRAME_OF_TITLE + cell_len(_name(text)))


def _widest_code(text: KernelText) -> int:
    """The width in which no line of code is wrapped."""
    lines = [line for line in text.text.splitlines() if not line.lstrip().startswith(comment_of(text))]
    return _FRAME + max(map(cell_len, lines), default=0)


def _widest(text: KernelText) -> int:
    """The width in which nothing is wrapped."""
    return max(_FRAME + max(map(cell_len, text.text.splitlines()), default=0), _FRAME_OF_TITLE + cell_len(_title(text)))


def _panel(text: KernelText, width: int, out: Console) -> Panel:
    code = coloured(text.text.rstrip(), text.path).split("\n", allow_blank=True)
    lines = [_wrapped(line, width - _FRAME, comment_of(text), out) for line in code]
    fits = _FRAME_OF_TITLE + cell_len(_title(text)) <= width
    title = Text(_title(text) if fits else _name(text))
    return Panel(Text("\n").join(lines), title=title, title_align="left", width=width)


def _wrapped(line: Text, width: int, comment: str, out: Console) -> Text:
    """A line, and below it what does not fit into it."""
    pieces = line.wrap(out, width)
    if len(pieces) < 2:
        return line
    plain = line.plain
    indent = rest_begins(plain, comment)
    rest = len(plain) - len(plain[len(pieces[0]) :].lstrip())
    below = line[rest:].wrap(out, max(1, width - indent))
    for each in below:
        each.pad_left(indent)
    return Text("\n").join([pieces[0], *below])


def _title(text: KernelText) -> str:
    return f"{_name(text)}  {len(text.text.rstrip().splitlines())} lines"


def _name(text: KernelText) -> str:
    return f"{text.backend}  {text.place}"
