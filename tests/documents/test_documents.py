"""What the documents list is what there is: extras, rooms, options, fields. What is made of files is made of them.

What the recipes have one write works: their sources compile, and their command shows a report.
"""

from __future__ import annotations

import argparse
import io
import re
import runpy
import shutil
import subprocess
import textwrap
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import CLONE
from compilers import gcc_or_skip
from rich.console import Console

from py_backends import __main__ as command_line
from py_backends import commands, registry
from py_backends.contract import KernelText, Problem
from py_backends.install import pip_install
from py_backends.number_formats import FORMATS
from py_backends.plugins import checked_problem
from py_backends.results.report import Report, Row

pytestmark = pytest.mark.documents

DOCS = CLONE / "docs"
DEVELOP = DOCS / "develop"
PACKAGE = CLONE / "py_backends"


def project() -> dict[str, object]:
    found: dict[str, object] = tomllib.loads((CLONE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def section(page: Path, heading: str) -> str:
    """What stands below a heading, up to the next one of its level or above."""
    level, title = heading.split(" ", 1)
    pattern = rf"^{level} {re.escape(title)}\n(.*?)(?=^#{{1,{len(level)}}} |\Z)"
    match = re.search(pattern, read(page), re.DOTALL | re.MULTILINE)
    assert match, f"{page.name} has no {heading}"
    return match[1]


def columns(text: str, header: str) -> Iterator[list[str]]:
    """The cells of each line of the tables whose first line begins with `| header |`."""
    for table in re.findall(rf"^\| {re.escape(header)} \|.*\n\|[- |]+\n((?:\|.*\n)+)", text, re.MULTILINE):
        for line in table.splitlines():
            yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))]


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def test_lists_are_made_of_the_files() -> None:
    script = runpy.run_path(str(DOCS / "lists.py"))
    shown: set[str] = set()
    for page in script["pages"]():
        assert script["written"](page) == read(page), f"run docs/lists.py, which writes {page.name}"
        lists = {block["name"] for block in script["BLOCK"].finditer(read(page))}
        assert lists == set(re.findall(r"^ *<!-- (\w+): docs/lists\.py", read(page), re.MULTILINE)), page.name
        shown |= lists
    assert shown == set(script["LISTS"])


class TestExtras:
    TABLE = {
        name: line[1]
        for line in columns(section(DOCS / "reference.md", "## Set-up"), "extra")
        for name in quoted(line[0])
    }  # fmt: skip

    def test_all_are_in_the_reference(self) -> None:
        extras = project()["optional-dependencies"]
        assert isinstance(extras, dict)
        assert sorted(self.TABLE) == sorted(extras)

    def test_help_says_so_where_they_are_asked_for(self) -> None:
        _, commands = command_line._parser()
        with_pictures = [name for name, parser in commands.items() if "--png" in options_of(parser)]
        assert len(with_pictures) >= 5
        for name in with_pictures:
            for action in commands[name]._actions:
                said = "extra pictures" in (action.help or "")
                assert said == bool({"--png", "--svg"} & set(action.option_strings)), name
        assert "extra pictures" in (commands["report"].description or "")


