"""Draws every picture of README and docs anew, and measures nothing: `python docs/draw.py`, or into another FOLDER.

The picture of a command is drawn from the file of docs/results with its name. Those of other files are drawn again
where there is one. That of docs/choose.md is what `SHOWN` prints on a terminal. That of the page is a screenshot: it
needs Playwright, and the system's Chromium.
"""

from __future__ import annotations

import io
import re
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from py_backends import commands
from py_backends.commands._options import Parser
from py_backends.commands.report.page import page
from py_backends.commands.show import command as show
from py_backends.commands.show.table import print_texts
from py_backends.display import style
from py_backends.results.report import Report

DOCS = Path(__file__).parent
RESULTS = DOCS / "results"
SHOWN = "py-backends show vecadd --backend openmp,cuda --variant lecture"
COLUMNS, LINES = 170, 40
"""Of the terminal: no line of code of these two is wrapped."""
OF_THE_PAGE = ("ladder", "roofline")


def draw(folder: Path) -> None:
    """Write all but the page's into `images` and `pictures` of a folder."""
    for name in ("images", "pictures"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for results in sorted(RESULTS.glob("*.json")):
        name, picture = results.stem, commands.part(results.stem.partition("-")[0], "picture")
        if picture and (name in commands.names() or (DOCS / "pictures" / f"{name}.svg").exists()):
            style.save(picture.draw(Report.read(results)), folder / "pictures" / f"{name}.svg")
    (folder / "images" / "vecadd.svg").write_text(shown(), encoding="utf-8")


def shown() -> str:
    """What the command prints on a terminal, as SVG."""
    parser = Parser()
    show.add_options(parser)
    texts = show.chosen_texts(parser.parse_args(shlex.split(SHOWN)[2:]))
    # Width and height: with one of them alone rich takes its own where TERM says that the terminal is dumb.
    out = Console(
        file=io.StringIO(), record=True, force_terminal=True, color_system="truecolor", width=COLUMNS, height=LINES
    )
    print_texts(texts, out)
    svg = out.export_svg(title=SHOWN, unique_id="vecadd")
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # an image loads no fonts from elsewhere


def photograph(path: Path, chromium: str) -> None:
    """The kernels side by side, as the page of two files shows them in a browser."""
    from playwright.sync_api import sync_playwright

    reports = [(f"{name}.json", Report.read(RESULTS / f"{name}.json")) for name in OF_THE_PAGE]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        written = Path(folder) / "page.html"
        written.write_text(page(reports), encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=chromium)
        tab = browser.new_page(viewport={"width": 1240, "height": 700})
        tab.goto(f"{written.as_uri()}#kernels")
        tab.screenshot(path=path)
        browser.close()


def main(folder: Path) -> None:
    """Write them all; one line on standard error where there is no browser."""
    draw(folder)
    if chromium := shutil.which("chromium"):
        photograph(folder / "pictures" / "page.png", chromium)
    else:
        sys.stderr.write("no Chromium: pictures/page.png was not made\n")


if __name__ == "__main__":
    asked = Parser(description="Draws every picture of README and docs anew, and measures nothing.")
    asked.add_argument("folder", nargs="?", type=Path, default=DOCS, metavar="FOLDER", help="in place of docs")
    main(asked.parse_args().folder)
