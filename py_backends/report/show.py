"""Shows the texts of a kernel side by side: the same computation in several programming models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from py_backends._contract import KernelText

LANGUAGES = {".py": "python", ".cpp": "cpp", ".cu": "cuda", ".cl": "c"}
"""What Pygments calls the language of a file."""
_FRAME = 4
"""What a panel adds to the width of its text: two borders, two spaces."""
_READABLE = 76
"""A panel this wide may stand beside another, and the few lines that are longer are wrapped."""


def print_texts(texts: Sequence[KernelText], out: Console) -> None:
    """As many beside one another as fit the terminal; in a pipe one below the other, as they are."""
    if not out.is_terminal:
        for number, text in enumerate(texts):
            out.file.write(("\n" if number else "") + f"==> {_title(text)} <==\n{text.text.rstrip()}\n")
        return
    for row in _rows(texts, out.width):
        grid = Table.grid()
        left = out.width
        for beside, text in zip(range(len(row) - 1, -1, -1), row, strict=True):
            # What the others do not need is this one's, as far as it can use it.
            width = min(_widest(text), left - sum(map(_width, row[len(row) - beside :])))
            grid.add_column(width=width)
            left -= width
        grid.add_row(*map(_panel, row))
        out.print(grid)


def _rows(texts: Sequence[KernelText], width: int) -> Iterator[list[KernelText]]:
    """Fill each row of the terminal with the next texts that fit."""
    row: list[KernelText] = []
    used = 0
    for text in texts:
        if row and used + _width(text) > width:
            yield row
            row, used = [], 0
        row.append(text)
        used += _width(text)
    yield row


def _width(text: KernelText) -> int:
    """The columns that a text needs."""
    return max(min(_widest(text), _READABLE + _FRAME), _FRAME + cell_len(f"  {_title(text)}  "))


def _widest(text: KernelText) -> int:
    """The columns that a text can use."""
    return _FRAME + max(map(cell_len, [*text.text.splitlines(), f"  {_title(text)}  "]))


def _panel(text: KernelText) -> Panel:
    code = Syntax(
        text.text.rstrip(),
        LANGUAGES.get(text.path.suffix, "text"),
        theme="ansi_dark",
        background_color="default",
        word_wrap=True,
    )
    return Panel(code, title=Text(_title(text)), title_align="left")


def _title(text: KernelText) -> str:
    lines = len(text.text.rstrip().splitlines())
    return f"{text.backend}  {text.place}  {lines} lines"
