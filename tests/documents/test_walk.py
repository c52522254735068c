"""The pages for learners are true: excerpts stand in their files, tables and figures in the results, commands parse."""

from __future__ import annotations

import html
import io
import json
import re
import runpy
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from commands import CLONE, run_python
from rich.console import Console

from py_backends import __main__ as command_line
from py_backends import commands, registry
from py_backends.commands._notebook import views
from py_backends.results.report import Report

pytestmark = pytest.mark.documents

DOCS = CLONE / "docs"
WALK = [DOCS / "walk.md", DOCS / "pictures.md"]
KOREAN = sorted([*CLONE.glob("*.ko.md"), *DOCS.glob("*.ko.md")])
"""`test_languages` holds them to the pages in English."""
PAGES = [
    *WALK,
    CLONE / "README.md",
    *(DOCS / f"{name}.md" for name in ("choose", "glossary", "lecture", "patterns", "steps")),
    *KOREAN,
]
RESULTS = sorted((CLONE / "docs" / "results").glob("*.json"))
TABLES = {name: commands.part(name, "table").print_report for name in ("compare", *views())}  # type: ignore[union-attr]
PRINT = {view: show for view, show in TABLES.items() if commands.part(view, "picture")}
"""The views with a picture of their own."""
WIDTH_OF_A_PIPE = 120
FIGURE = re.compile(r"\d[\d,.]*\d%?|\d%?")
"""A number as reports write it, with its per cent."""
UNITS = re.compile(r"GFLOP/s|GB/s|[mµn]s\b|FLOP/byte")
"""What follows a figure that was measured."""


class Block(NamedTuple):
    """A fenced block of a page: the comment before it says where it is from."""

    section: str
    source: str
    language: str
    text: str


def sections(page: Path) -> Iterator[tuple[str, str]]:
    """The headings of a page, each with what stands below it."""
    parts = re.split(r"^#+ (.+)$", without_code(page.read_text(encoding="utf-8")), flags=re.MULTILINE)
    yield from zip(parts[1::2], parts[2::2], strict=True)


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


def blocks(page: Path) -> list[Block]:
    found, section, source = [], "", ""
    inside: list[str] | None = None
    for line in page.read_text(encoding="utf-8").splitlines(keepends=True):
        if inside is not None:
            if line == "```\n":
                found.append(Block(section, source, inside[0], "".join(inside[1:])))
                inside, source = None, ""
            else:
                inside.append(line)
        elif line.startswith("```"):
            inside = [line.removeprefix("```").strip()]
        elif heading := re.match(r"#+ (.+)", line):
            section = heading[1]
        elif comment := re.fullmatch(r"<!-- (.+) -->\n", line):
            source = comment[1]
        elif line.strip():
            source = ""
    assert inside is None, f"{page.name}: a block that does not end"
    return found


def of(languages: str) -> list[object]:
    """The blocks of all pages in these languages, as parameters."""
    return [
        pytest.param(block, id=f"{page.stem}-{number}")
        for page in PAGES
        for number, block in enumerate(blocks(page), 1)
        if block.language in languages.split() and (page in [*WALK, *KOREAN] or "docs/results" in block.source)
    ]


@cache
def printed(view: str, path: Path) -> list[str]:
    """The lines that a command prints of these results into a pipe."""
    out = Console(file=io.StringIO(), width=WIDTH_OF_A_PIPE, no_color=True, highlight=False)
    TABLES[view](Report.read(path), out)
    assert isinstance(out.file, io.StringIO)
    return [line.rstrip() for line in out.file.getvalue().splitlines()]


def command_of(line: str) -> str:
    """The command that a line of a shell, or of a page, begins with `py-backends` for; its name."""
    parser, commands = command_line._parser()
    words = shlex.split(line, comments=True)[1:]
    options, unknown = parser.parse_known_args(words)
    assert not unknown, line
    assert options.command in commands
    for kind, known in (("backend", registry.backend_names()), ("kernel", registry.kernel_names())):
        names = getattr(options, kind, None) or []
        assert set([names] if isinstance(names, str) else names) <= {*known, "all"}, line
    return str(options.command)


