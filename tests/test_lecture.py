"""The lecture's map and the glossary: every part has its place or a reason, every term a sentence and a place.

`test_site` shows that links lead somewhere, and `test_walk` that commands parse.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import test_prose
from commands import CLONE
from test_documents import columns, section

from py_backends.commands.hello import programs

pytestmark = pytest.mark.documents

LECTURE = CLONE / "docs" / "lecture.md"
GLOSSARY = CLONE / "docs" / "glossary.md"
SLIDES_HAVE_NONE = {"cutile", "jax", "numba_cpu", "stdpar", "triton"}
"""Models with a first program that is on no slide."""
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
    def test_the_lecture_is_named(self) -> None:
        text = LECTURE.read_text(encoding="utf-8")
        for words in ("AI 컴퓨팅 성능 공학 입문", "신정훈", "KISTI", "December 2024"):
            assert words in text

    def test_every_part_has_its_place_or_a_reason(self) -> None:
        parts = rows(LECTURE, "in the lecture")
        assert len(parts) > 40
        for part, here in parts:
            assert re.match(r"not here, because \w", here) or PLACE.search(here) or re.search("`[a-z_]+`", here), part

    def test_every_slide_with_a_program_has_one_that_runs(self) -> None:
        models = rows(LECTURE, "model")
        ours = {name for line in models for name in re.findall(r"`py-backends hello (\w+)`", line[2])}
        assert ours == set(programs.models()) - SLIDES_HAVE_NONE
        linked = {name for line in models for name in re.findall(r"\]\(\.\./py_backends/hello/([\w.]+)\)", line[3])}
        assert linked == {program.path.name for model in ours for program in programs.programs(model)}

    @pytest.mark.parametrize("words", ["subtracts and adds", "108 x 64 = 6,912", "not declared", "check of the bounds"])
    def test_slips_are_said(self, words: str) -> None:
        assert words in " ".join(section(LECTURE, "## Small slips on the slides").split())
        assert 108 * 64 == 6912


class TestGlossary:
    TERMS = rows(GLOSSARY, "term")

    def test_the_terms_that_the_lecture_turns_on(self) -> None:
        korean = {line[0]: line[1] for line in self.TERMS}
        assert korean["warp"] == "워프"
        assert korean["throughput"] == "처리율"
        assert korean["latency"] == "지연 시간"
        assert korean["occupancy"] == "점유율"
        assert korean["coalescing"] == "병합 접근"
        assert korean["arithmetic intensity"] == "연산 강도"

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
