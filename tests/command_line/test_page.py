"""The page of results: what is on it, that it is harmless and loads nothing, and how it behaves in a real browser."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from commands import CLONE, run_here, run_python
from conftest import Comparison, after_a_change, chromium
from made_rows import with_work

import py_backends as pb
from py_backends import registry
from py_backends.commands.report.page import page
from py_backends.commands.report.side_by_side import across
from py_backends.commands.roofline import picture as roofline
from py_backends.commands.timeline import picture as timeline
from py_backends.display import layout, remarks
from py_backends.display.comparison import sections
from py_backends.errors import WrongRequest
from py_backends.install import pip_install
from py_backends.results.report import Check, Duration, Rate, Report, Row, Seconds, Speedup

pytestmark = pytest.mark.stamped

VECTOR = {"n": 4000037}
HARMFUL = "$a_b$ --!><script>alert(1)</script><img src=x onerror=alert(2)> & \"quoted\" 'too' {{ 7 * 7 }}"
VOID = {"meta", "link", "br", "img", "input", "hr"}


def duration(seconds: float) -> Duration:
    return Duration(seconds, 0.99 * seconds, 1.01 * seconds, 0.98 * seconds, 30)


def timed(backend: str, seconds: float, verdict: str, **others: Any) -> Row:
    shape = others.pop("shape", VECTOR)
    made = Row("vecadd", backend, "cpu", "lecture", "float32", shape, "ok", threads=2, device="Made-up CPU")
    made = replace(
        made,
        check=Check(True, "bitwise", 0.0),
        seconds=Seconds(1e-4, 3e-5, 1e-5, duration(seconds), duration(1.1 * seconds), 2e-4, None, 1e-6),
        rate=Rate(4e-3 / seconds, 0.048 / seconds),
        versus=Speedup("numpy", 1.6e-3 / seconds, 1.0, 2.0, True, verdict, 30, True),
    )
    return replace(with_work(made), **others)


def report(*more: Row, created: str = "2026-11-21T09:00:00+00:00") -> Report:
    """A made-up comparison with a row of many a kind."""
    rows = [
        timed("numpy", 1.6e-3, "same"),
        timed("openmp", 0.8e-3, "faster"),
        timed("python", 0.1, "slower", shape={"n": 2000019}, requested=VECTOR, note="shortened from 4000037"),
        replace(timed("avx", 1.0, ""), status="mismatch", reason="3 of 4000037 elements are wrong", seconds=None),
        replace(timed("cuda", 1.0, ""), target="nvidia", status="unavailable", reason="no driver", fix="buy a GPU"),
    ]
    machine = {"cpu": "Made-up CPU", "isa": ["avx2"], "logical_cpus": 2, "memory_bytes": 2**34, "python": "3.11.7"}
    settings = {"seed": 1, "threads": 2, "budget_seconds": 40.0, "command": "py-backends compare"}
    return Report(created, "0.1.0", machine, settings, [*rows, *more], seconds_taken=41.0)


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    text: str = ""
    children: list[Element] = field(default_factory=list)

    def all(self, tag: str, **attributes: str) -> list[Element]:
        found = [each for child in self.children for each in [child, *child.all("*")]]
        return [
            each
            for each in found
            if tag in ("*", each.tag) and all(each.attributes.get(name) == text for name, text in attributes.items())
        ]

    def words(self) -> str:
        return " ".join(self.text.split())


class Parsed(HTMLParser):
    """A page as a tree of elements, each with all the text in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.root = Element("", {})
        self._open = [self.root]
        self.feed(text)
        self.close()
        assert self._open == [self.root], f"not closed: {[each.tag for each in self._open]}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: text or "" for name, text in attrs})
        self._open[-1].children.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open[-1].children.append(Element(tag, {name: text or "" for name, text in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        for each in self._open:
            each.text += data


@pytest.fixture(scope="module")
def text() -> str:
    return page([("monday.json", report())])


@pytest.fixture(scope="module")
def parsed(text: str) -> Element:
    return Parsed(text).root


def cells(table: Element) -> list[tuple[str, ...]]:
    return [tuple(cell.text for cell in row.children) for row in table.all("tr")]


class TestContents:
    def test_tables_are_those_of_the_terminal(self, parsed: Element) -> None:
        (section,) = sections(report())
        assert section.rows
        assert cells(parsed.all("table")[0]) == [section.header, *section.rows]
        words = parsed.words()
        for line in section.lines:
            assert f"{' '.join(line.names)}: {line.text}" in words
        for footnote in section.footnotes:
            assert footnote in words

    def test_what_did_not_run_and_why(self, parsed: Element) -> None:
        said = {tuple(each.words() for each in pair.children) for pair in parsed.all("dl")[0].children}
        assert said == {("cuda nvidia", "no driverbuy a GPU")}

    def test_the_machine_and_the_verdict(self, parsed: Element) -> None:
        words = parsed.words()
        for each in (*layout.heading(report()), layout.verdict(report())[0], "16.0 GiB", "py-backends compare", "avx2"):
            assert each in words

    def test_pictures_are_said_in_words_too(self, parsed: Element) -> None:
        words = timeline.describe(report())
        (drawn,) = [each for each in parsed.all("div", role="img") if each.attributes["aria-label"] == words]
        assert [each.tag for each in drawn.children] == ["svg"]
        assert " ".join(words.split()) in parsed.words()

    @pytest.mark.slow
    @pytest.mark.parametrize("file", ["sweep.json", "scaling.json"])
    def test_of_kernels_that_are_not_here_is_told_what_was_measured(self, file: str) -> None:
        """One row of a plug-in's kernel, and there was no page, or no table in a notebook."""
        results = pb.read(CLONE / "docs" / "results" / file)  # which also sets how notebooks show it
        elsewhere = replace(results.rows[0], kernel="axpy")
        told = replace(results, rows=[*results.rows, elsewhere])
        root = Parsed(page([(file, told)])).root
        assert "axpy" in root.words()
        assert root.all("div", role="img")
        assert "axpy" in told._repr_html_()

    def test_a_picture_that_cannot_be_drawn_gives_its_reason(self, parsed: Element) -> None:
        reasons = {pair.children[0].text for pair in parsed.all("dl")[2].children}
        assert {"The ladder", "Threads"} <= reasons

    def test_a_picture_of_a_number_that_no_axis_can_have_gives_its_reason(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A ceiling of 1e308 GFLOP/s: there was no page."""

        def draw(_: Report) -> None:
            raise ValueError("Axis limits cannot be NaN or Inf")

        monkeypatch.setattr(roofline, "draw", draw)
        assert "Axis limits cannot be NaN or Inf" in Parsed(page([("monday.json", report())])).root.words()

    def test_every_source_is_there_as_it_is_in_its_file(self, parsed: Element) -> None:
        shown = {
            (each.attributes["data-variant"], each.attributes["data-model"]): each.all("code")[0].text
            for each in parsed.all("details", **{"class": "source"})
        }
        texts = {
            (path.parent.name, path.stem): path.read_text(encoding="utf-8").rstrip()
            for path in (CLONE / "kernels" / "vecadd").glob("*/*.*")
            if path.stem in registry.backend_names()
        }
        assert shown == texts

    def test_a_source_has_its_speed(self, parsed: Element) -> None:
        (source,) = parsed.all("details", **{"class": "source", "data-variant": "lecture", "data-model": "openmp"})
        ((_, row),) = [cells(table) for table in source.all("table")]
        assert row == ("cpu", "float32", "4000037", "800 µs", "60.0 GB/s", "2.00x faster")

    def test_the_threads_of_a_speed_are_told_where_there_are_several(self) -> None:
        root = Parsed(page([("threads.json", report(timed("openmp", 1.5e-3, "same", threads=1)))])).root
        (source,) = root.all("details", **{"class": "source", "data-variant": "lecture", "data-model": "openmp"})
        ((header, *rows),) = [cells(table) for table in source.all("table")]
        assert [(row[header.index("threads")], row[header.index("time")]) for row in rows] == [
            ("2", "800 µs"),
            ("1", "1.50 ms"),
        ]

    def test_two_models_stand_side_by_side_without_a_script(self, parsed: Element) -> None:
        panes = parsed.all("article", **{"class": "pane"})
        assert [pane.all("h3")[0].text.split(":")[0] for pane in panes] == ["openmp", "numpy"], "the fastest first"

    def test_threads_are_told_apart(self) -> None:
        titles = [section.title for section in sections(report(timed("openmp", 1.5e-3, "same", threads=1)))]
        assert titles == ["vecadd  float32  4000037  2 threads", "vecadd  float32  4000037  1 thread"]

    @pytest.mark.slow
    def test_many_tables_can_be_opened(self) -> None:
        sizes = [timed("numpy", 1e-3, "same", shape={"n": 2**power}) for power in range(8)]
        root = Parsed(page([("sizes.json", report(*sizes))])).root
        (tables,) = root.all("details", **{"class": "tables"})
        assert tables.all("summary")[0].text == "All 9 tables"
        assert len(tables.all("table")) == 9


class TestForm:
    def test_it_loads_nothing(self, parsed: Element) -> None:
        for element in parsed.all("*"):
            for name in ("src", "href", "xlink:href", "action", "data", "poster", "srcset"):
                address = element.attributes.get(name)
                assert address is None or address.startswith("#") or address == "data:,", (element.tag, address)
        for style in parsed.all("style"):
            assert "url(" not in style.text
            assert "@import" not in style.text

    def test_its_policy_allows_its_own_script_alone(self, parsed: Element) -> None:
        (script,) = parsed.all("script")
        (policy,) = [each for each in parsed.all("meta") if "http-equiv" in each.attributes]
        digest = base64.b64encode(hashlib.sha256(script.text.encode()).digest()).decode()
        assert f"script-src 'sha256-{digest}';" in policy.attributes["content"]
        assert policy.attributes["content"].startswith("default-src 'none';")
        assert not [each for each in parsed.all("*") if any(name.startswith("on") for name in each.attributes)]

    @pytest.mark.slow
    def test_ids_are_one_of_a_kind_and_what_is_named_is_there(self) -> None:
        root = Parsed(page([("a.json", report()), ("b.json", report())])).root
        ids = Counter(each.attributes["id"] for each in root.all("*") if "id" in each.attributes)
        assert set(ids.values()) == {1}
        for element in root.all("*"):
            for name in ("href", "xlink:href", "aria-labelledby"):
                address = element.attributes.get(name, "data:,")
                assert address == "data:," or address.removeprefix("#") in ids, address

    def test_every_figure_table_and_region_has_a_name(self, parsed: Element) -> None:
        for element in parsed.all("*"):
            if element.attributes.get("role") in ("region", "img"):
                assert element.attributes["aria-label"]
        assert all(each.attributes["aria-labelledby"] for each in parsed.all("figure"))

    def test_pictures_take_the_colours_of_the_page(self, parsed: Element) -> None:
        colours = {colour for each in parsed.all("svg") for part in each.all("*") for colour in colours_of(part)}
        assert "currentColor" in colours
        assert not colours & {"#000000", "#ffffff", "black", "white"}


def colours_of(part: Element) -> list[str]:
    return re.findall(r"(?:fill|stroke): ?([#\w]+)", part.attributes.get("style", ""))


def harmful() -> Report:
    """Results in which every text is one that would do harm if it were taken for more than text."""
    bad = timed(HARMFUL, 1e-3, HARMFUL, target=HARMFUL, variant=HARMFUL, note=HARMFUL, device=HARMFUL)
    others = [
        replace(bad, kernel=HARMFUL, dtype=HARMFUL),
        replace(bad, status="error", reason=HARMFUL, fix=HARMFUL, seconds=None, rate=None),
        replace(bad, status="unavailable", reason=HARMFUL, fix=HARMFUL, seconds=None, rate=None),
        replace(bad, status=HARMFUL, reason=HARMFUL),
    ]
    made = report(bad, *others, created=HARMFUL)
    made.package_version = made.without_ceilings = HARMFUL
    texts = {"cpu": HARMFUL, "os": HARMFUL, "python": HARMFUL, "isa": [HARMFUL], "packages": {HARMFUL: HARMFUL}}
    made.machine |= texts
    made.settings |= {"command": HARMFUL, "seed": HARMFUL, "threads": HARMFUL}
    return made


@pytest.fixture(scope="module")
def root() -> Element:
    return Parsed(page([(HARMFUL, harmful()), ("plain.json", report())])).root


class TestHarmfulNames:
    def test_are_shown_as_text(self, root: Element) -> None:
        words = root.words()
        assert words.count(HARMFUL) > 20

    def test_become_no_element_and_no_attribute(self, root: Element) -> None:
        assert len(root.all("script")) == 1
        assert root.all("img") == []
        assert not [each for each in root.all("*") if any(name.startswith("on") for name in each.attributes)]

    def test_stand_in_pictures_as_they_are(self, root: Element) -> None:
        assert [each for each in root.all("svg") if "$a_b$" in each.text]


@pytest.mark.slow
class TestSeveralFiles:
    def test_have_a_column_each(self) -> None:
        friday = report(timed("opencl", 1e-3, "faster", target="pocl"))
        root = Parsed(page([("monday.json", report()), ("friday.json", friday)])).root
        (table,) = root.all("section", id="across")[0].all("table")
        header, *rows = cells(table)
        assert header == ("backend", "target", "variant", "monday.json", "friday.json")
        assert rows == [
            ("openmp", "cpu", "lecture", "60.0", "2.00x faster", "60.0", "2.00x faster"),
            ("opencl", "pocl", "lecture", "not in this file", "48.0", "1.60x faster"),
            ("numpy", "cpu", "lecture", "30.0", "1", "30.0", "1"),
            ("python", "cpu", "lecture", "*0.48", "62.5x slower", "*0.48", "62.5x slower"),
            ("avx", "cpu", "lecture", "mismatch", "mismatch"),
            ("cuda", "nvidia", "lecture", "unavailable", "unavailable"),
        ]
        assert [each.attributes["id"] for each in root.all("section")] == ["across", "file-1", "file-2", "kernels"]

    def test_of_machines_with_other_threads_stand_in_one_line(self) -> None:
        larger = report()
        larger.rows = [replace(row, threads=64) for row in larger.rows]
        (table,) = across([report(), larger])
        assert {line.spec.threads for line in table.lines} == {None}
        assert all(cell is not None for line in table.lines for cell in line.cells)

    def test_threads_of_one_file_are_told_apart(self) -> None:
        (table,) = across([report(timed("openmp", 1.5e-3, "same", threads=1)), report()])
        openmp = [(line.spec.threads, line.cells[1] is None) for line in table.lines if line.spec.backend == "openmp"]
        assert openmp == [(2, False), (1, True)]

    def test_have_a_table_for_what_two_of_them_hold(self) -> None:
        other = report()
        other.rows = [replace(row, shape={"n": 7}, requested=None) for row in other.rows]
        assert across([report(), other]) == []
        words = Parsed(page([("a.json", report()), ("b.json", other)])).root.words()
        assert "No kernel" in words
        both = report()
        both.rows += other.rows
        assert [table.title for table in across([both, other])] == ["vecadd  float32  7"]

    def test_one_alone_is_compared_with_nothing(self, parsed: Element) -> None:
        assert parsed.all("section", id="across") == []


class TestCommand:
    @pytest.mark.slow
    def test_writes_a_page_of_a_real_run(self, comparison: Comparison, tmp_path: Path) -> None:
        run = run_here("report", comparison.json, "-o", tmp_path / "page.html")
        assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
        assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
        root = Parsed((tmp_path / "page.html").read_text(encoding="utf-8")).root
        read = Report.read(comparison.json)
        assert [cells(table) for table in root.all("table")][: len(sections(read))] == [
            [section.header, *section.rows] for section in sections(read) if section.rows
        ]
        for remark in remarks.not_run(read):
            assert remark.text in root.words()

    def test_writes_to_standard_output(self, tmp_path: Path) -> None:
        path = written(tmp_path / "a.json")
        run = run_here("report", path, "-o", "-")
        assert (run.returncode, run.stderr) == (0, "")
        assert run.stdout == page([("a.json", Report.read(path))])

    def test_tells_files_of_one_name_apart_and_takes_each_once(self, tmp_path: Path) -> None:
        paths = [written(tmp_path / day / "r.json") for day in ("monday", "friday")]
        run = run_here("report", *paths, paths[0], "-o", tmp_path / "page.html")
        assert (run.returncode, run.stderr) == (0, "")
        root = Parsed((tmp_path / "page.html").read_text(encoding="utf-8")).root
        assert [each.all("h2")[0].text for each in root.all("section")][1:3] == list(map(str, paths))
        assert len(root.all("section")) == 4

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            ("", "holds no results of a comparison"),
            ("{", "holds no results of a comparison"),
            ("[]", "holds no results of a comparison"),
            ("null", "holds no results of a comparison"),
            ("[" * 100_000, "holds no results of a comparison"),
            ('{"rows": []}', "holds no results of a comparison"),
            ('{"schema_version": 2, "rows": {}}', "holds no results of a comparison"),
            ('{"schema_version": 1}', "has the schema version 1, but only 2 is supported"),
            (report().to_json()[:2000], "holds no results of a comparison"),
            (report().to_json().replace('"median": 0.0016,', '"median": NaN,'), "holds no results of a comparison"),
            (report().to_json().replace('["avx2"]', "7").replace('[\n   "avx2"\n  ]', "7"), "holds no results"),
            (report().to_json().replace('"avx2"', "[]"), "holds no results"),
            (report().to_json().replace('"avx2"', "{}"), "holds no results"),
            (report().to_json().replace("17179869184", '"much"'), "holds no results"),
            (report().to_json().replace("17179869184", "1e999"), "holds no results"),
            (report().to_json().replace('"isa"', '"cache_bytes": 7, "isa"'), "holds no results"),
            (report().to_json().replace('"isa"', '"cache_bytes": {"L3": ""}, "isa"'), "holds no results"),
            (report().to_json().replace('"isa"', '"cache_bytes": {"L3": {}}, "isa"'), "holds no results"),
            (report().to_json().replace('"lecture"', "7"), "holds no results"),
            (report().to_json().replace('"median": 0.0016,', '"median": "0.0016",'), "holds no results"),
            (report().to_json().replace("2000019", "1" + "0" * 400), "holds no results of a comparison"),
            (report().to_json().replace('"ok"', "\udcff"), "holds no results of a comparison"),
        ],
        ids=[
            *("empty", "broken", "list", "null", "nested", "no version", "rows", "newer", "truncated", "NaN", "isa"),
            *(
                "list in isa",
                "object in isa",
                "memory",
                "infinite memory",
                "caches",
                "size of a cache",
                "object for a size",
                "number for a name",
                "text for a time",
                "huge size",
            ),
            "no UTF-8",
        ],
    )
    def test_refuses_what_is_no_result(self, tmp_path: Path, content: str, words: str) -> None:
        path = tmp_path / "results.json"
        path.write_bytes(content.encode("utf-8", "surrogateescape"))
        with pytest.raises(WrongRequest, match=words):
            Report.read(path)

    def test_a_wrong_file_is_one_line_and_no_page(self, tmp_path: Path) -> None:
        path = tmp_path / "results.json"
        path.write_text("{", encoding="utf-8")
        page_of = tmp_path / "page.html"
        for wrong, words in {
            path: "holds no results of a comparison: write one with compare --json",
            tmp_path / "missing.json": "cannot be read: No such file or directory",
            tmp_path: "cannot be read: Is a directory",
        }.items():
            run = run_here("report", wrong, "-o", page_of)
            assert (run.returncode, run.stdout) == (2, "")
            (line,) = run.stderr.splitlines()
            assert words in line
            assert not page_of.exists()

    def test_shows_the_bytes_of_a_name_that_is_not_utf_8(self, tmp_path: Path) -> None:
        path = written(Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.json")))
        run = run_here("report", path, "-o", "-")
        assert (run.returncode, run.stderr) == (0, "")
        assert r"caf\xe9.json" in Parsed(run.stdout).root.words()
        run = run_here("report", path, "-o", tmp_path / "page.html")
        assert (run.returncode, run.stderr) == (0, "")
        assert r"caf\xe9.json" in (tmp_path / "page.html").read_text(encoding="utf-8")

    def test_shows_what_json_can_hold_and_text_cannot(self, tmp_path: Path) -> None:
        """Half of a pair of code points, in names that pictures show too; whole pairs stay."""
        path = tmp_path / "a.json"
        half = "half \udce9, whole 🙂"
        path.write_text(report(timed("sycl", 1e-3, "faster", device=half, note=half)).to_json(), encoding="utf-8")
        run = run_here("report", path, "-o", "-")
        assert (run.returncode, run.stderr) == (0, "")
        assert "half ?, whole 🙂" in Parsed(run.stdout).root.words()

    def test_refuses_to_replace_its_results(self, tmp_path: Path) -> None:
        path = written(tmp_path / "a.json")
        before = path.read_bytes()
        run = run_here("report", path, "-o", tmp_path / "." / "a.json")
        assert run.returncode == 2
        assert "replace" in run.stderr
        assert path.read_bytes() == before

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["a.json"], "-o/--output"),
            (["-o", "p.html"], "FILE"),
            (["a.json", "-o", "/proc/page.html"], "/proc cannot be written to"),
        ],
    )
    def test_wrong_usage(self, arguments: list[str], words: str) -> None:
        run = run_here("report", *arguments)
        assert (run.returncode, run.stdout) == (2, "")
        (line,) = run.stderr.splitlines()
        assert words in line

    def test_says_what_is_missing_without_its_libraries(self, tmp_path: Path) -> None:
        path = written(tmp_path / "a.json")
        blocked = "import sys; sys.modules['jinja2'] = None; from py_backends.__main__ import main; sys.exit(main())"
        run = run_python("-c", blocked, "report", path, "-o", tmp_path / "page.html")
        assert run.returncode == 2
        (line,) = run.stderr.splitlines()
        assert pip_install("pictures") in line


def written(path: Path) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(report().to_json(), encoding="utf-8")
    return path


SCHEMES = ["light", "dark"]
WIDTHS = [360, 1280]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A way to open a page of two files, one of them with a harmful device, in a real browser."""
    from playwright.sync_api import sync_playwright

    harmful = report(timed("sycl", 1e-3, "faster", device=HARMFUL, note=HARMFUL))
    harmful.machine["cpu"] = HARMFUL
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(page([("plain.json", report()), ("harmful.json", harmful)]), encoding="utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium())

        def open_page(width: int = 1280, scheme: Any = "light", **options: Any) -> Any:
            context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme, **options)
            tab = context.new_page()
            tab.said, tab.asked = [], []
            tab.on("console", lambda message: tab.said.append(message.text))
            tab.on("pageerror", lambda error: tab.said.append(str(error)))
            tab.on("dialog", lambda dialog: (tab.said.append(dialog.message), dialog.dismiss()))
            tab.on("request", lambda request: tab.asked.append(request.url))
            tab.goto(path.as_uri())
            return tab

        yield open_page
        browser.close()


@after_a_change("py_backends/commands/report", "py_backends/display")
@pytest.mark.browser
class TestInABrowser:
    @pytest.mark.parametrize("scheme", SCHEMES)
    @pytest.mark.parametrize("width", WIDTHS)
    def test_it_fits_and_is_silent(self, opened: Any, width: int, scheme: str) -> None:
        tab = opened(width, scheme)
        wide, seen = tab.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert wide <= seen == width
        assert tab.said == []
        assert [address.partition(":")[0] for address in tab.asked if not address.startswith("data:")] == ["file"]

    def test_schemes_differ_and_text_stands_out(self, opened: Any) -> None:
        for scheme in SCHEMES:
            tab = opened(scheme=scheme)
            page_colour = tab.evaluate("getComputedStyle(document.body).backgroundColor")
            for selector in ("body", ".quiet", "a[href='#kernels']", ".wrong", ".picture svg text", "pre.code"):
                colour = tab.evaluate(COLOUR_OF_TEXT, selector)
                assert contrast(colour, page_colour) >= 4.5, (scheme, selector, colour, page_colour)

    def test_highlighting_stands_out(self, opened: Any) -> None:
        for scheme in SCHEMES:
            tab = opened(scheme=scheme)
            found = tab.evaluate("""[...document.querySelectorAll('.pane pre.code span')].map(
                (span) => getComputedStyle(span).color)""")
            behind = tab.evaluate("getComputedStyle(document.querySelector('.pane pre.code')).backgroundColor")
            assert len(set(found)) >= 4
            assert min(contrast(colour, behind) for colour in set(found)) >= 4.5

    def test_choosing_models_changes_what_is_shown(self, opened: Any) -> None:
        tab = opened()
        assert not tab.get_by_text("needs JavaScript").is_visible()
        assert titles(tab) == ["openmp", "sycl"]
        choose(tab, "First model", "cuda")
        assert titles(tab) == ["cuda", "sycl"]
        text = (CLONE / "kernels/vecadd/lecture/cuda.cu").read_text().rstrip()
        assert tab.locator(".pane").first.locator("code").text_content() == text
        choose(tab, "Second model", "openmp")
        assert "60.0 GB/s" in tab.locator(".pane").last.inner_text()
        assert tab.said == []

    def test_each_pane_has_its_own_variant(self, opened: Any) -> None:
        """lecture beside tuned of one model, to see what speed asks."""
        tab = opened()
        choose(tab, "First model", "cuda")
        choose(tab, "Second model", "cuda")
        choose(tab, "Second variant", "tuned")
        files = [title.partition(": ")[2].partition(",")[0] for title in tab.locator(".pane h3").all_inner_texts()]
        assert files == ["kernels/vecadd/lecture/cuda.cu", "kernels/vecadd/tuned/cuda.cu"]
        for pane, file in zip(tab.locator(".pane").all(), files, strict=True):
            assert pane.locator("code").text_content() == (CLONE / file).read_text().rstrip()
        choose(tab, "First variant", "tuned")
        choose(tab, "First model", "numpy")
        assert re.search("no variant .*lecture", tab.locator(".pane").first.inner_text())
        assert "no variant" not in tab.locator(".pane").last.inner_text()
        assert tab.said == []

    @pytest.mark.parametrize("width", WIDTHS)
    def test_no_line_of_code_is_cut_at_the_edge_of_its_pane(self, opened: Any, width: int) -> None:
        """Lines of up to 120 characters go on below themselves; lines that fit take one row."""
        tab = opened(width)
        for side in ("First", "Second"):
            choose(tab, f"{side} model", "opencl")
        choose(tab, "Second variant", "tuned")
        for code in tab.locator(".pane pre.code").all():
            inside, room = code.evaluate("(pre) => [pre.scrollWidth, pre.clientWidth]")
            assert inside <= room
            rows = code.evaluate(ROWS_OF_LINES)
            lines = code.locator("code").text_content().split("\n")
            assert len(rows) == len(lines)
            short = {row for row, line in zip(rows, lines, strict=True) if len(line) < 30}
            assert short == {1}, "an empty line has a row too"
            assert max(rows) > 1

    def test_the_keyboard_suffices(self, opened: Any) -> None:
        tab = opened()
        tab.keyboard.press("Tab")
        skip = tab.locator(":focus")
        assert skip.inner_text().startswith("Skip")
        assert skip.bounding_box()["x"] >= 0, "in sight once it has the focus"
        assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        tab.keyboard.press("Enter")
        assert tab.evaluate("location.hash") == "#content"
        tab.get_by_role("combobox", name="First model", exact=True).focus()
        tab.keyboard.type("sycl")
        assert titles(tab)[0] == "sycl"
        tab.locator("details.all > summary").focus()
        tab.keyboard.press("Enter")
        assert tab.locator("details.source").first.is_visible()

    def test_a_harmful_device_is_text(self, opened: Any) -> None:
        tab = opened()
        assert HARMFUL in tab.locator("#file-2").inner_text()
        assert tab.locator("img").count() == 0
        assert tab.said == []

    def test_without_a_script_all_but_choosing_works(self, opened: Any) -> None:
        tab = opened(java_script_enabled=False)
        assert titles(tab) == ["openmp", "sycl"]
        assert not tab.locator("#choices").is_visible()
        assert tab.get_by_text("needs JavaScript").is_visible()

    def test_in_print_there_is_nothing_to_choose(self, opened: Any) -> None:
        tab = opened(scheme="dark")
        tab.emulate_media(media="print")
        assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert not tab.locator("#choices").is_visible()
        assert tab.locator(".picture svg").first.is_visible()
        assert tab.pdf().startswith(b"%PDF")


ROWS_OF_LINES = """(pre) => [...pre.querySelectorAll(".line")].map(
    (line) => Math.round(line.getBoundingClientRect().height / parseFloat(getComputedStyle(line).lineHeight)))"""
COLOUR_OF_TEXT = """(selector) => {
    const style = getComputedStyle(document.querySelector(selector));
    return document.querySelector(selector).closest("svg") ? style.fill : style.color;
}"""


def choose(tab: Any, what: str, value: str) -> None:
    tab.get_by_role("combobox", name=what, exact=True).select_option(value)


def titles(tab: Any) -> list[str]:
    return [title.partition(":")[0] for title in tab.locator(".pane h3").all_inner_texts()]


def contrast(one: str, other: str) -> float:
    """Of two colours as a browser writes them, by WCAG 2.2: 4.5 is what text needs."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
