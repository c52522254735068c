"""What stands in a page of Markdown, for tests that hold pages to something."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

from commands import CLONE
from markdown_it import MarkdownIt
from markdown_it.token import Token


def pages() -> list[Path]:
    """Every page of the clone."""
    return sorted(path for where in (".", "docs", "docs/*", "examples/*") for path in CLONE.glob(f"{where}/*.md"))


@cache
def tokens(text: str) -> list[Token]:
    return MarkdownIt().enable("table").parse(text)


def inline(text: str) -> Iterator[Token]:
    for token in tokens(text):
        yield from token.children or ()


def links(text: str) -> list[str]:
    """Where links lead, and where pictures are from, in letters of any language."""
    found = ((token.attrGet("href"), token.attrGet("src")) for token in inline(text))
    return [unquote(str(target)) for targets in found for target in targets if target is not None]


def headings(text: str) -> list[tuple[str, str]]:
    """Each with its level, such as `h2`."""
    found = tokens(text)
    return [(at.tag, after.content) for at, after in pairwise(found) if at.type == "heading_open"]


@cache
def anchors(text: str) -> set[str]:
    """How headings are named in links, the second of one name with a number."""
    found: set[str] = set()
    for _, heading in headings(text):
        name = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        numbered = (name if number == 0 else f"{name}-{number}" for number in range(len(found) + 1))
        found.add(next(each for each in numbered if each not in found))
    return found
