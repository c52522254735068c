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

_LANGUAGES = {".py": "python", ".cpp": "cpp", ".cu": "cuda", ".cl": "c"}
_FRAME = 4
"""What a panel adds to the width of its text: two borders, two spaces."""


def print_texts(texts: Sequence[KernelText], out: Console) -> None:
    """As many beside one another as fit the terminal; in a pipe one below the other, as they are."""
    if not out.is_terminal:
        for number, text in enumerate(texts):
            out.file.write(("\n" if number else "") + f"==> {_title(text)} <==\n{text.text.rstrip()}\n")
        return
    for row in _rows(texts, out.width):
        grid = Table.grid()
        for _ in row:
            grid.add_column()
        height = max(len(text.text.rstrip().splitlines()) for text in row)
        grid.add_row(*(_panel(text, height if len(row) > 1 else None) for text in row))
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
    return _FRAME + max(map(cell_len, [*text.text.splitlines(), f"  {_title(text)}  "]))


def _panel(text: KernelText, height: int | None) -> Panel:
    code = Syntax(
        text.text.rstrip(),
        _LANGUAGES.get(text.path.suffix, "text"),
        theme="ansi_dark",
        background_color="default",
        word_wrap=True,
    )
    return Panel(code, title=Text(_title(text)), title_align="left", height=None if height is None else height + 2)


def _title(text: KernelText) -> str:
    lines = len(text.text.rstrip().splitlines())
    return f"{text.backend}  kernels/{text.kernel}/{text.variant}/{text.path.name}  {lines} lines"
