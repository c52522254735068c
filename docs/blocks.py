"""Copies the blocks of the English pages to their places in the Korean ones: python docs/blocks.py

A block is code or a table between fences, with the comment before it that says where it is from.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

CLONE = Path(__file__).parents[1]
BLOCK = re.compile(r"(?:^<!-- [^\n]+ -->\n\n)?^```.*?^```$", re.DOTALL | re.MULTILINE)


def pages() -> list[tuple[Path, Path]]:
    """Each English page that has a Korean one, with that."""
    korean = sorted([*CLONE.glob("*.ko.md"), *(CLONE / "docs").glob("*.ko.md")])
    return [(page.with_name(page.name.replace(".ko.md", ".md")), page) for page in korean]


def copied(english: str, korean: str) -> str:
    """The Korean page with the blocks of the English one; ValueError where one of them has more."""
    blocks = BLOCK.findall(english)
    between = BLOCK.split(korean)
    if len(blocks) != len(between) - 1:
        raise ValueError(f"{len(blocks)} blocks in English, {len(between) - 1} in Korean")
    return "".join(part for pair in zip(between, [*blocks, ""], strict=True) for part in pair)


def main() -> None:
    """Write the Korean pages, or end with a line that names the one that lacks a block."""
    for english, korean in pages():
        try:
            page = copied(english.read_text(encoding="utf-8"), korean.read_text(encoding="utf-8"))
        except ValueError as error:
            sys.exit(f"{korean.name}: {error}")
        korean.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
