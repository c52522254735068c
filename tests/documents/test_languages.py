"""A page in another language has what its English page has: headings, code, tables, figures, pictures, commands."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

import pytest
from markdown_it.token import Token
from markdown_pages import pages, tokens

pytestmark = pytest.mark.documents

KOREAN = [page for page in pages() if page.name.endswith(".ko.md")]
FIGURE = re.compile(r"\d++(?:[.,]\d++)*+%?+(?!월)")
"""But for the number of a month, which has a name in English."""
COMMAND = re.compile(r"(?:py-backends|make|python|pip)\b")
ENGLISH = """# Title

**12.5** times as fast by `py-backends ladder`.

<!-- kernels/vecadd/lecture/python.py -->

```python
c = a + b
```

| memory | time |
| --- | --- |
| L1 | 3.5 ns |

![The ladder](pictures/ladder.svg)

## Below
"""


class Section(NamedTuple):
    """What a section has in whatever language.

    level: of its heading, such as `h2`.
    blocks: the code, each with its language and the comment before it, which says where it is from.
    tables: the figures of each line.
    pictures: where they are from.
    figures: those in bold letters, in any order, as the order of words is a language's own.
    commands: likewise.
    """

    level: str
    blocks: list[tuple[str, str, str]]
    tables: list[list[str]]
    pictures: list[str]
    figures: Counter[str]
    commands: Counter[str]


def sections(text: str) -> list[Section]:
    found: list[Section] = []
    comment, in_table = "", False
    for token in tokens(text):
        in_table = token.type != "table_close" and (in_table or token.type == "table_open")
        if token.type == "heading_open":
            found.append(Section(token.tag, [], [], [], Counter(), Counter()))
        elif token.type == "fence":
            found[-1].blocks.append((comment, token.info, token.content))
        elif token.type == "tr_open":
            found[-1].tables.append([])
        elif token.type == "inline" and found:
            add(found[-1], token, in_table=in_table)
        if not token.type.endswith("_close"):
            comment = token.content.strip() if token.type == "html_block" else ""
    return found


def add(section: Section, line: Token, *, in_table: bool) -> None:
    """Add what a paragraph or a cell has."""
    if in_table:
        section.tables[-1] += FIGURE.findall(line.content)
    bold = 0
    for token in line.children or ():
        bold += {"strong_open": 1, "strong_close": -1}.get(token.type, 0)
        if token.type == "image":
            section.pictures.append(str(token.attrGet("src")))
        elif token.type == "code_inline" and COMMAND.match(token.content):
            section.commands[token.content] += 1
        elif bold:
            section.figures.update(FIGURE.findall(token.content))


def differences(english: str, other: str) -> list[str]:
    """What one page has and the other has not, a line each."""
    ours, theirs = sections(english), sections(other)
    levels = [[section.level for section in page] for page in (ours, theirs)]
    if levels[0] != levels[1]:
        return [f"headings: {' '.join(levels[0])} in English, and {' '.join(levels[1])}"]
    return [
        f"section {number}, {part}: {getattr(one, part)} in English, and {getattr(two, part)}"
        for number, (one, two) in enumerate(zip(ours, theirs, strict=True), 1)
        for part in Section._fields
        if getattr(one, part) != getattr(two, part)
    ]


def test_pages_have_what_the_english_ones_have() -> None:
    for page in KOREAN:
        english = page.with_name(page.name.replace(".ko.md", ".md"))
        found = differences(english.read_text(encoding="utf-8"), page.read_text(encoding="utf-8"))
        assert not found, "\n".join([page.name, *found])


class TestDifferences:
    """That they are seen."""

    def test_none_in_a_translation(self) -> None:
        translated = ENGLISH
        for this, that in (
            ("# Title", "# 제목"),
            ("memory | time", "메모리 | 시간"),
            ("**12.5** times as fast by `py-backends ladder`.", "`py-backends ladder`로 **12.5**배 빨라진다."),
        ):
            assert this in translated
            translated = translated.replace(this, that)
        assert differences(ENGLISH, translated) == []

    @pytest.mark.parametrize(
        ("part", "this", "that"),
        [
            ("headings", "## Below", "### Below"),
            ("headings", "## Below", ""),
            ("blocks", "c = a + b", "c = a - b"),
            ("blocks", "lecture/python.py", "lecture/numpy.py"),
            ("blocks", "```python", "```cpp"),
            ("tables", "3.5 ns", "3.6 ns"),
            ("tables", "| L1 | 3.5 ns |\n", ""),
            ("pictures", "ladder.svg", "roofline.svg"),
            ("figures", "**12.5**", "**12.4**"),
            ("figures", "**12.5**", "12.5"),
            ("commands", "`py-backends ladder`", "`py-backends sweep`"),
        ],
    )
    def test_each_is_named(self, part: str, this: str, that: str) -> None:
        assert this in ENGLISH
        (found,) = differences(ENGLISH, ENGLISH.replace(this, that))
        assert part in found
