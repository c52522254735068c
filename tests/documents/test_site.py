"""The site: links lead somewhere, the API reference has every name, and pages can be read without a network."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import CLONE, run_python
from conftest import BROWSER, chromium
from markdown_pages import anchors, links, pages

import py_backends as pb
from py_backends import registry
from py_backends.install import pip_install

pytestmark = pytest.mark.documents

ELSEWHERE = re.compile(r"[a-z]+:")
WIDTHS = (360, 1280)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(CLONE).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        if ELSEWHERE.match(link):
            continue
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target.read_text(encoding="utf-8")), link


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make site` makes it; every warning is an error."""
    if importlib.util.find_spec("sphinx") is None:
        pytest.skip(f"Sphinx is not installed (to change that: {pip_install('docs')})")
    folder = tmp_path_factory.mktemp("site")
    (command,) = re.findall(r"^\t\$\(BIN\)/python (-m sphinx .*)$", (CLONE / "Makefile").read_text(), re.MULTILINE)
    places = {"build/site": str(folder / "site"), "build/site-read": str(folder / "read")}
    run = run_python(*(places.get(word, word) for word in command.split()))
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    return folder / "site"


def test_every_page_is_there(site: Path) -> None:
    for page in pages():
        assert (site / page.relative_to(CLONE).with_suffix(".html")).is_file(), page
    assert (site / "index.html").read_text(encoding="utf-8") == (site / "README.html").read_text(encoding="utf-8")


def test_the_api_reference_has_every_name(site: Path) -> None:
    page = (site / "docs" / "site" / "api.html").read_text(encoding="utf-8")
    kernels = [f"kernels.{name}.problem" for name in registry.kernel_names()]
    for name in (*pb.__all__, *kernels, "contract.Device.adopt", "contract.Backend.dtypes", "contract.Problem.inputs"):
        assert re.search(rf'id="(?:module-)?py_backends\.{re.escape(name)}"', page), name
    assert "<strong>backend</strong>" in page, "parameters are a list"


def test_the_list_of_modules_has_every_room(site: Path) -> None:
    page = (site / "docs" / "site" / "house.html").read_text(encoding="utf-8")
    for name in ("workers/", "commands/", "timeline/table.py", "_cpu_kernels.py", "contract.py", "openmp.cpp"):
        assert f"{name}</span>" in page, name


def test_pages_need_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(https?:[^"]+)', page.read_text(encoding="utf-8"))
        assert loaded == [], page


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=chromium())


@pytest.mark.nightly
@getattr(pytest.mark, BROWSER)
@pytest.mark.parametrize("width", WIDTHS)
def test_pages_fit_a_screen_and_ask_nobody(site: Path, browser: Any, width: int) -> None:
    """No page scrolls sideways, complains, or asks for anything but files of its own."""
    tab = browser.new_page(viewport={"width": width, "height": 800})
    asked: list[str] = []
    said: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    for page in sorted(site.rglob("*.html")):
        tab.goto(page.as_uri())
        wider = tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wider <= 0, f"{page.relative_to(site)} is {wider} pixels wider than the screen"
        assert said == [], page
    assert [url for url in asked if not url.startswith((f"{site.as_uri()}/", "data:"))] == []
