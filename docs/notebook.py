"""Makes docs/walk.ipynb of docs/walk.md: `python docs/notebook.py`, or of another PAGE into another NOTEBOOK.

The commands of the page become cells that run, and show their picture. All the rest is text, as it stands on the page:
tables and excerpts are of the page's own results and kernels. The notebook is kept without outputs: what a reader sees
in it is of the reader's machine. It needs nbformat (the extra `docs`).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import nbformat
from markdown_it import MarkdownIt
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from py_backends.commands._options import Parser

DOCS = Path(__file__).parent
COMMAND = "py-backends "
NOTE = """*This notebook is made of [{page}]({page}). Figures and tables in the text are of the machine that it names.
What the cells print and draw is of yours. A command takes as long as its `--budget`; give a shorter one to look
around.*"""
SET_UP = """import os
import sysconfig
import tempfile

from IPython.display import SVG

import py_backends as pb

os.environ["PATH"] = sysconfig.get_path("scripts") + os.pathsep + os.environ["PATH"]  # py-backends is there
os.environ.update(COLUMNS="120", LINES="40", TERM="dumb")  # whole tables, and no progress bar, which cannot move here
os.chdir(tempfile.mkdtemp())  # the commands write their files there"""
CLOSING = """## From here

Results show themselves, as the tables that the commands print and a picture; so does each of `report.rows`."""
CLOSING_CODE = """report = pb.compare(kernels=["vecadd"], budget=20)
report"""


def notebook(page: str, name: str) -> NotebookNode:
    """The notebook of a page of Markdown; `name` is that of the page's file."""
    text = with_jupyter_anchors(page)
    first, *others = cells(text)
    made = [
        first,
        new_markdown_cell(NOTE.format(page=name)),
        new_code_cell(SET_UP),
        *others,
        new_markdown_cell(CLOSING),
        new_code_cell(CLOSING_CODE),
    ]
    for number, cell in enumerate(made):
        cell["id"] = f"cell-{number}"  # nbformat's own are drawn at random
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    whole = new_notebook(cells=made, metadata={"kernelspec": kernel, "language_info": {"name": "python"}})
    nbformat.validate(whole)
    return whole


def cells(text: str) -> Iterator[NotebookNode]:
    """A cell for each section, up to its commands and between them, and one for the commands of each block."""
    lines = text.splitlines()
    begun = 0
    for token in MarkdownIt().parse(text):
        if token.level or token.map is None:
            continue
        begin, end = token.map
        commands = token.content if token.type == "fence" and token.info == "sh" else ""
        if token.type == "heading_open" or commands.startswith(COMMAND):
            yield from prose(lines[begun:begin])
            begun = begin
        if commands.startswith(COMMAND):
            yield new_code_cell(code(commands))
            begun = end
    yield from prose(lines[begun:])


def prose(lines: list[str]) -> Iterator[NotebookNode]:
    """Text as a cell; none where there is none."""
    if text := "\n".join(lines).strip():
        yield new_markdown_cell(text)


def code(commands: str) -> str:
    """A block of commands for IPython, which hands what follows an exclamation mark to a shell; and their pictures."""
    lines = [f"!{line}" if line.startswith(COMMAND) else line for line in commands.splitlines()]
    words = shlex.split(commands)
    pictures = [file for option, file in pairwise(words) if option == "--svg"]
    shown = [f'display(SVG("{picture}"))' for picture in pictures]
    return "\n".join([*lines, *shown])


def with_jupyter_anchors(page: str) -> str:
    """Links within the page, as Jupyter names headings: it keeps capitals, and what is no letter."""
    headings = re.findall(r"^#+ (.+)$", page, flags=re.MULTILINE)
    for heading in headings:
        anchor = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        page = page.replace(f"](#{anchor})", f"](#{heading.replace(' ', '-')})")
    return page


def main(page: Path, to: Path) -> None:
    """Write the notebook of a page to a file."""
    nbformat.write(notebook(page.read_text(encoding="utf-8"), page.name), to)


if __name__ == "__main__":
    parser = Parser(description="Makes the notebook of a page.")
    parser.add_argument("page", nargs="?", type=Path, default=DOCS / "walk.md", metavar="PAGE")
    parser.add_argument("to", nargs="?", type=Path, metavar="NOTEBOOK", help="in place of PAGE's name with .ipynb")
    asked = parser.parse_args()
    main(asked.page, asked.to or asked.page.with_suffix(".ipynb"))
