"""The lecture's map and the glossary: every part has its place or a reason, every term a sentence and a place.

`test_site` shows that links lead somewhere, and `test_walk` that commands parse.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import test_prose
from commands import CLONE
from test_documents import columns

pytestmark = pytest.mark.documents

LECTURE = CLONE / "docs" / "lecture.md"
GLOSSARY = CLONE / "docs" / "glossary.md"
PLACE = re.compile(r"`py-backends [a-z]+[^`]*`|\]\([^)]+\)")


def rows(page: Path, header: str) -> list[list[str]]:
    return list(columns(page.read_text(encoding="utf-8"), header))


@pytest.mark.parametrize("page", [LECTURE, GLOSSARY], ids=lambda page: page.stem)
def test_cells_are_short(page: Path) -> None:
    """As are the sentences beside the tables, to which `test_prose` holds every page."""
    lines = re.findall(r"^\|.*\|$", page.read_text(encoding="utf-8"), re.MULTILINE)
    cells = [cell for line in lines for cell in re.sub(r"\]\([^)]*\)", "]", line).split("|")]
    found = [sentence for cell in cells for sentence in test_prose.END.split(cell)]
    assert max(map(test_prose.length, found)) <= test_prose.LONGEST, max(found, key=test_prose.length)


class TestMap:
    def test_every_part_has_its_place_or_a_reason(self) -> None:
        parts = rows(LECTURE, "in the lecture")
        assert len(parts) > 40
        for part, here in parts:
            assert re.match(r"not here, because \w", here) or PLACE.search(here) or re.search("`[a-z_]+`", here), part


class TestGlossary:
    TERMS = rows(GLOSSARY, "term")

    @pytest.mark.parametrize("line", TERMS, ids=lambda line: line[0])
    def test_a_term_has_korean_a_sentence_and_a_place(self, line: list[str]) -> None:
        _, korean, meaning, place = line
        assert re.search("[가-힣]", korean)
        assert re.fullmatch(r"[A-Z0-9][^.]*(\.\w[^.]*)*\.", meaning), "one sentence"
        assert PLACE.search(place)

    def test_they_can_be_looked_up(self) -> None:
        text = GLOSSARY.read_text(encoding="utf-8")
        assert len(self.TERMS) == len({line[0] for line in self.TERMS}) > 50
        for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
            names = [cell.split(" | ")[0].strip("| ").lower() for cell in part.splitlines() if cell.startswith("| ")][
                1:
            ]
            names = [name for name in names if set(name) - set("-|")]
            assert names == sorted(names)