class TestHouse:
    """CONTRIBUTING's picture of folders and floors."""

    WORDS = section(CLONE / "CONTRIBUTING.md", "## The house")
    LISTING, FLOORS = re.findall(r"^\n((?: {4}.*\n)+)", WORDS, re.MULTILINE)

    def test_the_folders(self) -> None:
        named = {line.split()[0] for line in self.LISTING.splitlines()}
        assert {name for name in named if not re.search(r"[A-Z*]", name) and not (CLONE / name).exists()} == set()
        ours = {path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.glob("*.py"))}
        tops = {name.partition("/")[0] for name in named}
        assert {f"py_backends/{name}/" for name in ours} <= named
        git = shutil.which("git") or pytest.skip("git is missing, which knows the clone's own folders")
        files = subprocess.run([git, "ls-files"], cwd=CLONE, capture_output=True, text=True, check=False).stdout
        assert {name.partition("/")[0] for name in files.splitlines() if "/" in name} <= tops

    def test_the_floors_are_those_that_import_linter_holds(self) -> None:
        settings = tomllib.loads((CLONE / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
        (layers,) = (each["layers"] for each in settings["contracts"] if each["type"] == "layers")
        named = [re.split(r"\s{2,}", line.strip())[0] for line in self.FLOORS.splitlines()]
        assert named == [layer.replace("py_backends.", "") for layer in layers]


def recipe(page: str, language: str) -> list[str]:
    """The blocks of a language in a page for developers."""
    blocks = re.findall(rf"^( *)```{language}\n(.*?)^ *```$", read(DEVELOP / page), re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(block) for _, block in blocks]


class TestRecipes:
    """What the pages for developers have one write."""

    SOURCES = [source for page in sorted(DEVELOP.glob("*.md")) for source in recipe(page.name, "cpp")]

    def test_there_are_sources(self) -> None:
        assert {source.split()[1] for source in self.SOURCES} >= {"triad:", "matmul:"}

    @pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.split()[1].strip(":"))
    def test_a_source_compiles_in_every_format_that_it_takes(self, source: str, tmp_path: Path) -> None:
        kernel = source.removeprefix("// ").partition(":")[0]
        problem = registry.problem(kernel) if kernel in registry.kernel_names() else Problem
        path = tmp_path / "cpp.cpp"
        path.write_text(source, encoding="utf-8")
        formats = KernelText(problem, "made_up", "cpp", path).dtypes
        assert formats
        instances = [f"auto* const of_{name} = &{kernel}<{FORMATS[name].c}>;\n" for name in formats]
        path.write_text(f'#include "formats.hpp"\n{source}{"".join(instances)}', encoding="utf-8")
        command = [gcc_or_skip(), "-std=c++17", "-fsyntax-only", f"-I{CLONE / 'kernels'}", str(path)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr

    def test_the_problem_says_what_is_right(self) -> None:
        made: dict[str, Any] = {}
        exec(recipe("kernel.md", "python")[0], made)  # noqa: S102  # our own page
        problem = checked_problem(made["PROBLEM"], "triad")
        a, b = np.ones(3, np.float32), np.arange(3, dtype=np.float32)
        right = problem.reference([a, b])
        assert (right.value == a + 3 * b).all()
        assert right.bound is not None
        assert (right.bound > 0).all()
        assert problem.sizes(a, b) == (3,)

    def test_the_command_is_found_and_shows_a_report(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        pytest.importorskip("matplotlib", reason=f"matplotlib is not installed: {pip_install('pictures')}")
        if "slowest" in commands.names():
            pytest.skip("somebody has written the example, and its own tests hold it")
        names = re.findall(r"^\d\. `(\w+\.py)`", read(DEVELOP / "command.md"), re.MULTILINE)
        (tmp_path / "slowest").mkdir()
        for name, source in zip(names, recipe("command.md", "python"), strict=True):
            (tmp_path / "slowest" / name).write_text(source, encoding="utf-8")
        monkeypatch.setattr(commands, "__path__", [*commands.__path__, str(tmp_path)])
        parser, by_name = command_line._parser()
        assert parser.parse_args(["slowest", "--svg", "slowest.svg"]).run
        assert "list the rows of a comparison" in parser.format_help()
        assert "example: py-backends slowest" in by_name["slowest"].format_help()
        report = Report.read(DOCS / "results" / "roofline.json")
        out = Console(file=io.StringIO(), width=120)
        table, picture = (commands.part("slowest", name) for name in ("table", "picture"))
        assert table
        assert picture
        table.print_report(report, out)
        assert re.search(r"the slowest rows.*\n.*\n  python +cpu +lecture +matmul ", out.file.getvalue())  # type: ignore[attr-defined]
        assert picture.draw(report).axes
        assert picture.describe(report).startswith("The slowest rows")
        assert picture.TITLE


def options_of(parser: argparse.ArgumentParser) -> set[str]:
    long = {option for action in parser._actions for option in action.option_strings if option.startswith("--")}
    return long - {"--help"}


class TestReference:
    @pytest.mark.parametrize("command", command_line._parser()[1])
    def test_every_option_of_a_command_is_listed(self, command: str) -> None:
        """Roofline and timeline have compare's, but for those that their section names."""
        text = section(DOCS / "reference.md", f"### {command}")
        listed = set(re.findall(r"--[a-z]+(?:-[a-z]+)*", " ".join(line[0] for line in columns(text, "option"))))
        has = options_of(command_line._parser()[1][command])
        running = " ".join(text.split())
        if "with the same options" in running:
            without = re.search(r"with the same options \(but no ([^)]+)\) and ((?:`--[^`]+`,? ?)+)", running)
            assert without, (
                f"### {command} of docs/reference.md has to say: with the same options (but no `--a`, `--b`) and `--c`"
            )
            compare = options_of(command_line._parser()[1]["compare"])
            listed = compare - set(re.findall(r"--\w+", without[1])) | set(re.findall(r"--\w+", without[2]))
        elif not listed:
            listed = set(re.findall(r"`(--[a-z]+)", text))
        assert listed == has, f"the section of {command} in docs/reference.md lists other options than it has"

    @pytest.mark.parametrize("command", ["choose", "ladder", "roofline", "scaling", "sweep", "timeline"])
    def test_the_budget_is_that_of_the_command(self, command: str) -> None:
        text = section(DOCS / "reference.md", f"### {command}")
        budget = f"{command_line._parser()[1][command].get_default('budget'):g}"
        listed = [line[2] for line in columns(text, "option") if "--budget" in line[0]]
        assert listed == [budget] or f"The budget is {budget} s" in text

    @pytest.mark.parametrize("kind", [Report, Row])
    def test_every_field_of_results_is_listed(self, kind: type[Report | Row]) -> None:
        text = section(DOCS / "reference.md", "## Results")
        assert {each.name for each in fields(kind) if not re.search(rf"[`\"]{each.name}[`\"]", text)} == set()

    def test_every_command_has_a_section(self) -> None:
        headings = re.findall(r"^### (\w+)$", section(DOCS / "reference.md", "## Commands"), re.MULTILINE)
        assert sorted(headings) == sorted(command_line._parser()[1])