def test_the_walk_has_blocks_of_known_kinds() -> None:
    found = [block for page in WALK for block in blocks(page)]
    assert len(found) > 25
    assert {block.language for block in found} <= {"python", "cpp", "cuda", "c", "text", "sh"}
    named = {block.source for block in found}
    assert {path for path in named if path.startswith("kernels/matmul/tuned/")}
    for view in PRINT:
        assert any(source.startswith(f"py-backends {view} ") for source in named), view


@pytest.mark.parametrize("block", of("python cpp cuda c"))
def test_an_excerpt_stands_in_its_file(block: Block) -> None:
    text = (CLONE / block.source).read_text(encoding="utf-8")
    assert block.text.strip()
    assert f"\n{block.text}" in f"\n{text}"


@pytest.mark.parametrize("block", of("text"))
def test_a_table_is_what_the_command_prints_of_the_results(block: Block) -> None:
    if block.source.endswith(".txt"):
        left = iter((CLONE / block.source).read_text(encoding="utf-8").splitlines())
    else:
        left = iter(printed(*results_of(block.source)))
    for line in block.text.splitlines():
        assert line in left, f"{block.source} does not print, or not in this place: {line}"


def results_of(source: str) -> tuple[str, Path]:
    """The view and the file of `py-backends VIEW ... --json FILE`, or of `VIEW of FILE`, where another wrote it."""
    if other := re.fullmatch(r"(\w+) of (\S+)", source):
        return other[1], CLONE / other[2]
    assert command_of(source) in TABLES
    words = shlex.split(source)
    return words[1], CLONE / words[words.index("--json") + 1]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_parse(page: Path) -> None:
    lines = [line for block in blocks(page) if block.language == "sh" for line in block.text.splitlines()]
    lines = [line for line in lines if line.startswith("py-backends ")]
    prose = without_code(page.read_text(encoding="utf-8"))
    lines += re.findall(r"`(py-backends \w[^`]*)`", prose.replace("\n", " "))
    lines += re.findall(r"<!-- (py-backends .+) -->", prose)
    assert lines
    for line in lines:
        try:
            command_of(line)
        except SystemExit:
            pytest.fail(f"no command: {line}")


@pytest.mark.parametrize("page", WALK, ids=lambda page: page.stem)
class TestFigures:
    """In the walk a figure that was measured is bold, and stands in a table of its section or of one before it."""

    def test_bold_ones_stand_in_a_table(self, page: Path) -> None:
        tables: dict[str, set[str]] = {}
        for block in blocks(page):
            if block.language == "text":
                tables.setdefault(block.section, set()).update(FIGURE.findall(block.text))
        known: set[str] = set()
        bold = 0
        for heading, text in sections(page):
            known |= tables.get(heading, set())
            for words in re.findall(r"\*\*(.+?)\*\*", text, flags=re.DOTALL):
                figures = FIGURE.findall(words)
                assert figures, f"{heading}: {words} is no figure"
                assert set(figures) <= known, f"{heading}: {words}"
                bold += 1
        assert bold > 10

    def test_others_follow_from_equations_or_were_published(self, page: Path) -> None:
        for heading, text in sections(page):
            plain = re.sub(r"\*\*.+?\*\*|`.+?`|<!--.+?-->", "", text, flags=re.DOTALL)
            for sentence in re.split(r"(?<=[.:;|])\s", plain):
                if re.search(rf"\d\s(?:{UNITS.pattern})", sentence):
                    assert "=" in sentence or "published" in sentence, f"{heading}: {sentence.strip()}"


@pytest.fixture(scope="module")
def drawing() -> dict[str, Any]:
    """What `docs/draw.py` defines: it draws the pictures of docs from results and sources, without measuring."""
    return runpy.run_path(str(CLONE / "docs" / "draw.py"))


