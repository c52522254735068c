"""The Korean pages are in Korean, and have every link, number and name of the English ones in the same section.

`test_languages` holds the rest: headings, code, tables, pictures, bold figures and commands.
"""

from __future__ import annotations

import re
import runpy
from collections import Counter
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest
from commands import CLONE
from markdown_it.token import Token
from markdown_pages import headings, tokens
from test_languages import KOREAN

NUMBER = re.compile(r"(?<![A-Za-z\d])\d++(?:[.,]\d++)*+%?+(?![월차])")
"""But for those of names, such as float32, and where English has a word: of a month and of a level of caches."""
MILLIONS = re.compile(r"(\d+) million")
"""Korean counts them in ten thousands."""

pytestmark = [pytest.mark.documents, pytest.mark.parametrize("page", KOREAN, ids=lambda page: page.name)]


def english(page: Path) -> Path:
    return page.with_name(page.name.replace(".ko.md", ".md"))


def sections(page: Path) -> list[list[Token]]:
    """What stands below each heading, and in it: pieces of text and code, links and pictures, tables too."""
    found: list[list[Token]] = []
    for token in tokens(page.read_text(encoding="utf-8")):
        if token.type == "heading_open":
            found.append([])
        found[-1] += token.children or [token]
    return found


def words(section: list[Token]) -> str:
    return "\n".join(token.content for token in section if token.type == "text")


def code(section: list[Token]) -> Counter[str]:
    """Between backticks, and what is indented."""
    return Counter(token.content for token in section if token.type in ("code_inline", "code_block"))


def anchors(page: Path) -> list[str]:
    """Of the headings, in their order, as GitHub names them."""
    names = [name.lower() for _, name in headings(page.read_text(encoding="utf-8"))]
    return [re.sub(r"[^\w -]", "", name).replace(" ", "-") for name in names]


def links(section: list[Token]) -> list[str]:
    """Without the one to the other language."""
    found: list[str] = []
    for token, text in pairwise(section):
        if token.type == "link_open" and text.content not in ("English", "한국어"):
            found.append(unquote(str(token.attrGet("href"))))
    return found


def in_korean(link: str, page: Path) -> str:
    """Where a link of an English page leads from the Korean one: to a Korean page, where there is one."""
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    korean = target.with_name(target.name.replace(".md", ".ko.md"))
    if korean not in KOREAN:
        return link
    at = f"#{anchors(korean)[anchors(target).index(anchor)]}" if anchor else ""
    return path.replace(".md", ".ko.md") + at


def test_it_is_in_korean(page: Path) -> None:
    letters = re.findall(r"[^\W\d_]", "".join(words(section) for section in sections(page)))
    assert sum("가" <= letter <= "힣" for letter in letters) > len(letters) * 0.7
    names = {name for _, name in headings(page.read_text(encoding="utf-8"))}
    assert all(re.search("[가-힣]", name) for name in names - {"py-backends"})


def test_the_two_lead_to_one_another(page: Path) -> None:
    assert page.read_text(encoding="utf-8").splitlines()[1] == f"[English]({english(page).name})"
    assert english(page).read_text(encoding="utf-8").splitlines()[1] == f"[한국어]({page.name})"


def test_links_lead_to_the_same_places(page: Path) -> None:
    for ours, theirs in zip(sections(english(page)), sections(page), strict=True):
        assert Counter(links(theirs)) == Counter(in_korean(link, english(page)) for link in links(ours))


def test_numbers_and_names_are_the_same(page: Path) -> None:
    for ours, theirs in zip(sections(english(page)), sections(page), strict=True):
        said = MILLIONS.sub(lambda found: f"{int(found[1]) * 100:,}", words(ours))
        numbers = [Counter(NUMBER.findall(text)) for text in (said, words(theirs))]
        assert numbers[0] == numbers[1], words(theirs)
        assert code(ours) == code(theirs)


def test_blocks_are_copied_from_the_english_page(page: Path) -> None:
    copied = runpy.run_path(str(CLONE / "docs" / "blocks.py"))["copied"]
    text = page.read_text(encoding="utf-8")
    assert copied(english(page).read_text(encoding="utf-8"), text) == text, "run docs/blocks.py"
    with pytest.raises(ValueError, match="blocks in English"):
        copied(english(page).read_text(encoding="utf-8"), f"{text}\n```sh\n```\n")


def test_emphasis_is_seen(page: Path) -> None:
    """After a bracket or a per cent sign it does not end where a syllable follows: the stars would be shown."""
    for section in sections(page):
        assert "*" not in words(section)
