"""Results show themselves in notebooks, and the walk's notebook is the walk: made of it, and it runs."""

from __future__ import annotations

import html
import importlib.util
import re
import runpy
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import CLONE
from conftest import nightly
from test_walk import PRINT, printed

from py_backends import __main__ as command_line
from py_backends.install import pip_install
from py_backends.results.report import Report, Row

RESULTS = CLONE / "docs" / "results"
WALK = CLONE / "docs" / "walk.ipynb"
MAKE_AGAIN = "the walk has changed: make it again by .venv/bin/python docs/notebook.py"


def lines(shown: str) -> list[str]:
    """What stands in the tables of a report that shows itself."""
    text = re.sub(r"<[^>]+>", "", shown.partition("</pre>")[0])
    return [line.rstrip() for line in html.unescape(text).splitlines()]


class Printer:
    """As IPython's, which hands itself to what it shows."""

    def __init__(self) -> None:
        self.said = ""

    def text(self, text: str) -> None:
        self.said += text


def plain(shown: Report | Row) -> str:
    printer = Printer()
    shown._repr_pretty_(printer, False)
    return printer.said


class TestReports:
    @pytest.mark.parametrize("view", ["ladder", *(nightly(view) for view in PRINT if view != "ladder")])
    def test_show_what_their_command_prints_and_its_picture(self, view: str) -> None:
        report = Report.read(RESULTS / f"{view}.json")
        shown = report._repr_html_()
        assert lines(shown) == plain(report).splitlines() == printed(view, RESULTS / f"{view}.json")
        assert shown.count("<svg ") == 1
        assert re.search(r'role="img" aria-label="[^"]{40}', shown)
        report.created = "later"
        ids = [set(re.findall(r' id="([^"]+)"', each)) for each in (shown, report._repr_html_())]
        assert ids[0]
        assert not ids[0] & ids[1], "two pictures of one notebook"

    @pytest.mark.parametrize("command", ["py-backends compare --budget 40", None, "py-backends next-week", 7])
    def test_of_others_have_the_tables_of_compare(self, command: Any) -> None:
        report = Report.read(RESULTS / "roofline.json")
        report.settings["command"] = command
        assert "of ceiling" in plain(report)

    @pytest.mark.nightly
    def test_of_compare_have_the_roofline(self) -> None:
        report = Report.read(RESULTS / "roofline.json")
        report.settings["command"] = None
        assert 'id="roofline-' in report._repr_html_()

    def test_say_why_there_is_no_picture(self) -> None:
        report = Report("", "0.1.0", {}, {"command": "py-backends ladder"})
        assert re.search(r"</pre><p>No picture: \w.+</p>$", report._repr_html_(), re.DOTALL)

    def test_are_harmless(self) -> None:
        row = next(row for row in TestRows.ROWS if row.status == "ok")
        harmful = replace(row, backend="<script>alert(1)</script>$a$", note="<img src=x onerror=alert(1)>")
        report = Report("", "<b>", {"cpu": "<script>"}, {"command": "py-backends timeline <i>"}, [harmful])
        shown = report._repr_html_() + harmful._repr_html_()
        assert shown.count("<svg ") == 1
        assert not re.search("<(?:script|img|b|i)>", shown)

    def test_need_no_picture_library(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        shown = Report.read(RESULTS / "ladder.json")._repr_html_()
        assert re.search("matplotlib .*pip install", shown)


class TestRows:
    ROWS = Report.read(RESULTS / "roofline.json").rows

    @pytest.mark.parametrize("status", ["ok", "emulated", "unavailable"])
    def test_show_their_line_or_why_there_is_none(self, status: str) -> None:
        row = next(row for row in self.ROWS if row.status == status)
        shown = lines(row._repr_html_())
        assert [line for line in shown if row.backend in line]
        assert plain(row).splitlines() == shown
        if status == "ok":
            assert any("GFLOP/s" in line for line in shown)
        if row.reason:
            assert row.reason in " ".join(" ".join(shown).split())


def made() -> Any:
    """The notebook of the walk as it is today."""
    if importlib.util.find_spec("nbformat") is None:
        pytest.skip(f"nbformat is not installed (to change that: {pip_install('docs')})")
    script = runpy.run_path(str(CLONE / "docs" / "notebook.py"))
    return script["notebook"]((CLONE / "docs" / "walk.md").read_text(encoding="utf-8"), "walk.md")


@pytest.mark.documents
class TestWalk:
    def test_the_notebook_is_the_walk(self) -> None:
        notebook = made()
        import nbformat

        assert WALK.read_text(encoding="utf-8") == nbformat.writes(notebook) + "\n", MAKE_AGAIN

    def test_its_text_is_the_pages(self) -> None:
        page = (CLONE / "docs" / "walk.md").read_text(encoding="utf-8")
        cells = made().cells
        assert all(not cell.get("outputs") for cell in cells)
        code = [cell.source for cell in cells if cell.cell_type == "code"]
        commands = re.findall(
            r"^py-backends .*$", "\n".join(re.findall(r"```sh\n(.*?)```", page, re.DOTALL)), re.MULTILINE
        )
        assert [line[1:] for cell in code for line in cell.splitlines() if line.startswith("!")] == commands
        texts = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
        for block in re.findall(r"```(?:python|cpp|cuda|c|text)\n.*?```", page, re.DOTALL):
            assert block in texts

    def test_links_within_it_lead_to_headings(self) -> None:
        texts = "\n".join(cell.source for cell in made().cells if cell.cell_type == "markdown")
        headings = {heading.replace(" ", "-") for heading in re.findall(r"^#+ (.+)$", texts, re.MULTILINE)}
        found = set(re.findall(r"\]\(#([^)]+)\)", texts))
        assert found
        assert found <= headings

    @pytest.mark.nightly
    def test_it_runs(self, tmp_path: Path) -> None:
        if importlib.util.find_spec("nbclient") is None:
            pytest.skip(f"nbclient is not installed (to change that: {pip_install('notebook')})")
        from nbclient import NotebookClient

        notebook = made()
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.source = "\n".join(map(short, cell.source.splitlines()))
        NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
        outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
        said = "\n".join(output.text for output in outputs if output.output_type == "stream")
        assert "Traceback" not in said
        assert not re.search(r"^(?:py-backends.*: )?error:", said, re.MULTILINE)
        assert "end to end" in said, "whole tables"
        assert "\x1b" not in said, "what moves a cursor, or colours"
        shown = [output.data for output in outputs if output.output_type in ("display_data", "execute_result")]
        assert any("image/svg+xml" in data for data in shown)
        assert "<svg " in shown[-1]["text/html"]


def short(line: str) -> str:
    """A line of a notebook, with the least budget, and of backends two that have nothing to compile."""
    if command := re.match(r"!py-backends (\w+)", line):
        options = command_line._parser()[1][command[1]].format_help()
        for option in ("--budget 2", "--backend numpy,openmp"):
            line += f" {option}" if option.split()[0] in options else ""
    return line.replace("budget=20", "budget=2")