@pytest.fixture(scope="module")
def drawn(drawing: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all pictures as they are drawn today."""
    folder = tmp_path_factory.mktemp("docs")
    drawing["draw"](folder)
    return folder


class TestShown:
    """The picture of two kernels side by side, and the command that it is said to be of."""

    PICTURE = Path("images") / "vecadd.svg"

    def test_the_command_beside_the_picture_is_the_one_that_is_drawn(self, drawing: dict[str, Any]) -> None:
        page = (DOCS / "choose.md").read_text(encoding="utf-8")
        beside = page.partition(f"]({self.PICTURE})\n\n")[2]
        assert beside.startswith(f"`{drawing['SHOWN']}` prints this")
        assert without_blanks(drawing["SHOWN"]) in lines_in(CLONE / "docs" / self.PICTURE)

    def test_asking_for_help_draws_nothing(self, tmp_path: Path) -> None:
        """It drew into a folder named `--help`."""
        asked = run_python(CLONE / "docs" / "draw.py", "--help", cwd=tmp_path)
        assert (asked.returncode, asked.stderr, list(tmp_path.iterdir())) == (0, "", [])
        assert "FOLDER" in asked.stdout

    def test_the_picture_is_what_the_command_prints_today(self, drawn: Path) -> None:
        assert lines_in(CLONE / "docs" / self.PICTURE) == lines_in(drawn / self.PICTURE)

    def test_the_sources_stand_in_it_side_by_side(self) -> None:
        lines = lines_in(CLONE / "docs" / self.PICTURE)
        paths = ["kernels/vecadd/lecture/openmp.cpp", "kernels/vecadd/lecture/cuda.cu"]
        assert [all(path in line for path in paths) for line in lines].count(True) == 1, "both titles in one line"
        for path in paths:
            for code in (CLONE / path).read_text(encoding="utf-8").splitlines():
                assert code.startswith("//") or any(without_blanks(code) in line for line in lines), code


def lines_in(picture: Path) -> list[str]:
    """What stands in a picture of a terminal, line by line and without blanks."""
    lines: dict[float, dict[float, str]] = {}
    for attributes, text in re.findall(r"<text([^>]*)>([^<]*)</text>", picture.read_text(encoding="utf-8")):
        at = {name: float(value) for name, value in re.findall(r'\b([xy])="([\d.]+)"', attributes)}
        lines.setdefault(at["y"], {})[at["x"]] = without_blanks(html.unescape(text))
    return ["".join(parts[x] for x in sorted(parts)) for _, parts in sorted(lines.items())]


def without_blanks(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
class TestResults:
    """The files that tables and pictures are of."""

    def test_tell_the_machine_and_not_the_place(self, path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        assert not re.findall(r"(?<![\w.])/(?:tmp|home|root|usr|opt|work|var|mnt|etc)\b", text)
        results = json.loads(text)
        assert results["machine"]["cpu"]
        assert re.fullmatch(r"Linux-x86_64[\w.-]*", results["machine"]["os"])

    def test_are_of_the_command_that_the_pages_name(self, path: Path) -> None:
        command = json.loads(path.read_text(encoding="utf-8"))["settings"]["command"]
        assert command_of(command) == path.stem.partition("-")[0]
        assert f"--json docs/results/{path.name}" in command
        sources = {block.source for page in PAGES for block in blocks(page)}
        assert command in sources

    def test_are_undisturbed_and_right(self, path: Path) -> None:
        report = Report.read(path)
        assert report.exit_code() == 0
        if report.rows:  # a prediction has none
            assert report.rounds is not None
            assert report.rounds.kept >= 6
        assert not report.interrupted

    def test_the_picture_is_of_them(self, path: Path, drawn: Path) -> None:
        view = Path("pictures") / f"{path.stem}.svg"
        assert (CLONE / "docs" / view).exists() == (drawn / view).exists()
        assert (drawn / view).exists() or path.stem not in PRINT
        if (drawn / view).exists():
            assert words_in(CLONE / "docs" / view) == words_in(drawn / view)


def words_in(picture: Path) -> set[str]:
    """All that is said in a picture, apart from the numbers on its axes."""
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", picture.read_text(encoding="utf-8"))
    return {text for text in texts if re.search(r"[a-z]{3}", text)}


def test_every_view_has_results_and_a_picture_that_is_shown() -> None:
    assert {path.stem for path in RESULTS} >= set(PRINT)
    text = (CLONE / "docs" / "pictures.md").read_text(encoding="utf-8")
    for view in PRINT:
        assert f"](pictures/{view}.svg)" in text
